package observe

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowwater/lowwater/status"
)

// Metric is one number under Flink's name.
type Metric struct {
	// Name is without its scope, such as "currentOffset".
	Name string
	// Group is between the scope and the name, empty for most.
	Group Group
	Value Value
}

// Group is a part of a metric's name that holds variables.
type Group struct {
	// Path is what the REST API shows, such as "KafkaSourceReader.topic.t.partition.0".
	Path string
	// Logical is the same without variables, which are Labels.
	Logical string
	Labels  []Label
}

// Label is one variable of a group.
type Label struct{ Name, Value string }

// ID is the metric's name within its scope.
func (m Metric) ID() string {
	if m.Group.Path == "" {
		return m.Name
	}
	return m.Group.Path + "." + m.Name
}

// Value is a number, or a text that Prometheus does not see.
type Value struct {
	number float64
	// whole is the number if it is one without a fraction, so that watermarks stay exact.
	whole   int64
	isWhole bool
	text    string
}

// Whole returns a number without a fraction.
func Whole(n int64) Value            { return Value{number: float64(n), whole: n, isWhole: true} }
func fraction(f float64) Value       { return Value{number: f} }
func text(s string) Value            { return Value{number: math.NaN(), text: s} }
func duration(d time.Duration) Value { return Whole(d.Milliseconds()) }

// Number returns the value as a number; ok is false for texts.
func (v Value) Number() (n float64, ok bool) { return v.number, v.text == "" }

// String writes the value as Flink's REST API does.
func (v Value) String() string {
	switch {
	case v.text != "":
		return v.text
	case v.isWhole:
		return strconv.FormatInt(v.whole, 10)
	default:
		return JavaDouble(v.number)
	}
}

// JavaDouble writes f as Java does: always with a fraction.
func JavaDouble(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.Replace(fmt.Sprint(f), "Inf", "Infinity", 1), "+")
	case f != 0 && (math.Abs(f) >= 1e7 || math.Abs(f) < 1e-3):
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'E', -1, 64), "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, _ := strconv.Atoi(exponent)
		return mantissa + "E" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// maxOperatorName is where Flink cuts the names of operators.
const maxOperatorName = 80

var scopeCharacters = strings.NewReplacer(" ", "_", ".", "_", ":", "_", ",", "_")

// ScopeName is a name as a part of a metric's name.
func ScopeName(name string) string { return scopeCharacters.Replace(name) }

// ScopeName is the operator's part of the names of its metrics.
func (o *Operator) ScopeName() string {
	name := []rune(o.Name)
	return ScopeName(string(name[:min(len(name), maxOperatorName)]))
}

// metricList collects metrics.
type metricList []Metric

func (m *metricList) add(name string, v Value) { *m = append(*m, Metric{Name: name, Value: v}) }

func (m *metricList) addTo(g Group, name string, v Value) { *m = append(*m, Metric{name, g, v}) }

// count adds a counter and its rate.
func (m *metricList) count(name string, n int64, perSecond float64) {
	m.add(name, Whole(n))
	m.add(name+"PerSecond", fraction(perSecond))
}

// TaskMetrics are those of a subtask as a whole.
func (r *Reading) TaskMetrics(vertex, subtask int) []Metric {
	s := r.Subtask(vertex, subtask)
	now := &r.Status.Vertices[vertex].Subtasks[subtask]
	var m metricList
	m.count("numRecordsIn", s.RecordsIn, s.RecordsInPerSecond)
	m.count("numRecordsOut", s.RecordsOut, s.RecordsOutPerSecond)
	m.add("busyTimeMsPerSecond", fraction(math.Round(s.Busy)))
	m.add("idleTimeMsPerSecond", Whole(int64(s.Idle)))
	m.add("softBackPressuredTimeMsPerSecond", Whole(int64(s.SoftBackPressured)))
	m.add("hardBackPressuredTimeMsPerSecond", Whole(int64(s.HardBackPressured)))
	m.add("backPressuredTimeMsPerSecond", Whole(int64(s.BackPressured())))
	m.add("accumulateBusyTimeMs", fraction(float64(now.Busy.Milliseconds())))
	m.add("accumulateIdleTimeMs", duration(now.Idle))
	m.add("accumulateBackPressuredTimeMs", duration(now.SoftBackPressured+now.HardBackPressured))
	m.add("isBackPressured", text(strconv.FormatBool(s.BackPressured() > 0)))
	if r.Plan.Vertices[vertex].Kind != KindSource {
		m.add("currentInputWatermark", Whole(inputWatermark(&now.Operators[0])))
	}
	return m
}

