package scenarios

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"math"
)

// Format is the only format that is read.
const Format = "eventtime-scenario/1"

// Mode says what a file can be used for.
type Mode string

const (
	// Replay: records are given; the engine must produce the results.
	Replay Mode = "replay"
	// Evidence: only snapshots are given, of a state that a correct engine does
	// not get into or that needs a particular one.
	Evidence Mode = "evidence"
)

// Scenario is one file. Fields named Millis are milliseconds: event times, bounds
// of windows and watermarks since the epoch, all others since WallStartMillis,
// which is when the job starts. Those before the start are negative.
type Scenario struct {
	Format string `json:"format"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	Notes  string `json:"notes"`
	Mode   Mode   `json:"mode"`
	// Engine is set if the scenario needs a particular engine.
	Engine *Engine `json:"engine"`
	// WallStartMillis is the wall clock at the start of the job, since the epoch.
	WallStartMillis         int64      `json:"wall_start_ms"`
	DurationMillis          int64      `json:"duration_ms"`
	WatermarkIntervalMillis int64      `json:"watermark_interval_ms"`
	Evidence                Means      `json:"evidence"`
	Topics                  []Topic    `json:"topics"`
	Job                     Job        `json:"job"`
	Snapshots               []Snapshot `json:"snapshots"`
	Expected                Expected   `json:"expected"`

	// document is the file as read, which patches apply to.
	document []byte
}

// Engine names the engine that a scenario was seen on.
type Engine struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Topic is a topic and what is appended to it.
type Topic struct {
	Name       string   `json:"name"`
	Partitions int32    `json:"partitions"`
	Series     []Series `json:"series"`
	// Columns says what the fields of Rows are; see the README.
	Columns []string           `json:"columns"`
	Rows    [][]jsontext.Value `json:"rows"`
}

// Series is records at regular times in one partition.
type Series struct {
	Partition     int32    `json:"p"`
	FromMillis    int64    `json:"from"`
	ToMillis      int64    `json:"to"`
	EveryMillis   int64    `json:"every"`
	PayloadFirst  int64    `json:"ts0"`
	PayloadStep   int64    `json:"ts_step"`
	PayloadJitter []int64  `json:"jitter"`
	Keys          []string `json:"keys"`
	// KafkaMillis is the record timestamp, since the epoch; nil is the wall clock.
	KafkaMillis     *int64 `json:"kts"`
	ReadDelayMillis int64  `json:"read_delay"`
	ReadFromMillis  *int64 `json:"read_from"`
	ReadEveryMillis *int64 `json:"read_every"`
}

// Job is the job under observation.
type Job struct {
	Sources   []Source   `json:"sources"`
	Operators []Operator `json:"operators"`
}

// Source reads one topic.
type Source struct {
	ID          string `json:"id"`
	Topic       string `json:"topic"`
	Parallelism int    `json:"parallelism"`
	// Assignment lists the partitions of each subtask; nil is the default, partition
	// p on subtask p mod Parallelism.
	Assignment [][]int32  `json:"assignment"`
	Strategy   *Strategy  `json:"strategy"`
	Alignment  *Alignment `json:"alignment"`
}

// Strategy kinds.
const (
	Bounded    = "bounded"
	Monotonous = "monotonous"
	WallClock  = "wallclock"
)

// Where a Strategy takes timestamps from.
const (
	FromPayload = "payload"
	FromKafka   = "kafka"
)

// Strategy is a watermark strategy; a nil one means that there are no watermarks.
type Strategy struct {
	Kind        string `json:"kind"`
	DelayMillis int64  `json:"delay_ms"`
	// Timestamp is FromPayload, the default, or FromKafka.
	Timestamp string `json:"timestamp"`
	// Multiply is applied to payload times; 0 counts as 1.
	Multiply int64 `json:"multiply"`
	// IdlenessMillis is the idle timeout, 0 for none.
	IdlenessMillis int64 `json:"idleness_ms"`
}

// Alignment makes sources wait for each other.
type Alignment struct {
	Group        string `json:"group"`
	DriftMillis  int64  `json:"drift_ms"`
	UpdateMillis int64  `json:"update_ms"`
}

// Operator kinds.
const (
	Window  = "window"
	Assign  = "assign"
	Connect = "connect"
	Filter  = "filter"
	Forward = "forward"
	Custom  = "custom" // in Evidence files only
)

// Window types.
const (
	Tumbling = "tumbling"
	Sliding  = "sliding"
	Session  = "session"
)

// Operator is one operator behind the sources.
type Operator struct {
	ID          string  `json:"id"`
	Kind        string  `json:"kind"`
	Inputs      []Input `json:"inputs"`
	Parallelism int     `json:"parallelism"`

	// For windows.
	Type                  string `json:"type"`
	SizeMillis            int64  `json:"size_ms"`
	OffsetMillis          int64  `json:"offset_ms"`
	SlideMillis           int64  `json:"slide_ms"`
	GapMillis             int64  `json:"gap_ms"`
	AllowedLatenessMillis int64  `json:"allowed_lateness_ms"`

	// For Assign. Partitioning is empty or "hash"; Routing then tells the subtask
	// of each key.
	Strategy     *Strategy      `json:"strategy"`
	Partitioning string         `json:"partitioning"`
	Routing      map[string]int `json:"routing"`

	// Broadcast lists the inputs of a Connect whose records go to all subtasks.
	Broadcast []int `json:"broadcast"`

	// For filters.
	DropPartitions []int32  `json:"drop_partitions"`
	DropKeys       []string `json:"drop_keys"`
}

// Input names what an operator reads; several names are a union.
type Input []string

// UnmarshalJSONFrom accepts a name or a list of names.
func (in *Input) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindString {
		return json.UnmarshalDecode(dec, (*[]string)(in))
	}
	*in = make(Input, 1)
	return json.UnmarshalDecode(dec, &(*in)[0])
}

// Instant is an event time or a watermark. In files the ends of time are "min"
// and "max".
type Instant int64

const (
	Min Instant = math.MinInt64
	Max Instant = math.MaxInt64
)

// UnmarshalJSONFrom accepts a number, "min" or "max".
func (t *Instant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindString {
		return json.UnmarshalDecode(dec, (*int64)(t))
	}
	var end string
	if err := json.UnmarshalDecode(dec, &end); err != nil {
		return err
	}
	switch end {
	case "min":
		*t = Min
	case "max":
		*t = Max
	default:
		return fmt.Errorf(`%q is not a time; want milliseconds, "min" or "max"`, end)
	}
	return nil
}

func (t Instant) String() string {
	switch t {
	case Min:
		return "min"
	case Max:
		return "max"
	default:
		return fmt.Sprint(int64(t))
	}
}
