package rest

import (
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

const (
	// flinkVersion is the release whose REST API this one is.
	flinkVersion = "2.3.0"
	revision     = "lowwater"
	// refreshInterval is how often Flink's own UI would ask, in milliseconds.
	refreshInterval = 3000
)

type features struct {
	Submit  bool `json:"web-submit"`
	Cancel  bool `json:"web-cancel"`
	Rescale bool `json:"web-rescale"`
	History bool `json:"web-history"`
}

func configOf(*http.Request) (any, error) {
	zone, offset := time.Now().Zone()
	return struct {
		Refresh  int64    `json:"refresh-interval"`
		Zone     string   `json:"timezone-name"`
		Offset   int64    `json:"timezone-offset"`
		Version  string   `json:"flink-version"`
		Revision string   `json:"flink-revision"`
		Features features `json:"features"`
	}{refreshInterval, zone, int64(offset) * 1000, flinkVersion, revision + " @ " + time.Unix(0, 0).UTC().Format(time.RFC3339), features{Cancel: true}}, nil
}

func (s *Server) clusterOverview(*http.Request) (any, error) {
	counts := map[status.State]int{}
	for _, o := range s.jobs.Jobs() {
		counts[o.Read().Status.Life.State]++
	}
	running := len(s.running())
	return struct {
		TaskManagers   int    `json:"taskmanagers"`
		SlotsTotal     int    `json:"slots-total"`
		SlotsAvailable int    `json:"slots-available"`
		Running        int    `json:"jobs-running"`
		Finished       int    `json:"jobs-finished"`
		Canceled       int    `json:"jobs-cancelled"`
		Failed         int    `json:"jobs-failed"`
		Version        string `json:"flink-version"`
		Commit         string `json:"flink-commit"`
	}{1, s.slots(), 0, running, counts[status.Finished], counts[status.Canceled], counts[status.Failed], flinkVersion, revision}, nil
}

type resources struct {
	CPUs        float64        `json:"cpuCores"`
	TaskHeap    int64          `json:"taskHeapMemory"`
	TaskOffHeap int64          `json:"taskOffHeapMemory"`
	Managed     int64          `json:"managedMemory"`
	Network     int64          `json:"networkMemory"`
	Extended    map[string]int `json:"extendedResources"`
}

type hardware struct {
	CPUs     int   `json:"cpuCores"`
	Physical int64 `json:"physicalMemory"`
	Free     int64 `json:"freeMemory"`
	Managed  int64 `json:"managedMemory"`
}

type memoryConfig struct {
	FrameworkHeap    int64 `json:"frameworkHeap"`
	TaskHeap         int64 `json:"taskHeap"`
	FrameworkOffHeap int64 `json:"frameworkOffHeap"`
	TaskOffHeap      int64 `json:"taskOffHeap"`
	Network          int64 `json:"networkMemory"`
	Managed          int64 `json:"managedMemory"`
	Metaspace        int64 `json:"jvmMetaspace"`
	Overhead         int64 `json:"jvmOverhead"`
	TotalFlink       int64 `json:"totalFlinkMemory"`
	TotalProcess     int64 `json:"totalProcessMemory"`
}

type taskManager struct {
	ID            string       `json:"id"`
	Path          string       `json:"path"`
	DataPort      int          `json:"dataPort"`
	JMXPort       int          `json:"jmxPort"`
	Heartbeat     int64        `json:"timeSinceLastHeartbeat"`
	Slots         int          `json:"slotsNumber"`
	FreeSlots     int          `json:"freeSlots"`
	AssignedTasks int          `json:"assignedTasks"`
	Total         resources    `json:"totalResource"`
	Free          resources    `json:"freeResource"`
	Hardware      hardware     `json:"hardware"`
	Memory        memoryConfig `json:"memoryConfiguration"`
}

// thisWorker describes this process as the one TaskManager.
func (s *Server) thisWorker() taskManager {
	p := observe.ReadProcess()
	tasks := 0
	for _, o := range s.running() {
		for _, v := range o.Plan().Vertices {
			tasks += v.Parallelism
		}
	}
	return taskManager{
		ID: s.worker, Path: s.worker, DataPort: -1, JMXPort: -1, Heartbeat: time.Now().UnixMilli(),
		Slots: s.slots(), AssignedTasks: tasks,
		Total:    resources{CPUs: float64(p.CPUs), TaskHeap: p.HeapCommitted >> 20, Extended: map[string]int{}},
		Free:     resources{Extended: map[string]int{}},
		Hardware: hardware{CPUs: p.CPUs, Physical: p.PhysicalMemory, Free: p.HeapCommitted - p.HeapUsed},
		Memory:   memoryConfig{TaskHeap: p.HeapCommitted, TotalFlink: p.HeapCommitted, TotalProcess: p.HeapCommitted},
	}
}

func (s *Server) taskManagers(*http.Request) (any, error) {
	return struct {
		Managers []taskManager `json:"taskmanagers"`
	}{[]taskManager{s.thisWorker()}}, nil
}

type collectorJSON struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Time  int64  `json:"time"`
}

