// Package metric holds the numbers that a running job keeps about itself: per
// task, operator and split, with Flink's names and initial values.
//
// The subtask's goroutine is the only writer of its numbers, anyone may read
// them at any time. They are plain atomics, padded so that two subtasks never
// share a cache line, and cost the hot path a store a batch. Exposition formats
// and history do not belong here but beside it, on the reading side.
package metric

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lowwater/lowwater/status"
)

// Gauge is a number that is set by one goroutine and read by any.
type Gauge struct{ v atomic.Int64 }

func (g *Gauge) Set(v int64)  { g.v.Store(v) }
func (g *Gauge) Value() int64 { return g.v.Load() }

// Counter is a number that only grows, written by one goroutine.
type Counter struct{ v atomic.Int64 }

func (c *Counter) Add(n int64)  { c.v.Store(c.v.Load() + n) }
func (c *Counter) Value() int64 { return c.v.Load() }

type pad [64]byte

// Operator is the numbers of one operator in one subtask.
type Operator struct {
	Name string
	UID  string
	_    pad

	NumRecordsIn  Counter
	NumRecordsOut Counter
	// NumBytesIn is what a source's reader took from outside, NumBytesOut what a sink's
	// writer gave. Between tasks go values, which have no bytes.
	NumBytesIn  Counter
	NumBytesOut Counter
	// CurrentInputWatermark and CurrentOutputWatermark are in milliseconds,
	// eventtime.MinTimestamp at first.
	CurrentInputWatermark  Gauge
	CurrentOutputWatermark Gauge
	// OutputIdle is 1 while the operator has announced that it is idle.
	OutputIdle Gauge
	// NumLateRecordsDropped counts records that no window took and no late
	// output received; NumLateRecords counts those as well as the ones that
	// went to a late output.
	NumLateRecordsDropped Counter
	NumLateRecords        Counter
	Late                  LateLog
	_                     pad

	// Future is the records too far ahead of the wall clock to move the watermark of
	// an operator that assigns them; sources count by split.
	Future Sampled
	// Source is a source's own numbers, Splits what its subtask reads and has read lately.
	Source Source
	Splits SplitSet
	// State is the numbers of keyed state with a memory budget.
	State State
	// EventTimers is of operators whose function or trigger may register such timers.
	EventTimers EventTimers
	// InputWatermarks are the last watermarks of each logical input of an operator with
	// several; idleness plays no part in them.
	InputWatermarks []Gauge

	dropsMu sync.Mutex
	drops   map[string]*Sampled
}

// State is the numbers of an operator's keyed state, or windows, in one subtask. They are
// kept if there is a memory budget.
type State struct {
	// BudgetBytes is the subtask's part of the budget, 0 without one.
	BudgetBytes Gauge
	// MemoryBytes is about what it takes in memory, SpilledEntries how many cells, of one
	// key in one state, or runs, of one key in one window, are on disk, and DiskBytes what
	// the files there take.
	MemoryBytes    Gauge
	SpilledEntries Gauge
	DiskBytes      Gauge
	// SpillReads are the cells looked for on disk and the runs read, SpillWrites those
	// written to it.
	SpillReads  Counter
	SpillWrites Counter
}

// EventTimers says what an operator waits for with event-time timers in one subtask.
type EventTimers struct {
	// Registered is 1 once there has been one.
	Registered Gauge
	// Next is the time of the earliest, math.MaxInt64 if there is none.
	Next Gauge
}

// Tell notes the time of the earliest timer, if there is one.
func (t *EventTimers) Tell(next int64, pending bool) {
	if !pending {
		next = math.MaxInt64
	} else if t.Registered.Value() == 0 {
		t.Registered.Set(1)
	}
	if t.Next.Value() != next {
		t.Next.Set(next)
	}
}

// NewOperator returns an operator's numbers with Flink's initial values.
func NewOperator(name, uid string) *Operator {
	o := &Operator{Name: name, UID: uid}
	o.CurrentInputWatermark.Set(math.MinInt64)
	o.CurrentOutputWatermark.Set(math.MinInt64)
	o.EventTimers.Next.Set(math.MaxInt64)
	o.Source.init()
	return o
}

// Task is the numbers of one subtask as a whole. The times are nanoseconds
// since the task started.
type Task struct {
	Busy Timer
	Idle Timer
	// SoftBackPressured: not polling because an output has no credit.
	// HardBackPressured: blocked in the middle of emitting.
	SoftBackPressured Timer
	HardBackPressured Timer
	_                 pad
}

// Timer adds up the time spent in one state; the task is in exactly one state
// at a time. The time that the state has lasted so far counts.
type Timer struct {
	total atomic.Int64
	// since is the time from epoch to the last Start, 0 after Stop.
	since atomic.Int64
}

// epoch is an instant to count from.
var epoch = time.Now()

// Start begins to count.
func (t *Timer) Start(now time.Time) { t.since.Store(int64(now.Sub(epoch))) }

