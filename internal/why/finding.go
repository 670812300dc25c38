package why

// Code names a finding. The names are stable: scripts compare them.
type Code string

// The codes of findings. Registry says what each means.
const (
	QuietPartition          Code = "quiet-partition"
	OverParallelSource      Code = "over-parallel-source"
	QuietInput              Code = "quiet-input"
	AllInputsQuiet          Code = "all-inputs-quiet"
	BusinessHours           Code = "business-hours"
	NoWatermarkStrategy     Code = "no-watermark-strategy"
	SideInputWithout        Code = "side-input-without-watermarks"
	NoTimestampAssigner     Code = "no-timestamp-assigner"
	TimestampsInSeconds     Code = "timestamps-in-seconds"
	TimestampsTooFine       Code = "timestamps-too-fine"
	TimestampsMissing       Code = "timestamps-missing"
	TimestampsStandStill    Code = "timestamps-stand-still"
	TimezoneShift           Code = "timezone-shift"
	FutureTimestamp         Code = "future-timestamp"
	StrategyAfterSource     Code = "strategy-after-source"
	FilteredBeforeGenerator Code = "filtered-before-generator"
	IdlenessTooShort        Code = "idleness-too-short"
	IdleWhileBlocked        Code = "idle-while-blocked"
	BoundTooSmall           Code = "bound-too-small"
	DelayByDesign           Code = "delay-by-design"
	WindowNotDue            Code = "window-not-due"
	AlignmentBlocked        Code = "alignment-blocked"
	AlignmentThrottle       Code = "alignment-throttle"
	PartitionLag            Code = "partition-lag"
	DataSkew                Code = "data-skew"
	Backpressure            Code = "backpressure"
	StalledReader           Code = "stalled-reader"
	EventTimeSkew           Code = "event-time-skew"
	WallClockWatermark      Code = "wallclock-watermark"
	AllRecordsLate          Code = "all-records-late"
	MaxWatermarkLeak        Code = "max-watermark-leak"
	RestoreLateness         Code = "restore-lateness"
	WatermarkDropped        Code = "watermark-dropped-in-operator"
	SessionNeverGaps        Code = "session-never-gaps"
	WindowDefinition        Code = "window-definition"
	// NotEnoughEvidence: something is wrong, and what was seen does not tell what.
	NotEnoughEvidence Code = "not-enough-evidence"
	// JobEnded: the job has no event time any more that could stand still.
	JobEnded Code = "job-ended"
	// JobNotRunning: it has failed and is to run again, or is to end.
	JobNotRunning Code = "job-not-running"
	// JobRestarts: it runs, and has failed before.
	JobRestarts Code = "job-restarts"
	// None: nothing holds event time back.
	None Code = "none"
)

// Severity says what a finding does to results.
type Severity string

// Severities, the worst first.
const (
	Stall       Severity = "stall" // no results any more, or none ever
	Loss        Severity = "loss"  // records are dropped as late
	WrongResult Severity = "wrong-result"
	Slow        Severity = "slow" // results come, but too late
	Fine        Severity = "none" // for information
)

// rank orders severities, the worst first.
func (s Severity) rank() int {
	switch s {
	case Stall:
		return 0
	case Loss:
		return 1
	case WrongResult:
		return 2
	case Slow:
		return 3
	}
	return 4
}

// Diagnosis is what the rules found, the answer first.
type Diagnosis struct {
	Job      string
	AtMillis int64
	Engine   Engine
	// Findings are ranked: the first is the answer. There is always one, with the code None
	// if nothing is wrong.
	Findings []Finding
	// Blind says what could not be seen and what it would have told.
	Blind []string
	// Failed says what could not be asked although it was to be: news also if nothing is
	// wrong.
	Failed []string
}

// Answer returns the first finding.
func (d *Diagnosis) Answer() *Finding { return &d.Findings[0] }

