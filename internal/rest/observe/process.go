package observe

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Process is the numbers of this process, which is Flink's JobManager and its one
// TaskManager at once.
type Process struct {
	CPUs, Goroutines                int
	HeapUsed, HeapCommitted         int64
	HeapMax                         int64 // the memory limit, or the machine's memory
	PhysicalMemory                  int64 // 0 where nobody tells
	OtherUsed                       int64 // stacks and the runtime's own
	CollectionCount, CollectionTime int64 // the time in milliseconds
	CPUTime                         time.Duration
}

// ReadProcess reads them.
func ReadProcess() Process {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/user:cpu-seconds"},
	}
	metrics.Read(samples)
	physical := physicalMemory()
	heap := int64(samples[0].Value.Uint64())
	committed := int64(samples[1].Value.Uint64() - samples[2].Value.Uint64())
	return Process{
		CPUs:            runtime.NumCPU(),
		Goroutines:      runtime.NumGoroutine(),
		HeapUsed:        heap,
		HeapCommitted:   committed,
		HeapMax:         heapLimit(physical),
		PhysicalMemory:  physical,
		OtherUsed:       max(0, committed-heap),
		CollectionCount: int64(samples[3].Value.Uint64()),
		CollectionTime:  int64(samples[4].Value.Float64() * 1000),
		CPUTime:         time.Duration(samples[5].Value.Float64() * float64(time.Second)),
	}
}

// Metrics are the process's numbers under the names of those of a JVM that mean the same.
func (p Process) Metrics() []Metric {
	var m metricList
	m.add("Status.JVM.Memory.Heap.Used", Whole(p.HeapUsed))
	m.add("Status.JVM.Memory.Heap.Committed", Whole(p.HeapCommitted))
	m.add("Status.JVM.Memory.Heap.Max", Whole(p.HeapMax))
	m.add("Status.JVM.Memory.NonHeap.Used", Whole(p.OtherUsed))
	m.add("Status.JVM.Threads.Count", Whole(int64(p.Goroutines)))
	m.add("Status.JVM.GarbageCollector.All.Count", Whole(p.CollectionCount))
	m.add("Status.JVM.GarbageCollector.All.Time", Whole(p.CollectionTime))
	m.add("Status.JVM.CPU.Time", Whole(int64(p.CPUTime)))
	return m
}

// physicalMemory returns the machine's memory in bytes, 0 where nobody tells.
func physicalMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	return 0
}

// heapLimit is what the heap may grow to.
func heapLimit(physical int64) int64 {
	limit := debug.SetMemoryLimit(-1) // asks, and changes nothing
	if physical > 0 {
		return min(limit, physical)
	}
	return limit
}
