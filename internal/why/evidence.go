package why

import "math"

// Ends of event time. Watermarks and event times use Flink's extremes.
const (
	// MinTime is a watermark before the first one, and an event time of nothing.
	MinTime int64 = math.MinInt64
	// MaxTime is the watermark behind the last record of a bounded input.
	MaxTime int64 = math.MaxInt64
	// Never is a wall clock time of something that has not happened: the last read of a
	// split without records. It is known; a time that nobody can tell is not.
	Never int64 = math.MinInt64
)

// Known is a value that may be unknown. The zero value is unknown.
type Known[T any] struct {
	Value T
	OK    bool
}

// Know returns a known value.
func Know[T any](v T) Known[T] { return Known[T]{v, true} }

// KnowIf returns v if ok, and an unknown value otherwise.
func KnowIf[T any](v T, ok bool) Known[T] {
	if !ok {
		return Known[T]{}
	}
	return Known[T]{v, true}
}

// Or returns the value, or what to take for an unknown one.
func (k Known[T]) Or(otherwise T) T {
	if k.OK {
		return k.Value
	}
	return otherwise
}

// Evidence is what is known of a job when it is diagnosed. All of it may be partial: a
// value that nobody could tell is unknown, a list that nobody could fill is empty. All
// times are milliseconds since the epoch.
type Evidence struct {
	Engine Engine
	Job    string
	// AtMillis is the wall clock of the diagnosis. Rules have no other clock.
	AtMillis int64
	// StartedMillis is when the job, in its present attempt, began to run; Restarts is how
	// often it was restarted before that.
	StartedMillis Known[int64]
	Restarts      Known[int64]
	// WatermarkIntervalMillis is the interval of periodic watermarks.
	WatermarkIntervalMillis Known[int64]
	Means                   Means
	Operators               []Operator // sources first, each behind its inputs
	// StandsSince is, by operators that wait for event time, when they came to have the
	// watermark that they have, where somebody has looked for longer than History goes back.
	StandsSince map[string]int64
	// History is what was seen at several times, oldest first; the last is the present.
	// Two that are some seconds apart tell what moves; a rule that needs to know that says
	// so if there is only one.
	History []Snapshot
}

// Engine is what runs the job. Fixes are shown for it.
type Engine struct {
	Name    EngineName
	Version string // "2.3.0", empty if unknown
}

// EngineName names an engine.
type EngineName string

// The engines that fixes are known for.
const (
	Lowwater EngineName = "lowwater"
	Flink    EngineName = "flink"
	FlinkSQL EngineName = "flink-sql"
)

// Means says what could be asked. A finding that lacks a means says so.
type Means struct {
	// Engine: watermarks and counters of the subtasks, by REST or from the job itself.
	Engine bool
	// SplitGauges: watermark and state of single splits (Flink from 2.1 on).
	SplitGauges bool
	// KafkaOffsets: end offsets and times of the last append.
	KafkaOffsets bool
	// KafkaRecords: records can be read: payload times of the last record, profiles.
	KafkaRecords bool
}

// OperatorKind says what an operator does to event time.
type OperatorKind string

// What operators do to event time.
const (
	KindSource OperatorKind = "source"
	// KindAssign: timestamps and watermarks are assigned behind the source.
	KindAssign OperatorKind = "assign"
	KindWindow OperatorKind = "window"
	// KindConnect and KindJoin have two inputs or more.
	KindConnect OperatorKind = "connect"
	KindJoin    OperatorKind = "join"
	KindFilter  OperatorKind = "filter"
	// KindPlain passes watermarks on and needs none: a map, a sink.
	KindPlain OperatorKind = "plain"
	// KindTimers is a function that may wait for event time in ways of its own.
	KindTimers OperatorKind = "timers"
	// KindMaybeTimers is one that may do so: Subtask.EventTimers says whether it does.
	KindMaybeTimers OperatorKind = "maybe-timers"
)

// Operator is one operator of the job.
type Operator struct {
	// ID is unique in the job and what snapshots refer to. Name is shown to people.
	ID   string
	Name string
	// Vertex is the task that runs it; chained operators share one. Empty: its ID.
	Vertex      string
	Kind        OperatorKind
	Parallelism int
	// Inputs are the logical inputs, one for most, two of a connect. None: a source.
	Inputs []Input
	// Source is set for sources.
	Source *Source
	// Strategy is set for KindAssign; unknown fields are unknown.
	Strategy *Strategy
	// Window is set for windows whose definition is known.
	Window *Window
	// NeverFires is set for windows that nothing will ever fire.
	NeverFires bool
	// SilenceMillis is after how long without any record windows close by themselves, 0 for
	// never.
	SilenceMillis int64
	// Interval is set for joins that pair records as they come: they wait for event time only
	// to forget what can find no partner any more.
	Interval bool
}

// Input is a logical input; with several edges it is a union.
type Input struct {
	Edges     []Edge
	Broadcast bool
}

// Edge is how records come from one operator.
type Edge struct {
	From string // ID
	Ship Ship
}

