package window

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// CalendarAssigner assigns windows that follow the wall clock of a time zone: days
// that begin at local midnight, hours that begin at the full local hour, however the
// zone's offset from UTC changes. Build it with Days or Hours.
//
// When clocks are put forward a window is shorter, or missing if it is skipped altogether.
// When they are put back a day is longer: it begins with its first instant and ends where
// the next day first begins, also if clocks go back over midnight. Hours that are
// repeated are windows of their own, so that hours stay hours and the day has 25 of them.
// Windows never overlap and leave no gaps.
type CalendarAssigner struct {
	call string
	n    int
	unit time.Duration
	zone *time.Location
	clock
}

// Days returns event-time windows of n days, from 1 to 36500, that begin at midnight in
// zone. n is usually 1; more are counted from 1 January 1970. zone must not be nil.
func Days(n int, zone *time.Location) CalendarAssigner {
	return CalendarAssigner{call: "window.Days", n: n, unit: 24 * time.Hour, zone: zone}
}

// Hours returns event-time windows of n hours, counted from midnight in zone, which must not
// be nil. n must divide 24.
func Hours(n int, zone *time.Location) CalendarAssigner {
	return CalendarAssigner{call: "window.Hours", n: n, unit: time.Hour, zone: zone}
}

// ProcessingTime returns the assigner of the same windows in processing time: records are
// assigned by the wall clock at their arrival, and nothing is ever late (spec windows 1.3, 2.2).
func (a CalendarAssigner) ProcessingTime() CalendarAssigner { a.processing = true; return a }

// Assign implements Assigner.
func (a CalendarAssigner) Assign(dst []TimeWindow, timestamp, now int64) ([]TimeWindow, error) {
	t, err := a.at(timestamp, now)
	if err != nil {
		return dst, err
	}
	return append(dst, a.Span(t)), nil
}

// Span implements Assigner: it is the window itself.
func (a CalendarAssigner) Span(t int64) TimeWindow {
	return TimeWindow{a.boundaryAtOrBefore(t), a.boundaryAfter(t)}
}

// Windows begin at boundaries, which are defined one by one, so that windows never
// overlap: an instant is a boundary if the local time there is the beginning of a cell
// that was not there just before, or has left the cell of just before for a later one.
// Days have one more rule: clocks that are put back to before midnight, or to midnight
// itself, do not begin the day anew.

// period is a time during which the zone's offset does not change: [from, to), in
// milliseconds since the epoch.
type period struct {
	from, to int64
	offset   int64
}

func (a CalendarAssigner) periodAt(t int64) period {
	at := time.UnixMilli(t).In(a.zone)
	_, seconds := at.Zone()
	p := period{math.MinInt64, math.MaxInt64, int64(seconds) * 1000}
	from, to := at.ZoneBounds()
	if !from.IsZero() {
		p.from = from.UnixMilli()
	}
	if !to.IsZero() {
		p.to = to.UnixMilli()
	}
	return p
}

func (a CalendarAssigner) size() int64 { return int64(a.n) * a.unit.Milliseconds() }

// boundaryAtOrBefore returns the last boundary that is not after t.
func (a CalendarAssigner) boundaryAtOrBefore(t int64) int64 {
	p := a.periodAt(t)
	for at := Start(t+p.offset, 0, a.size()) - p.offset; ; at -= a.size() {
		for at <= p.from { // at, or a change of the offset behind it
			if p.from == math.MinInt64 {
				return at
			}
			before := a.periodAt(p.from - 1)
			if a.changeIsBoundary(before, p) {
				return p.from
			}
			at = Start(p.from-1+before.offset, 0, a.size()) - before.offset
			p = before
		}
		if a.isBoundary(p, at) {
			return at
		}
	}
}

// boundaryAfter returns the first boundary after t.
func (a CalendarAssigner) boundaryAfter(t int64) int64 {
	p := a.periodAt(t)
	for at := Start(t+p.offset, 0, a.size()) + a.size() - p.offset; ; at += a.size() {
		for at >= p.to {
			if p.to == math.MaxInt64 {
				return at
			}
			after := a.periodAt(p.to)
			if a.changeIsBoundary(p, after) {
				return p.to
			}
			at = Start(p.to+after.offset, 0, a.size()) + a.size() - after.offset
			p = after
		}
		if a.isBoundary(p, at) {
			return at
		}
	}
}

// isBoundary reports whether a window begins at an instant inside p, not at its beginning,
// at which the local time is the beginning of a cell. It does, but for a midnight that
// comes a second time because clocks were put back over it.
func (a CalendarAssigner) isBoundary(p period, at int64) bool {
	return a.unit == time.Hour || p.from == math.MinInt64 || !a.repeated(a.periodAt(p.from-1), p, at+p.offset)
}

// changeIsBoundary reports whether a window begins where the offset changes from that of
// one period to that of the next.
func (a CalendarAssigner) changeIsBoundary(before, after period) bool {
	at := after.from
	was, is := Start(at-1+before.offset, 0, a.size()), Start(at+after.offset, 0, a.size())
	begins := at+after.offset == is
	if a.unit == time.Hour {
		return begins || is != was
	}
	return is > was && !a.repeated(before, after, is)
}

// repeated reports whether a local time behind a change was there before it, too.
func (a CalendarAssigner) repeated(before, after period, local int64) bool {
	return before.offset > after.offset && local < after.from+before.offset
}

// IsEventTime implements Assigner.
func (a CalendarAssigner) IsEventTime() bool { return !a.processing }

// Merging implements Assigner.
func (a CalendarAssigner) Merging() bool { return false }

// Validate implements Assigner.
func (a CalendarAssigner) Validate() error {
	var errs []error
	switch {
	case a.n < 1:
		errs = append(errs, fmt.Errorf("%s(%d): must be at least 1", a.call, a.n))
	case a.unit == time.Hour && 24%a.n != 0:
		errs = append(errs, fmt.Errorf("%s(%d): must divide 24, so that every day begins with a window", a.call, a.n))
	case a.n > maxDays:
		errs = append(errs, fmt.Errorf("%s(%d): must be at most %d", a.call, a.n, maxDays))
	}
	if a.zone == nil {
		errs = append(errs, fmt.Errorf("%s: the time zone is nil: load one with time.LoadLocation, or use time.UTC", a.call))
	}
	return errors.Join(errs...)
}

const maxDays = 36_500

// String implements Assigner.
func (a CalendarAssigner) String() string {
	return fmt.Sprintf("%s(%d, %v)%s", a.call, a.n, a.zone, a.suffix())
}