// inputWatermark is the gauge of that name: over several inputs the plain minimum, idle ones
// included (spec watermarks 9).
func inputWatermark(o *status.Operator) int64 {
	if len(o.InputWatermarks) > 0 {
		return slices.Min(o.InputWatermarks)
	}
	return o.CurrentInputWatermark
}

// OperatorMetrics are those of one operator in one subtask.
func (r *Reading) OperatorMetrics(vertex, subtask, operator int) []Metric {
	p := &r.Plan.Vertices[vertex].Operators[operator]
	now := &r.Status.Vertices[vertex].Subtasks[subtask].Operators[operator]
	before := &r.before.job.Vertices[vertex].Subtasks[subtask].Operators[operator]
	var m metricList
	m.count("numRecordsIn", now.RecordsIn, r.perSecond(now.RecordsIn, before.RecordsIn))
	m.count("numRecordsOut", now.RecordsOut, r.perSecond(now.RecordsOut, before.RecordsOut))
	if p.Kind == KindSource {
		m.count("numBytesIn", now.BytesIn, r.perSecond(now.BytesIn, before.BytesIn))
	}
	if p.Kind == KindSink {
		m.count("numBytesOut", now.BytesOut, r.perSecond(now.BytesOut, before.BytesOut))
	}
	m.add("currentOutputWatermark", Whole(now.CurrentOutputWatermark))
	if p.Kind == KindSource {
		r.sourceMetrics(&m, now, before)
		return m
	}
	m.add("currentInputWatermark", Whole(inputWatermark(now)))
	for i, t := range now.InputWatermarks {
		m.add(fmt.Sprintf("currentInput%dWatermark", i+1), Whole(t))
	}
	if p.Kind == KindWindow || now.LateRecords > 0 {
		m.add("numLateRecordsDropped", Whole(now.LateRecordsDropped))
	}
	if now.State.BudgetBytes > 0 {
		r.stateMetrics(&m, &now.State, &before.State)
	}
	return m
}

// stateMetrics are those of keyed state with a memory budget. Flink has no such budget; what
// RocksDB has of its own has other names there.
func (r *Reading) stateMetrics(m *metricList, now, before *status.KeyedState) {
	m.add("stateBudgetBytes", Whole(now.BudgetBytes))
	m.add("stateMemoryBytes", Whole(now.MemoryBytes))
	m.add("stateDiskBytes", Whole(now.DiskBytes))
	m.add("stateSpilledEntries", Whole(now.SpilledEntries))
	m.count("stateSpillReads", now.SpillReads, r.perSecond(now.SpillReads, before.SpillReads))
	m.count("stateSpillWrites", now.SpillWrites, r.perSecond(now.SpillWrites, before.SpillWrites))
}

func (r *Reading) sourceMetrics(m *metricList, now, before *status.Operator) {
	var dropped int64
	for _, d := range now.Drops {
		dropped += d.Count
	}
	m.add("numRecordsInErrors", Whole(dropped))
	if s := now.Source; s != nil {
		m.add("sourceIdleTime", duration(s.Idle))
		if s.WatermarkLagMillis != nil {
			m.add("watermarkLag", Whole(*s.WatermarkLagMillis))
		}
		lag := Whole(-1)
		if s.EventTimeLagMillis != nil {
			lag = Whole(*s.EventTimeLagMillis)
		}
		m.add("currentEmitEventTimeLag", lag)
		if s.AlignmentDriftMillis != nil {
			m.add("watermarkAlignmentDrift", Whole(*s.AlignmentDriftMillis))
		}
	}
	splitsBefore := map[string]*status.Split{}
	for i := range before.Splits {
		splitsBefore[before.Splits[i].ID] = &before.Splits[i]
	}
	var pending, lagMax int64
	var known bool
	for i := range now.Splits {
		split := &now.Splits[i]
		if split.State == status.SplitFinished {
			continue
		}
		if split.EndOffset >= 0 && split.CurrentOffset >= 0 {
			lag := max(0, split.EndOffset-split.CurrentOffset)
			known, pending, lagMax = true, pending+lag, max(lagMax, lag)
		}
		r.splitMetrics(m, split, splitsBefore[split.ID])
		kafkaMetrics(m, split)
	}
	if known {
		m.add("pendingRecords", Whole(pending))
		if now.Splits[0].Topic != "" {
			m.addTo(Group{Path: "KafkaSourceReader.KafkaConsumer", Logical: "KafkaSourceReader_KafkaConsumer"}, "records-lag-max", fraction(float64(lagMax)))
		}
	}
}