// Ship is how an edge distributes records over subtasks.
type Ship string

// The ways of an edge. An empty Ship is unknown and is taken for ShipHash, which reaches
// every subtask.
const (
	ShipForward   Ship = "forward"
	ShipHash      Ship = "hash"
	ShipRebalance Ship = "rebalance"
	ShipRescale   Ship = "rescale"
	ShipBroadcast Ship = "broadcast"
)

// Source is what an operator reads.
type Source struct {
	Topics []string
	// Strategy is nil if nobody knows it; one with StrategyNone is known to be missing.
	Strategy *Strategy
	// Bounded: the source ends by itself.
	Bounded Known[bool]
}

// StrategyKind is how watermarks are made.
type StrategyKind string

// The kinds of strategies.
const (
	StrategyUnknown    StrategyKind = ""
	StrategyNone       StrategyKind = "none"
	StrategyBounded    StrategyKind = "bounded"
	StrategyMonotonous StrategyKind = "monotonous"
	// StrategyWallClock follows the wall clock.
	StrategyWallClock StrategyKind = "wallclock"
	// StrategyRows takes watermarks from the records, as SQL does.
	StrategyRows   StrategyKind = "rows"
	StrategyCustom StrategyKind = "custom"
)

// TimestampSource is where event times come from.
type TimestampSource string

// Where event times come from.
const (
	TimestampsUnknown TimestampSource = ""
	// FromPayload: an assigner takes them from the record.
	FromPayload TimestampSource = "payload"
	// FromRecord: the timestamp of the Kafka record; there is no assigner.
	FromRecord TimestampSource = "record"
)

// Strategy is a watermark strategy as far as it is known.
type Strategy struct {
	Kind StrategyKind
	// BoundMillis is the out-of-orderness bound, or the delay of a wall clock.
	BoundMillis Known[int64]
	// IdlenessMillis is the idle timeout; 0: known to be off.
	IdlenessMillis Known[int64]
	Timestamps     TimestampSource
	// MaxFutureMillis limits how far ahead of the clock a record may move the watermark;
	// unknown if there is no limit.
	MaxFutureMillis Known[int64]
	Alignment       *Alignment
}

// Alignment makes sources wait for each other.
type Alignment struct {
	Group        string // empty if unknown
	DriftMillis  Known[int64]
	UpdateMillis Known[int64]
}

// WindowKind is a kind of window.
type WindowKind string

// The kinds of windows.
const (
	Tumbling WindowKind = "tumbling"
	Sliding  WindowKind = "sliding"
	Session  WindowKind = "session"
)

// Window is the definition of a window operator. Lengths that do not apply are 0. Windows
// that cumulate are sliding ones here: they end every SlideMillis, the step, and the longest
// is of SizeMillis.
type Window struct {
	Kind           WindowKind
	SizeMillis     int64
	SlideMillis    int64
	OffsetMillis   int64
	GapMillis      int64
	LatenessMillis int64
}

// everyMillis returns how often a window ends: the slide of sliding ones, which may be long
// and end often. Sessions end after their gap.
func (w *Window) everyMillis() int64 {
	switch {
	case w.Kind == Session:
		return w.GapMillis
	case w.Kind == Sliding && w.SlideMillis > 0:
		return w.SlideMillis
	}
	return w.SizeMillis
}

// Snapshot is what was seen at one moment.
type Snapshot struct {
	AtMillis int64
	// Subtasks are of all operators, sources included.
	Subtasks []Subtask
	Splits   []Split
	Tasks    []Task
}

// WholeOperator is the Index of numbers that are of an operator as a whole: watermarks are
// the smallest, counters the sums.
const WholeOperator = -1

// Subtask is one subtask of one operator. Counters are since the start of the attempt.
type Subtask struct {
	Operator string // ID
	Index    int
	// InputWatermark is the smallest over the inputs; InputWatermarks is by input.
	InputWatermark  Known[int64]
	InputWatermarks []Known[int64]
	OutputWatermark Known[int64]
	// Idle: it has told those behind it that it is idle.
	Idle       Known[bool]
	RecordsIn  Known[int64]
	RecordsOut Known[int64]
	// LateDropped are the records that were dropped as late, LateOutput those that went to a
	// side output instead: nobody has lost them. Flink does not count these.
	LateDropped Known[int64]
	LateOutput  Known[int64]
	OpenWindows Known[int64]
	// EventTimers: it has registered an event-time timer since its start. NextTimerMillis is
	// the time of the earliest that is pending, MaxTime if none is.
	EventTimers     Known[bool]
	NextTimerMillis Known[int64]
	// State has a budget for its memory; without one all of it is 0.
	State KeyedState
	// LateBySplit and LateSamples are of engines that know where a late record came from,
	// whatever became of it.
	LateBySplit []LateCount
	LateSamples []LateSample
}

