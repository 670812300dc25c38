package window

import (
	"fmt"
	"time"
)

// SlidingAssigner assigns windows of one size that start every slide, so that
// they overlap, or leave gaps where slide is larger than size (spec windows
// 1.4). Build it with Sliding.
type SlidingAssigner struct {
	size, slide, offset time.Duration
	clock
}

// Sliding returns event-time windows [n·slide, n·slide+size). Both are at least 1 ms and
// whole milliseconds; slide need not divide size, and may be larger, so that some records
// are in no window.
func Sliding(size, slide time.Duration) SlidingAssigner {
	return SlidingAssigner{size: size, slide: slide}
}

// Offset moves the start of all windows by d, which may be negative and is shorter than the
// slide.
func (a SlidingAssigner) Offset(d time.Duration) SlidingAssigner { a.offset = d; return a }

// ProcessingTime returns the assigner of the same windows in processing time: records are
// assigned by the wall clock at their arrival, and nothing is ever late (spec windows 1.3, 2.2).
func (a SlidingAssigner) ProcessingTime() SlidingAssigner { a.processing = true; return a }

// Millis returns the parameters in milliseconds.
func (a SlidingAssigner) Millis() (size, slide, offset int64) {
	return a.size.Milliseconds(), a.slide.Milliseconds(), a.offset.Milliseconds()
}

// Assign implements Assigner. The newest window comes first.
func (a SlidingAssigner) Assign(dst []TimeWindow, timestamp, now int64) ([]TimeWindow, error) {
	t, err := a.at(timestamp, now)
	if err != nil {
		return dst, err
	}
	size, slide, offset := a.Millis()
	for s := Start(t, offset, slide); s > t-size; s -= slide {
		dst = append(dst, TimeWindow{s, s + size})
	}
	return dst, nil
}

// Span implements Assigner: the oldest of a slide's windows may end within it,
// so a slide has up to two spans.
func (a SlidingAssigner) Span(t int64) TimeWindow {
	size, slide, offset := a.Millis()
	start := Start(t, offset, slide)
	end := start + slide
	switch cut := start + size%slide; {
	case cut == start:
		return TimeWindow{start, end}
	case t < cut:
		return TimeWindow{start, cut}
	default:
		return TimeWindow{cut, end}
	}
}

// IsEventTime implements Assigner.
func (a SlidingAssigner) IsEventTime() bool { return !a.processing }

// Merging implements Assigner.
func (a SlidingAssigner) Merging() bool { return false }

// Validate implements Assigner.
func (a SlidingAssigner) Validate() error {
	if err := checkLength("window.Sliding", "size", a.size); err != nil {
		return err
	}
	if err := checkLength("window.Sliding", "slide", a.slide); err != nil {
		return err
	}
	return checkOffset("window.Sliding", a.offset, "slide", a.slide)
}

// String implements Assigner.
func (a SlidingAssigner) String() string {
	return fmt.Sprintf("window.Sliding(%v, %v)%s%s", a.size, a.slide, offsetSuffix(a.offset), a.suffix())
}

// CumulatingAssigner assigns windows that share a start and grow by step up to
// size, then begin anew (spec windows 1.10). Build it with Cumulating.
type CumulatingAssigner struct {
	size, step, offset time.Duration
	clock
}

// Cumulating returns event-time windows [n·size, n·size+step), [n·size,
// n·size+2·step) and so on up to [n·size, (n+1)·size). step is at least 1 ms and divides
// size; both are whole milliseconds.
func Cumulating(size, step time.Duration) CumulatingAssigner {
	return CumulatingAssigner{size: size, step: step}
}

// Offset moves the start of all windows by d, which may be negative and is shorter than the
// size.
func (a CumulatingAssigner) Offset(d time.Duration) CumulatingAssigner { a.offset = d; return a }

// ProcessingTime returns the assigner of the same windows in processing time: records are
// assigned by the wall clock at their arrival, and nothing is ever late (spec windows 1.3, 2.2).
func (a CumulatingAssigner) ProcessingTime() CumulatingAssigner { a.processing = true; return a }

// Millis returns the parameters in milliseconds.
func (a CumulatingAssigner) Millis() (size, step, offset int64) {
	return a.size.Milliseconds(), a.step.Milliseconds(), a.offset.Milliseconds()
}

// Assign implements Assigner. The smallest window comes first.
func (a CumulatingAssigner) Assign(dst []TimeWindow, timestamp, now int64) ([]TimeWindow, error) {
	t, err := a.at(timestamp, now)
	if err != nil {
		return dst, err
	}
	size, step, offset := a.Millis()
	start := Start(t, offset, size)
	end := a.Span(t).End
	// Counted rather than compared, because ends may wrap near the end of time.
	for n := (start+size-end)/step + 1; n > 0; n-- {
		dst = append(dst, TimeWindow{start, end})
		end += step
	}
	return dst, nil
}

// Span implements Assigner: it is the step that holds t.
func (a CumulatingAssigner) Span(t int64) TimeWindow {
	_, step, offset := a.Millis()
	start := Start(t, offset, step)
	return TimeWindow{start, start + step}
}

// IsEventTime implements Assigner.
func (a CumulatingAssigner) IsEventTime() bool { return !a.processing }

// Merging implements Assigner.
func (a CumulatingAssigner) Merging() bool { return false }

// Validate implements Assigner.
func (a CumulatingAssigner) Validate() error {
	if err := checkLength("window.Cumulating", "size", a.size); err != nil {
		return err
	}
	if err := checkLength("window.Cumulating", "step", a.step); err != nil {
		return err
	}
	if a.size%a.step != 0 {
		return fmt.Errorf("window.Cumulating: step %v: must divide the size %v", a.step, a.size)
	}
	return checkOffset("window.Cumulating", a.offset, "size", a.size)
}

// String implements Assigner.
func (a CumulatingAssigner) String() string {
	return fmt.Sprintf("window.Cumulating(%v, %v)%s%s", a.size, a.step, offsetSuffix(a.offset), a.suffix())
}
