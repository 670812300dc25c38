package why

import "slices"

// Entry describes a code for people. docs/why.md has a row for each.
type Entry struct {
	Code    Code
	Meaning string
	// Needs is the evidence that a sure finding takes.
	Needs string
	// Fixes are what is proposed, best first.
	Fixes []FixCode
	// explains are the codes that are its consequences.
	explains []Code
}

var fromLateness = []Code{BoundTooSmall, IdlenessTooShort, NotEnoughEvidence, RestoreLateness}

// registry is all codes. A code is named before those that are found at the same severity
// beside it.
var registry = []Entry{
	{TimestampsInSeconds, "Timestamps are seconds and are taken for milliseconds: event time is in January 1970.",
		"an event time or a watermark", []FixCode{ConvertUnit},
		append([]Code{QuietPartition, QuietInput, EventTimeSkew, DelayByDesign, StrategyAfterSource, WallClockWatermark, AllRecordsLate, PartitionLag, FutureTimestamp, WindowNotDue, TimezoneShift, NoTimestampAssigner, TimestampsStandStill}, fromLateness...)},
	{TimestampsTooFine, "Timestamps are micro- or nanoseconds and are taken for milliseconds: event time is in the far future.",
		"an event time or a watermark", []FixCode{ConvertUnit, BoundFutureTimestamps},
		append([]Code{FutureTimestamp, StrategyAfterSource, EventTimeSkew, AllRecordsLate, DelayByDesign, QuietPartition, QuietInput, TimezoneShift, NoTimestampAssigner, WallClockWatermark, TimestampsStandStill}, fromLateness...)},
	{TimestampsMissing, "Records have no time: their timestamps are 0 or close to it, decades before the clock or the records of others.",
		"an event time or a watermark, best two looks", []FixCode{CheckTimestamps, AddTimestampAssigner},
		append([]Code{TimestampsStandStill, QuietPartition, QuietInput, EventTimeSkew, DelayByDesign, StrategyAfterSource, WallClockWatermark, AllRecordsLate, PartitionLag, WindowNotDue, TimezoneShift, NoTimestampAssigner}, fromLateness...)},
	{TimezoneShift, "Every record of a source is whole (or half) hours off: local time taken for UTC.",
		"ahead of the clock watermarks, or records from Kafka; behind it a steady delay looks the same", []FixCode{FixTimezone},
		append([]Code{FutureTimestamp, EventTimeSkew, StrategyAfterSource, DelayByDesign, AllRecordsLate, WindowNotDue, QuietInput, NoTimestampAssigner}, fromLateness...)},
	{FutureTimestamp, "A few records far ahead of the wall clock pushed the watermark there.",
		"a watermark, best with records from Kafka", []FixCode{BoundFutureTimestamps, FixProducerClock},
		append([]Code{StrategyAfterSource, AllRecordsLate, EventTimeSkew, QuietPartition, QuietInput, AllInputsQuiet, DelayByDesign, TimestampsStandStill}, fromLateness...)},
	{MaxWatermarkLeak, "The watermark at the end of time, of a reader that has ended or had nothing to read, reached operators that still get records.",
		"watermarks", []FixCode{UpgradeEngine, LowerSourceParallelism}, append([]Code{FutureTimestamp, AllRecordsLate, WallClockWatermark, StrategyAfterSource}, fromLateness...)},
	{NoWatermarkStrategy, "An input has no watermark generator: event time never begins.",
		"watermarks, or the description of the job", []FixCode{AddStrategy},
		[]Code{QuietPartition, QuietInput, AllInputsQuiet, OverParallelSource, EventTimeSkew, DelayByDesign, WindowNotDue, WatermarkDropped}},
	{SideInputWithout, "One input of an operator with two has no watermark generator and pins the minimum of both.",
		"watermarks, or the description of the job", []FixCode{StrategyOnSideInput},
		[]Code{QuietPartition, QuietInput, AllInputsQuiet, NoWatermarkStrategy, OverParallelSource, EventTimeSkew, WatermarkDropped}},
	{OverParallelSource, "Source subtasks without a split never have a watermark and pin the minimum.",
		"watermarks by subtask and the number of partitions", []FixCode{LowerSourceParallelism, SetIdleness},
		[]Code{WatermarkDropped, EventTimeSkew, FilteredBeforeGenerator}},
	{FilteredBeforeGenerator, "A filter before the generator leaves it no records to make watermarks from.",
		"watermarks and counters by subtask", []FixCode{MoveStrategyToSource, SetIdleness},
		[]Code{QuietPartition, QuietInput, AllInputsQuiet, WatermarkDropped, StrategyAfterSource, EventTimeSkew}},
	{WatermarkDropped, "An operator gets watermarks and does not pass them on.",
		"input and output watermark of the operator", []FixCode{FixOperator, UpgradeEngine},
		[]Code{QuietPartition, QuietInput, AllInputsQuiet, DelayByDesign}},
	{AlignmentBlocked, "Aligned sources wait for a member that has no records.",
		"watermarks, best with gauges of splits", []FixCode{SetIdleness, RaiseDrift},
		[]Code{QuietInput, QuietPartition, AllInputsQuiet, PartitionLag, StalledReader, Backpressure, EventTimeSkew}},
	{StalledReader, "Records wait, and the reader does not read them: it stopped, has no access, gets no answer, or was never given the partition.",
		"offsets from Kafka", []FixCode{RestartReader, CheckBrokerAccess},
		[]Code{QuietPartition, QuietInput, PartitionLag, EventTimeSkew, AllInputsQuiet}},
	{BusinessHours, "Inputs are silent at hours at which they always are.",
		"the history of appends from Kafka", []FixCode{ProcessingTimeTimeout, HeartbeatRecords}, []Code{AllInputsQuiet, QuietPartition, QuietInput}},
	{AllInputsQuiet, "Nothing arrives anywhere: open windows wait for a later record.",
		"times of the last records", []FixCode{ProcessingTimeTimeout, HeartbeatRecords, CheckProducer}, []Code{QuietPartition, QuietInput, EventTimeSkew}},
	{QuietInput, "A whole source of a union, connect or join has no records and pins the minimum.",
		"times of the last records", []FixCode{SetIdleness, CheckProducer, HeartbeatRecords}, []Code{EventTimeSkew, QuietPartition}},
	{QuietPartition, "A split without new records pins the minimum, while others of the source flow.",
		"offsets from Kafka or gauges of splits", []FixCode{SetIdleness, CheckProducer, HeartbeatRecords}, []Code{EventTimeSkew}},
	{TimestampsStandStill, "Records come, and their timestamps do not rise: a clock of a producer that stands, or a field that always has the same value.",
		"gauges of splits, or records from Kafka", []FixCode{CheckTimestamps, FixProducerClock}, []Code{EventTimeSkew, WindowNotDue}},
	{SessionNeverGaps, "Keys of a session window have records more often than the gap: their sessions never end.",
		"open windows, or records from Kafka", []FixCode{CapSessionLength, ExcludeHeartbeats}, nil},
	{WallClockWatermark, "The watermark follows the wall clock, and the records are older.",
		"the description of the job, or event times", []FixCode{WatermarkFromEvents}, append([]Code{AllRecordsLate, StrategyAfterSource, IdleWhileBlocked, EventTimeSkew, TimezoneShift, NoTimestampAssigner}, fromLateness...)},
	{AllRecordsLate, "Every record is late: the watermark is ahead of all of them, and what made it is not known.",
		"event times and watermarks", []FixCode{WatermarkFromEvents}, fromLateness},
	{IdleWhileBlocked, "A split with a backlog was taken for idle while its reader was blocked; its records come back late.",
		"offsets from Kafka", []FixCode{RemoveBottleneck, RaiseIdleness, UpgradeEngine}, append([]Code{Backpressure, PartitionLag}, fromLateness...)},
	{StrategyAfterSource, "Watermarks are made behind the source, of several partitions mixed, not per split.",
		"the description of the job, or watermarks", []FixCode{MoveStrategyToSource}, fromLateness},
	{IdlenessTooShort, "The idle timeout is shorter than pauses that are normal; the records after a pause are late.",
		"gauges of splits, or records from Kafka", []FixCode{RaiseIdleness, LateSideOutput}, []Code{BoundTooSmall, NotEnoughEvidence}},
	{BoundTooSmall, "Records are further out of order than the bound allows.",
		"late counters; how far takes records from Kafka or samples", []FixCode{RaiseBound, LateSideOutput}, nil},
	{RestoreLateness, "Late or double results, only around a restart.",
		"counters from before and after the restart", []FixCode{LateSideOutput, Wait}, nil},
	{NoTimestampAssigner, "Event time is the Kafka timestamp, or none; the time in the payload is ignored.",
		"the description of the job and records from Kafka", []FixCode{AddTimestampAssigner}, []Code{BoundTooSmall, EventTimeSkew, TimestampsStandStill}},
	{WindowDefinition, "The window is mis-defined: a wrong unit, gaps between windows.",
		"the description of the job", []FixCode{FixOperator}, []Code{WindowNotDue}},
	{DelayByDesign, "The out-of-orderness bound explains the wait.",
		"the bound, or event times and watermarks", []FixCode{LowerBound, EarlyResults}, []Code{WindowNotDue}},
	{DataSkew, "A few keys have most of the records: the subtask that has them is slower than they come, while others wait.",
		"load and records of subtasks, best with offsets from Kafka", []FixCode{SplitHotKeys, RemoveBottleneck}, []Code{PartitionLag, EventTimeSkew}},
	{Backpressure, "All partitions fall behind, because an operator is slower than the input, or does not get on at all.",
		"load of tasks, best with offsets from Kafka", []FixCode{ScaleOperator, RemoveBottleneck, RepartitionKey}, []Code{PartitionLag, EventTimeSkew}},
	{AlignmentThrottle, "Aligned sources are capped by drift per update.",
		"gauges of splits, or offsets from Kafka", []FixCode{RaiseDrift, ShortenUpdateInterval}, []Code{PartitionLag, EventTimeSkew, Backpressure}},
	{PartitionLag, "Records of one partition, or a few, are not read as fast as they come.",
		"offsets from Kafka", []FixCode{RepartitionKey, ScaleSource}, []Code{EventTimeSkew}},
	{EventTimeSkew, "Everything is read in time, but a split or a source carries older event times.",
		"event times by split", []FixCode{SeparateBackfill, AlignSources}, nil},
	{WindowNotDue, "The first window is not over: nothing is wrong.", "the description of the job", []FixCode{Wait, EarlyResults}, nil},
	{NotEnoughEvidence, "Something is wrong, or may be, and what was seen does not tell what.", "see what the report could not see", nil, nil},
	{JobNotRunning, "The job does not run: it has failed and waits to be started again, or it is cancelled and waits for user code.", "", nil, nil},
	{JobRestarts, "The job runs and has failed before: again and again (`stall`), or lately (`none`).", "", nil, nil},
	{JobEnded, "The job has ended: how, when, and with which failure.", "", nil, nil},
	{None, "Nothing holds event time back.", "", nil, nil},
}

// Registry returns the description of every code.
func Registry() []Entry { return slices.Clone(registry) }

func entryOf(c Code) *Entry { return &registry[order(c)] }

// order is the place of a code in the registry.
func order(c Code) int {
	return slices.IndexFunc(registry, func(e Entry) bool { return e.Code == c })
}