// KeyedState is state that goes to disk when it takes more memory than its budget.
type KeyedState struct {
	BudgetBytes, MemoryBytes int64
	// SpilledEntries are on disk, in files of DiskBytes.
	SpilledEntries, DiskBytes int64
	// SpillReads counts the entries looked for on disk, SpillWrites those written there.
	SpillReads, SpillWrites int64
}

// LateCount is the late records of one split.
type LateCount struct {
	Source    string // ID
	Split     string // as the ID of a Split
	Topic     string
	Partition int32
	Count     int64
}

// LateSample is one late record.
type LateSample struct {
	EventMillis     int64
	WatermarkMillis int64
	Key             string
	Split           string // as the ID of a Split
	Topic           string
	Partition       int32
	Offset          int64
}

// SplitState says how a split takes part in event time.
type SplitState string

// States of splits.
const (
	SplitActive   SplitState = "active"
	SplitIdle     SplitState = "idle"
	SplitPaused   SplitState = "paused" // by alignment
	SplitFinished SplitState = "finished"
)

// Split is one partition as read by a source, and as Kafka tells it. A partition that no
// subtask reads has an unknown Subtask and Unassigned set.
type Split struct {
	Source string // ID
	// ID is set for a split that is no partition of Kafka; Topic is empty then.
	ID        string
	Topic     string
	Partition int32
	Subtask   Known[int]
	// Unassigned: the partition exists, and it is known that no subtask reads it.
	Unassigned bool

	// From the engine.
	Watermark Known[int64]
	State     Known[SplitState]
	// Milliseconds per second in each state; they add up to 1000.
	ActiveMillisPerSecond Known[int64]
	IdleMillisPerSecond   Known[int64]
	PausedMillisPerSecond Known[int64]
	Records               Known[int64]
	// LastReadMillis is the wall clock of the last record, or Never.
	LastReadMillis Known[int64]
	// LongestPauseMillis is the longest time between two records so far.
	LongestPauseMillis Known[int64]
	// MaxEventMillis is the largest event time as assigned, MinTime without records.
	MaxEventMillis Known[int64]
	// FutureRecords are those too far ahead of the clock to move the watermark.
	FutureRecords Known[int64]

	// From Kafka, or from the consumer.
	PositionOffset Known[int64] // next offset to read
	EndOffset      Known[int64]
	// EndLost: the reader knew the end and does not any more, since Kafka does not answer it.
	EndLost bool
	// Lag is the records still to be read; if unknown it is End - Position.
	Lag Known[int64]
	// LastAppendMillis is the wall clock of the last append, or Never.
	LastAppendMillis Known[int64]
	// LastRecordMillis is the Kafka timestamp of the last record; -1: it has none; MinTime:
	// there is no record.
	LastRecordMillis Known[int64]
	// LastPayloadMillis is the event time in the payload of the last record, in the unit
	// that the job is said to take it for; MinTime: there is no record.
	LastPayloadMillis Known[int64]
	// Profile is what records read back from Kafka look like.
	Profile *Profile
}

// Profile summarizes records of one partition that were read back, in offset order. Event
// times are as the job would assign them.
type Profile struct {
	Records int64
	// FirstAppendMillis and LastAppendMillis are when the first and the last of them were
	// appended.
	FirstAppendMillis int64
	LastAppendMillis  int64
	// DisorderMillis is the largest distance of a record behind the largest event time
	// before it; records that are far in the future do not count as such.
	DisorderMillis int64
	// DelaySpreadMillis is the largest difference between two records in their age on
	// arrival (append time less event time), again without those in the future. A bound that
	// covers it suffices however the records mix.
	DelaySpreadMillis int64
	// Gaps are the longest times without an append between two records, longest first, at
	// most 32.
	Gaps []Gap
	// MaxAheadMillis is the largest distance of an event time ahead of its append time, and
	// Ahead are the latest records more than a minute ahead, oldest first, at most 8.
	MaxAheadMillis int64
	AheadRecords   int64
	Ahead          []AheadRecord
	// PayloadBehindRecordMillis is the largest distance between the time in the payload and
	// the Kafka timestamp.
	PayloadBehindRecordMillis int64
	// SteadiestGapMillis is, over keys with at least 10 records, the smallest of their
	// largest distances between two events, or from their last one to the newest of all;
	// unknown if there is no such key. SteadiestSpanMillis is from its first event to its last.
	SteadiestGapMillis  Known[int64]
	SteadiestSpanMillis int64
	SteadiestKey        string
}

// Gap is a time without appends.
type Gap struct{ FromMillis, ToMillis int64 }

// Millis returns how long the gap is.
func (g Gap) Millis() int64 { return g.ToMillis - g.FromMillis }

// AheadRecord is a record ahead of the clock.
type AheadRecord struct {
	Offset       int64
	Key          string
	EventMillis  int64
	AppendMillis int64
}

// Task is where the time of a subtask went, in milliseconds per second.
type Task struct {
	Vertex              string
	Subtask             int
	BusyMillis          Known[int64]
	BackPressuredMillis Known[int64]
	IdleMillis          Known[int64]
}
