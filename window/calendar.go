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
// A window holds the instants whose local time lies in one cell of the grid. When
// clocks are put forward a window is shorter, or missing if the whole cell is skipped.
// When they are put back a window is longer; if they are put back to the beginning of a
// cell, such as a full hour, a new window begins there, so that hours stay hours and
// the day has 25 of them.
type CalendarAssigner struct {
	call string
	n    int
	unit time.Duration
	zone *time.Location
	clock
}

// Days returns event-time windows of n days that begin at midnight in zone. n is usually
// 1; more are counted from 1 January 1970.
func Days(n int, zone *time.Location) CalendarAssigner {
	return CalendarAssigner{call: "window.Days", n: n, unit: 24 * time.Hour, zone: zone}
}

// Hours returns event-time windows of n hours, counted from midnight in zone. n must
// divide 24.
func Hours(n int, zone *time.Location) CalendarAssigner {
	return CalendarAssigner{call: "window.Hours", n: n, unit: time.Hour, zone: zone}
}

// ProcessingTime assigns by the wall clock at arrival.
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
	return TimeWindow{a.start(a.periodAt(t), t), a.end(a.periodAt(t), t)}
}

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

// cell returns the local time at which the cell of t begins.
func (a CalendarAssigner) cell(p period, t int64) int64 {
	return Start(t+p.offset, 0, a.size())
}

func (a CalendarAssigner) size() int64 { return int64(a.n) * a.unit.Milliseconds() }

// start returns the first instant of the window of t, which lies in p.
func (a CalendarAssigner) start(p period, t int64) int64 {
	start := a.cell(p, t) - p.offset
	for start < p.from {
		before := a.periodAt(p.from - 1)
		if a.divides(before, p, p.from) {
			return p.from
		}
		start = a.cell(before, p.from-1) - before.offset
		p = before
	}
	return start
}

// end returns the first instant behind the window of t, which lies in p.
func (a CalendarAssigner) end(p period, t int64) int64 {
	end := a.cell(p, t) + a.size() - p.offset
	for end > p.to {
		after := a.periodAt(p.to)
		if a.divides(p, after, p.to) {
			return p.to
		}
		end = a.cell(after, p.to) + a.size() - after.offset
		p = after
	}
	return end
}

// divides reports whether a window begins at the instant at which one period ends and
// the next begins: the local time there is in another cell than just before, or it is
// the beginning of a cell.
func (a CalendarAssigner) divides(before, after period, at int64) bool {
	cell := a.cell(after, at)
	return cell != a.cell(before, at-1) || cell == at+after.offset
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

func (a CalendarAssigner) String() string {
	return fmt.Sprintf("%s(%d, %v)%s", a.call, a.n, a.zone, a.suffix())
}