// Stop ends what Start began.
func (t *Timer) Stop(now time.Time) {
	since := t.since.Load()
	t.since.Store(0) // first, so that a reader may miss the state but never adds it twice
	t.total.Store(t.total.Load() + int64(now.Sub(epoch)) - since)
}

// Total returns the time counted. It may be called by any goroutine, and misses a
// state that ends at the very moment.
func (t *Timer) Total() time.Duration {
	since := t.since.Load()
	total := t.total.Load()
	if since != 0 && since == t.since.Load() {
		total += int64(time.Since(epoch)) - since
	}
	return time.Duration(total)
}

// Split is the numbers of one split in a source subtask.
type Split struct {
	ID string
	// Topic and Partition are set, before the split is shown to anyone, if that is what
	// it is; otherwise Topic is empty.
	Topic     string
	Partition int32
	_         pad

	NumRecordsIn Counter
	// CurrentWatermark is the split's own, in milliseconds.
	CurrentWatermark Gauge
	// CurrentOffset is the offset behind the last record that was passed on, -1 while there
	// was none. The reader may know more: see Position.
	CurrentOffset Gauge
	// LastRecordAt is the wall clock at the last record, in milliseconds; 0 if
	// there was none. LastEventTime is the largest event time.
	LastRecordAt  Gauge
	LastEventTime Gauge
	// LongestPause is the longest time between two records, in milliseconds of the wall clock.
	LongestPause Gauge
	// State is a status.SplitState, IdleBy a status.IdleReason, StateSince the wall clock
	// when that state began, in milliseconds.
	State      Gauge
	IdleBy     Gauge
	StateSince Gauge
	// times is the time in each state up to finished.
	times [status.SplitFinished]Timer
	// Future is the records too far ahead of the wall clock to move the watermark.
	Future Sampled
	_      pad
}

// Position is what a reader says of a split: the next offset to read, the split's end and
// the offset last committed to the outside; -1 where unknown.
type Position struct{ Next, End, Committed int64 }

// NoPosition is that of a split of which the reader says nothing.
var NoPosition = Position{-1, -1, -1}

// SplitSet is a set of splits, in the order in which they were added. A source that watches a
// directory has ever more of them, so of those that are finished the oldest are forgotten.
type SplitSet struct {
	mu   sync.Mutex
	list []*Split
	// forgetAt is the length of list at which there may be splits to forget.
	forgetAt int
	ask      func() map[string]Position
}

// keptFinished is how many finished splits are kept at least; there are less than twice as
// many.
const keptFinished = 1000

// Add adds a split.
func (s *SplitSet) Add(split *Split) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= s.forgetAt {
		s.forget()
		s.forgetAt = len(s.list) + keptFinished
	}
	s.list = append(s.list, split)
}

// forget drops all but the latest finished splits.
func (s *SplitSet) forget() {
	finished := 0
	for _, split := range s.list {
		if split.finished() {
			finished++
		}
	}
	s.list = slices.DeleteFunc(s.list, func(split *Split) bool {
		if finished <= keptFinished || !split.finished() {
			return false
		}
		finished--
		return true
	})
}

func (s *Split) finished() bool { return status.SplitState(s.State.Value()) == status.SplitFinished }

// All returns the splits as of now.
func (s *SplitSet) All() []*Split {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// AskPositions sets who tells the positions of the splits. Any goroutine will call it.
func (s *SplitSet) AskPositions(ask func() map[string]Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ask = ask
}

// Positions returns the positions by the ids of splits, of those that the reader tells.
func (s *SplitSet) Positions() map[string]Position {
	s.mu.Lock()
	ask := s.ask
	s.mu.Unlock()
	if ask == nil {
		return nil
	}
	return ask()
}

// NewSplit returns a split's numbers with their initial values.
func NewSplit(id string) *Split {
	s := &Split{ID: id}
	s.CurrentWatermark.Set(math.MinInt64)
	s.LastEventTime.Set(math.MinInt64)
	s.CurrentOffset.Set(-1)
	now := time.Now()
	s.StateSince.Set(now.UnixMilli())
	s.times[status.SplitActive].Start(now)
	return s
}

// Enter notes that the split goes into a state, or into another kind of idleness.
func (s *Split) Enter(state status.SplitState, by status.IdleReason) {
	s.IdleBy.Set(int64(by))
	previous := status.SplitState(s.State.Value())
	if state == previous {
		return
	}
	now := time.Now()
	if previous < status.SplitFinished {
		s.times[previous].Stop(now)
	}
	if state < status.SplitFinished {
		s.times[state].Start(now)
	}
	s.State.Set(int64(state))
	s.StateSince.Set(now.UnixMilli())
}

// TimeIn returns how long the split has been in a state, all times added up. Nobody counts
// how long it has been finished.
func (s *Split) TimeIn(state status.SplitState) time.Duration { return s.times[state].Total() }