// splitMetrics are those that Flink keeps of the event time of each split. before is nil for
// a split that is new.
func (r *Reading) splitMetrics(m *metricList, now, before *status.Split) {
	g := Group{
		Path:    "split." + ScopeName(now.ID) + ".watermark",
		Logical: "split_watermark",
		Labels:  []Label{{"split", now.ID}},
	}
	if before == nil {
		before = &status.Split{}
	}
	idle := r.millisPerSecond(now.IdleFor, before.IdleFor)
	paused := r.millisPerSecond(now.PausedFor, before.PausedFor)
	m.addTo(g, "currentWatermark", Whole(now.CurrentWatermark))
	m.addTo(g, "activeTimeMsPerSecond", fraction(math.Round(max(0, 1000-idle-paused))))
	m.addTo(g, "idleTimeMsPerSecond", Whole(int64(idle)))
	m.addTo(g, "pausedTimeMsPerSecond", Whole(int64(paused)))
	m.addTo(g, "accumulatedActiveTimeMs", fraction(float64(now.ActiveFor.Milliseconds())))
	m.addTo(g, "accumulatedIdleTimeMs", duration(now.IdleFor))
	m.addTo(g, "accumulatedPausedTimeMs", duration(now.PausedFor))
}

// kafkaMetrics are those of a partition.
func kafkaMetrics(m *metricList, split *status.Split) {
	if split.Topic == "" {
		return
	}
	partition := strconv.Itoa(int(split.Partition))
	g := Group{
		Path:    "KafkaSourceReader.topic." + ScopeName(split.Topic) + ".partition." + partition,
		Logical: "KafkaSourceReader_topic_partition",
		Labels:  []Label{{"topic", split.Topic}, {"partition", partition}},
	}
	// Flink's is the offset of the last record, ours that of the next.
	last := int64(-1)
	if split.Records > 0 {
		last = split.CurrentOffset - 1
	}
	m.addTo(g, "currentOffset", Whole(last))
	m.addTo(g, "committedOffset", Whole(split.CommittedOffset))
	if split.EndOffset >= 0 && split.CurrentOffset >= 0 {
		m.addTo(g, "records-lag", fraction(float64(max(0, split.EndOffset-split.CurrentOffset))))
	}
}

// JobMetrics are those of the job as a whole. Those of checkpoints are there only if it
// takes any.
func (o *Observed) JobMetrics(r *Reading) []Metric {
	var m metricList
	life := r.Status.Life
	since := func(states ...status.State) int64 {
		for _, s := range states {
			if life.State == s {
				return r.At.Sub(life.Since[s]).Milliseconds()
			}
		}
		return 0
	}
	ended := int64(-1)
	up := since(status.Running)
	if life.State.Ended() {
		up = ended
	}
	m.add("uptime", Whole(up))
	m.add("runningTime", Whole(max(0, up)))
	down := since(status.Failing, status.Restarting)
	if life.State.Ended() {
		down = ended
	}
	m.add("downtime", Whole(down))
	m.add("restartingTime", Whole(since(status.Restarting)))
	m.add("cancellingTime", Whole(since(status.Cancelling)))
	m.add("failingTime", Whole(since(status.Failing)))
	m.add("numRestarts", Whole(r.Status.Restarts))
	if c := o.Checkpoints(); c != nil {
		checkpointMetrics(&m, c.CheckpointStats())
	}
	return m
}

func checkpointMetrics(m *metricList, c status.Checkpoints) {
	m.add("totalNumberOfCheckpoints", Whole(c.Total))
	m.add("numberOfInProgressCheckpoints", Whole(c.InProgress))
	m.add("numberOfCompletedCheckpoints", Whole(c.Completed))
	m.add("numberOfFailedCheckpoints", Whole(c.Failed))
	restored := int64(-1)
	if c.RestoredFrom != nil {
		restored = c.RestoredFrom.At.UnixMilli()
	}
	m.add("lastCheckpointRestoreTimestamp", Whole(restored))
	last := status.Checkpoint{ID: -1, StateBytes: -1, WrittenBytes: -1}
	took, at, path := int64(-1), int64(-1), "n/a"
	for _, cp := range []*status.Checkpoint{c.LatestCompleted, c.LatestSavepoint} {
		if cp != nil && cp.ID > last.ID {
			last = *cp
			took, at, path = cp.LastAck.Sub(cp.Triggered).Milliseconds(), cp.LastAck.UnixMilli(), cp.Path
		}
	}
	m.add("lastCompletedCheckpointId", Whole(last.ID))
	m.add("lastCheckpointDuration", Whole(took))
	m.add("lastCheckpointCompletedTimestamp", Whole(at))
	m.add("lastCheckpointSize", Whole(last.WrittenBytes))
	m.add("lastCheckpointFullSize", Whole(last.StateBytes))
	m.add("lastCheckpointExternalPath", text(path))
}