type workerMetrics struct {
	HeapUsed          int64           `json:"heapUsed"`
	HeapCommitted     int64           `json:"heapCommitted"`
	HeapMax           int64           `json:"heapMax"`
	NonHeapUsed       int64           `json:"nonHeapUsed"`
	NonHeapCommitted  int64           `json:"nonHeapCommitted"`
	NonHeapMax        int64           `json:"nonHeapMax"`
	DirectCount       int64           `json:"directCount"`
	DirectUsed        int64           `json:"directUsed"`
	DirectMax         int64           `json:"directMax"`
	MappedCount       int64           `json:"mappedCount"`
	MappedUsed        int64           `json:"mappedUsed"`
	MappedMax         int64           `json:"mappedMax"`
	ShuffleFree       int64           `json:"nettyShuffleMemoryAvailable"`
	ShuffleUsed       int64           `json:"nettyShuffleMemoryUsed"`
	ShuffleTotal      int64           `json:"nettyShuffleMemoryTotal"`
	ShuffleFreeParts  int64           `json:"nettyShuffleMemorySegmentsAvailable"`
	ShuffleUsedParts  int64           `json:"nettyShuffleMemorySegmentsUsed"`
	ShuffleTotalParts int64           `json:"nettyShuffleMemorySegmentsTotal"`
	Collectors        []collectorJSON `json:"garbageCollectors"`
}

type slotJSON struct {
	JobID    string    `json:"jobId"`
	Resource resources `json:"resource"`
	Tasks    int       `json:"assignedTasks"`
}

func (s *Server) taskManager(r *http.Request) (any, error) {
	if id := r.PathValue("tm"); id != s.worker {
		return nil, notFound(handlerException, "Could not find TaskExecutor %s", id)
	}
	p := observe.ReadProcess()
	slots := []slotJSON{}
	for _, o := range s.running() {
		for i := range o.Plan().Parallelism {
			slot := slotJSON{JobID: o.ID, Resource: resources{Extended: map[string]int{}}}
			for _, v := range o.Plan().Vertices {
				if v.Parallelism > i {
					slot.Tasks++
				}
			}
			slots = append(slots, slot)
		}
	}
	return struct {
		taskManager
		Slots   []slotJSON    `json:"allocatedSlots"`
		Metrics workerMetrics `json:"metrics"`
	}{s.thisWorker(), slots, workerMetrics{
		HeapUsed: p.HeapUsed, HeapCommitted: p.HeapCommitted, HeapMax: p.HeapMax,
		NonHeapUsed: p.OtherUsed, NonHeapCommitted: p.OtherUsed, NonHeapMax: -1,
		Collectors: []collectorJSON{{"All", p.CollectionCount, p.CollectionTime}},
	}}, nil
}

type keyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// serverConfig is the settings that anyone who may ask may know. The token is none.
func (s *Server) serverConfig() []keyValue {
	host, port, _ := net.SplitHostPort(s.Addr().String())
	return []keyValue{
		{"rest.address", host},
		{"rest.port", port},
		{"security.ssl.rest.enabled", strconv.FormatBool(s.tls)},
		{"web.refresh-interval", strconv.Itoa(refreshInterval)},
	}
}