// Finding is one thing that holds event time back, lets it run ahead, or loses records.
type Finding struct {
	Code     Code
	Severity Severity
	Culprit  Culprit
	// Answer is one sentence for people, Why is more of them.
	Answer string
	Why    []string
	// Numbers prove it, the most telling first.
	Numbers []Number
	// RuledOut are causes that look the same, with the number that excludes each.
	RuledOut []RuledOut
	// Unless are causes that look the same and could not be told apart for want of means.
	// A finding with some of them is likely, not sure.
	Unless []Unless
	Fixes  []Fix
	// Then are the causes that come next once this one is out of the way.
	Then []Code
	// Consequences are findings that this one explains.
	Consequences []Code
}

// Culprit places a finding. What does not apply is empty.
type Culprit struct {
	Source     string // ID of the operator
	Topic      string
	Partitions []int32
	Subtasks   []int
	Operator   string
	Key        string
	// Input is the number of the input of Operator, from 0.
	Input Known[int]
	// Paused are the sources that wait for Source.
	Paused []string
}

// Number is a value with a name whose ending is its unit: gap_ms.
type Number struct {
	Name  string
	Value int64
}

// Number returns a number of the finding by its name.
func (f *Finding) Number(name string) (int64, bool) {
	for _, n := range f.Numbers {
		if n.Name == name {
			return n.Value, true
		}
	}
	return 0, false
}

// RuledOut is a cause that it is not.
type RuledOut struct {
	Code    Code
	Because string
}

// Unless is a cause that it could also be, and what would tell.
type Unless struct {
	Code  Code
	Needs string
}

// FixCode names a change. The names are stable.
type FixCode string

// The fixes.
const (
	AddStrategy              FixCode = "add-strategy"
	AddTimestampAssigner     FixCode = "add-timestamp-assigner"
	AlignSources             FixCode = "align-sources"
	BoundFutureTimestamps    FixCode = "bound-future-timestamps"
	CapSessionLength         FixCode = "cap-session-length"
	ChangeRecordKey          FixCode = "change-record-key"
	CheckBrokerAccess        FixCode = "check-broker-access"
	CheckProducer            FixCode = "check-producer"
	CheckTimestamps          FixCode = "check-timestamps"
	ConvertUnit              FixCode = "convert-unit"
	EarlyResults             FixCode = "early-results"
	EnablePartitionDiscovery FixCode = "enable-partition-discovery"
	ExcludeHeartbeats        FixCode = "exclude-heartbeats"
	FixOperator              FixCode = "fix-operator"
	FixProducerClock         FixCode = "fix-producer-clock"
	FixTimezone              FixCode = "fix-timezone"
	HeartbeatRecords         FixCode = "heartbeat-records"
	LateSideOutput           FixCode = "late-side-output"
	LowerBound               FixCode = "lower-bound"
	LowerSourceParallelism   FixCode = "lower-source-parallelism"
	MoveStrategyToSource     FixCode = "move-strategy-to-source"
	ProcessingTimeTimeout    FixCode = "processing-time-timeout"
	RaiseBound               FixCode = "raise-bound"
	RaiseDrift               FixCode = "raise-drift"
	RaiseIdleness            FixCode = "raise-idleness"
	RemoveBottleneck         FixCode = "remove-bottleneck"
	RepartitionKey           FixCode = "repartition-key"
	RestartReader            FixCode = "restart-reader"
	ScaleOperator            FixCode = "scale-operator"
	ScaleSource              FixCode = "scale-source"
	SeparateBackfill         FixCode = "separate-backfill"
	SetIdleness              FixCode = "set-idleness"
	ShortenUpdateInterval    FixCode = "shorten-update-interval"
	SplitHotKeys             FixCode = "split-hot-keys"
	StrategyOnSideInput      FixCode = "strategy-on-side-input"
	UpgradeEngine            FixCode = "upgrade-engine"
	Wait                     FixCode = "wait"
	WatermarkFromEvents      FixCode = "watermark-from-events"
)

// Fix is a change that helps.
type Fix struct {
	Code FixCode
	// Do says in a sentence what to change.
	Do string
	// Go, Java and SQL are the change as code; empty where it is none.
	Go, Java, SQL string
	// Costs says what is given up for it.
	Costs string
}

// In returns the change as code for an engine, and the language.
func (f *Fix) In(e EngineName) (code, language string) {
	switch e {
	case FlinkSQL:
		return f.SQL, "SQL"
	case Flink:
		return f.Java, "Java"
	}
	return f.Go, "Go"
}
