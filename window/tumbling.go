package window

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater/internal/enum"
)

// Stagger shifts the tumbling windows of each subtask, so that not all subtasks
// fire at once (spec windows 1.11). The shift is fixed at the first record that
// a subtask sees.
type Stagger uint8

const (
	// StaggerNone leaves windows aligned with the epoch plus the offset.
	StaggerNone Stagger = iota
	// StaggerRandom shifts by a random part of the size.
	StaggerRandom
	// StaggerNatural shifts by how far the wall clock is into the window at
	// the first record, also for event-time windows.
	StaggerNatural
)

// String returns the Go expression of the constant.
func (s Stagger) String() string {
	return enum.Name(s, "window.StaggerNone", "window.StaggerRandom", "window.StaggerNatural")
}

// TumblingAssigner assigns windows of one size that follow each other without
// gap or overlap (spec windows 1.3). Build it with Tumbling.
type TumblingAssigner struct {
	size, offset time.Duration
	stagger      Stagger
	clock
}

// Tumbling returns event-time windows [n·size, (n+1)·size). size is at least 1 ms and whole
// milliseconds.
func Tumbling(size time.Duration) TumblingAssigner { return TumblingAssigner{size: size} }

// Offset moves the start of all windows by d, which may be negative and is shorter than the
// size. Days in UTC+8 are Tumbling(24*time.Hour).Offset(-8*time.Hour); for time zones with
// daylight saving see Days.
func (a TumblingAssigner) Offset(d time.Duration) TumblingAssigner { a.offset = d; return a }

// Stagger shifts each subtask's windows, which the subtask then keeps until it ends. The
// default is StaggerNone.
func (a TumblingAssigner) Stagger(s Stagger) TumblingAssigner { a.stagger = s; return a }

// ProcessingTime returns the assigner of the same windows in processing time: records are
// assigned by the wall clock at their arrival, and nothing is ever late (spec windows 1.3, 2.2).
func (a TumblingAssigner) ProcessingTime() TumblingAssigner { a.processing = true; return a }

// Pin returns the assigner that one subtask uses from its first record on: now is
// the clock at that record, in milliseconds, and random any number. It returns a
// itself if there is no stagger; an assigner with one must be pinned before it
// assigns.
func (a TumblingAssigner) Pin(now int64, random uint64) TumblingAssigner {
	size := a.size.Milliseconds()
	var shift int64
	switch a.stagger {
	case StaggerNone:
		return a
	case StaggerRandom:
		shift = int64(random % uint64(size))
	case StaggerNatural:
		shift = max(0, now-Start(now, 0, size))
	}
	a.offset = (a.offset + time.Duration(shift)*time.Millisecond) % a.size
	a.stagger = StaggerNone
	return a
}

// Assign implements Assigner.
func (a TumblingAssigner) Assign(dst []TimeWindow, timestamp, now int64) ([]TimeWindow, error) {
	if a.stagger != StaggerNone {
		return dst, fmt.Errorf("%v: not pinned", a)
	}
	t, err := a.at(timestamp, now)
	if err != nil {
		return dst, err
	}
	return append(dst, a.Span(t)), nil
}

// Span implements Assigner: it is the window itself.
func (a TumblingAssigner) Span(t int64) TimeWindow {
	size := a.size.Milliseconds()
	start := Start(t, a.offset.Milliseconds(), size)
	return TimeWindow{start, start + size}
}

// IsEventTime implements Assigner.
func (a TumblingAssigner) IsEventTime() bool { return !a.processing }

// Merging implements Assigner.
func (a TumblingAssigner) Merging() bool { return false }

// Validate implements Assigner.
func (a TumblingAssigner) Validate() error {
	if err := checkLength("window.Tumbling", "size", a.size); err != nil {
		return err
	}
	if a.stagger > StaggerNatural {
		return fmt.Errorf("window.Tumbling: stagger %d: must be StaggerNone, StaggerRandom or StaggerNatural", uint8(a.stagger))
	}
	return checkOffset("window.Tumbling", a.offset, "size", a.size)
}

// String implements Assigner.
func (a TumblingAssigner) String() string {
	s := fmt.Sprintf("window.Tumbling(%v)%s", a.size, offsetSuffix(a.offset))
	if a.stagger != StaggerNone {
		s += fmt.Sprintf(".Stagger(%v)", a.stagger)
	}
	return s + a.suffix()
}