func (s *Server) jobManagerConfig(*http.Request) (any, error) { return s.serverConfig(), nil }

func (s *Server) jobManagerConfigOfJob(o *observe.Observed, _ *http.Request) (any, error) {
	c := o.Config()
	out := append(s.serverConfig(),
		keyValue{"parallelism.default", strconv.Itoa(c.Parallelism)},
		keyValue{"pipeline.auto-watermark-interval", strconv.FormatInt(c.WatermarkInterval.Milliseconds(), 10) + " ms"},
		keyValue{"restart-strategy.type", c.RestartStrategy},
	)
	if c.MaxParallelism > 0 {
		out = append(out, keyValue{"pipeline.max-parallelism", strconv.Itoa(c.MaxParallelism)})
	}
	slices.SortFunc(out, func(a, b keyValue) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

func environment(*http.Request) (any, error) {
	type virtualMachine struct {
		Version string   `json:"version"`
		Arch    string   `json:"arch"`
		Options []string `json:"options"`
	}
	return struct {
		JVM       virtualMachine `json:"jvm"`
		Classpath []string       `json:"classpath"`
	}{virtualMachine{runtime.Version(), runtime.GOARCH, []string{}}, []string{}}, nil
}

func environmentOfJob(_ *observe.Observed, r *http.Request) (any, error) { return environment(r) }

// Flink 2.3 wraps each job that was not submitted as a part of an application into one.
type applicationJSON struct {
	ID        string               `json:"id"`
	Name      string               `json:"name"`
	StartTime int64                `json:"start-time"`
	EndTime   int64                `json:"end-time"`
	Duration  int64                `json:"duration"`
	Status    status.State         `json:"status"`
	Jobs      map[status.State]int `json:"jobs"`
}

// applicationState has one word for the states in which a job lives.
func applicationState(s status.State) status.State {
	switch {
	case s.Ended(), s == status.Failing:
		return s
	case s == status.Cancelling:
		return status.Canceling
	default:
		return status.Running
	}
}

func (s *Server) applications(*http.Request) (any, error) {
	out := struct {
		Applications []applicationJSON `json:"applications"`
	}{[]applicationJSON{}}
	for _, o := range s.jobs.Jobs() {
		job := overviewOf(o)
		out.Applications = append(out.Applications, applicationJSON{
			job.JID, "SingleJobApplication(" + job.Name + ")", job.StartTime, job.EndTime, job.Duration,
			applicationState(job.State), map[status.State]int{job.State: 1},
		})
	}
	return out, nil
}

func application(o *observe.Observed, _ *http.Request) (any, error) {
	job := overviewOf(o)
	life := o.Read().Status.Life
	timestamps := map[status.State]int64{}
	for _, state := range []status.State{status.Created, status.Running, status.Failing, status.Failed, status.Canceled, status.Finished} {
		timestamps[state] = 0
		if t, ok := life.Since[state]; ok {
			timestamps[state] = t.UnixMilli()
		}
	}
	timestamps[status.Canceling] = 0
	if t, ok := life.Since[status.Cancelling]; ok {
		timestamps[status.Canceling] = t.UnixMilli()
	}
	return struct {
		ID         string                 `json:"id"`
		Name       string                 `json:"name"`
		StartTime  int64                  `json:"start-time"`
		EndTime    int64                  `json:"end-time"`
		Duration   int64                  `json:"duration"`
		Status     status.State           `json:"status"`
		Timestamps map[status.State]int64 `json:"timestamps"`
		Jobs       []jobOverview          `json:"jobs"`
	}{job.JID, "SingleJobApplication(" + job.Name + ")", job.StartTime, job.EndTime, job.Duration,
		applicationState(job.State), timestamps, []jobOverview{job}}, nil
}

// applicationExceptions are failures of an application's own code, which there is none of.
func applicationExceptions(*observe.Observed, *http.Request) (any, error) {
	type history struct {
		Entries []exceptionJSON `json:"entries"`
	}
	return struct {
		History history `json:"exceptionHistory"`
	}{history{[]exceptionJSON{}}}, nil
}

func noDataSets(*http.Request) (any, error) {
	return struct {
		Sets []string `json:"dataSets"`
	}{[]string{}}, nil
}
