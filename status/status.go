// Package status is what a running job looks like at one moment: its vertices, subtasks,
// operators and splits, with their watermarks and counters.
//
// It holds types only. A job's status comes from its method Status; nothing here measures.
// Watermarks and event times are milliseconds since the epoch; eventtime.MinTimestamp means
// none yet.
package status

import (
	"math"
	"time"

	"github.com/lowwater/lowwater/internal/enum"
)

// Job is what a job looks like at one moment.
type Job struct {
	Name    string
	Started time.Time
	Running bool
	Life    Life
	// Restarts is how often the job has been started again after a failure.
	Restarts int64
	Vertices []Vertex
}

// Vertex is one vertex of the plan.
type Vertex struct {
	// Name is that of its operators, in their order.
	Name        string
	Parallelism int
	Subtasks    []Subtask
}

// Subtask is one subtask: where its time went since it started, and its
// operators from the head on.
type Subtask struct {
	Busy, Idle, SoftBackPressured, HardBackPressured time.Duration

	Life      Life
	Operators []Operator
}

// Operator is one operator in one subtask. Watermarks are in milliseconds;
// eventtime.MinTimestamp means none yet.
type Operator struct {
	Name       string
	UID        string
	RecordsIn  int64
	RecordsOut int64
	// BytesIn are a source's, BytesOut a sink's, if the connector counts them.
	BytesIn                int64
	BytesOut               int64
	CurrentInputWatermark  int64
	CurrentOutputWatermark int64
	// InputWatermarks are the last watermarks of each logical input, if there are several.
	// CurrentInputWatermark is what their combination lets through: an idle input does not
	// hold it back.
	InputWatermarks []int64
	// Idle says that the operator has announced to those behind it that it is idle, so
	// that its watermark does not hold theirs back.
	Idle               bool
	LateRecords        int64
	LateRecordsDropped int64
	// LateBySplit counts late records by the split they were read from, LateSamples
	// are the latest of them, oldest first.
	LateBySplit []LateCount
	LateSamples []LateSample
	// Drops are the records that were not passed on, by reason.
	Drops map[string]Sample
	// Future is the records too far ahead of the wall clock to move the watermark of an
	// operator that assigns them; for sources see the splits.
	Future Sample
	// EventTimers is what the operator waits for with event-time timers: those of a keyed
	// function, of a trigger, or of an interval join that is to forget records.
	EventTimers EventTimers
	// State is the operator's state by key, if the job has a memory budget for it.
	State KeyedState
	// Source is set on sources.
	Source *Source
	// Splits are those of a source's subtask, in the order in which it got them. Of those that
	// it has finished only the latest are here, 1000 or more.
	Splits []Split
}

// EventTimers is the event-time timers of an operator in one subtask.
type EventTimers struct {
	// Registered is set once there has been one.
	Registered bool
	// Next is the time of the earliest, in milliseconds; eventtime.MaxTimestamp if none is
	// pending.
	Next int64
}

// KeyedState is the keyed state of an operator's functions in one subtask, where the job has
// a memory budget for it.
type KeyedState struct {
	// BudgetBytes is this subtask's part of the budget, 0 without one.
	BudgetBytes int64
	// MemoryBytes is about what it takes in memory.
	MemoryBytes int64
	// SpilledEntries is how many values, lists and maps of one key each are on disk, and
	// DiskBytes what the files there take, as of a moment ago.
	SpilledEntries int64
	DiskBytes      int64
	// SpillReads is how many have been looked for on disk, SpillWrites how many written.
	SpillReads, SpillWrites int64
}

// Source is a source subtask's lags. While it has nothing to read they stand still at the
// moment it found that out. What comes of event times is in milliseconds: timestamps in a
// wrong unit are further from the clock than a time.Duration goes.
type Source struct {
	// WatermarkLagMillis is how far the watermark is behind the wall clock. It is nil before
	// the first watermark.
	WatermarkLagMillis *int64
	// EventTimeLagMillis is how far the last record's event time was behind the wall clock;
	// it is nil if there was none.
	EventTimeLagMillis *int64
	// Idle is how long there has been nothing to read.
	Idle time.Duration
	// AlignmentDriftMillis is how far the watermark is ahead of what alignment allows. It is
	// nil if the source is not aligned.
	AlignmentDriftMillis *int64
}

// LateCount is the late records of one split; its names are empty if the split is
// unknown.
type LateCount struct {
	Source string
	Split  string
	Count  int64
}

// LateSample is one late record. Times are in milliseconds.
type LateSample struct {
	Timestamp int64
	// Watermark is the operator's when the record came.
	Watermark int64
	// Key is the record's key as text.
	Key string
	// Source, Split and Offset say where the record was read; the names are empty if that is
	// unknown.
	Source string
	Split  string
	Offset int64
}

// BehindMillis returns how far the record was behind the watermark.
func (s LateSample) BehindMillis() int64 {
	if d := s.Watermark - s.Timestamp; d >= 0 || s.Watermark < s.Timestamp {
		return d
	}
	return math.MaxInt64
}

// Split is one split of a source subtask.
type Split struct {
	ID string
	// Topic and Partition are set if that is what the split is; otherwise Topic is empty.
	Topic     string
	Partition int32
	State     SplitState
	IdleBy    IdleReason
	// StateSince is when the state began, ActiveFor to PausedFor how long the split has
	// been in each since it was assigned.
	StateSince                    time.Time
	ActiveFor, IdleFor, PausedFor time.Duration
	Records                       int64
	CurrentWatermark              int64
	// CurrentOffset is the next offset to read, EndOffset the split's end as last
	// heard; -1 while unknown.
	CurrentOffset int64
	EndOffset     int64
	// CommittedOffset is what was last committed to the source's consumer group; -1 if
	// nothing was.
	CommittedOffset int64
	// LastRecordAt is zero if the split has had no record.
	LastRecordAt time.Time
	// LongestPause is the longest time between two records so far.
	LongestPause time.Duration
	// LastEventTime is the largest event time seen, in milliseconds;
	// eventtime.MinTimestamp if there was none.
	LastEventTime int64
	// Future is the records too far ahead of the wall clock to move the watermark.
	Future Sample
}

// SplitState says how a split takes part in event time.
type SplitState int32

const (
	// SplitActive: its watermark counts.
	SplitActive SplitState = iota
	// SplitIdle: its watermark does not count (spec watermarks 5.6).
	SplitIdle
	// SplitPaused: alignment has stopped reading it (spec watermarks 6.4).
	SplitPaused
	// SplitFinished: read to its end.
	SplitFinished
)

// String returns the state in words, such as "active".
func (s SplitState) String() string {
	return enum.Name(s, "active", "idle", "paused", "finished")
}

// IdleReason says what declared a split idle.
type IdleReason int32

const (
	// NotIdle: nothing has.
	NotIdle IdleReason = iota
	// IdleByTimeout: no record for longer than the idle timeout.
	IdleByTimeout
	// IdleByBroker: read to the end, and nothing appended for long enough.
	IdleByBroker
)

// String returns the reason in a word, "" for NotIdle.
func (r IdleReason) String() string {
	return enum.Name(r, "", "timeout", "broker")
}

// Sample is a count with descriptions of the latest, oldest first.
type Sample struct {
	Count  int64
	Latest []string
}
