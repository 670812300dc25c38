package window

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestCalendarWindowsAcrossClockChanges(t *testing.T) {
	const layout = "2006-01-02T15:04Z"
	tests := []struct {
		name       string
		zone       string
		assigner   func(*time.Location) CalendarAssigner
		at         string
		start, end string
	}{
		{"an ordinary day", "Europe/Berlin", days(1), "2026-06-10T12:00Z", "2026-06-09T22:00Z", "2026-06-10T22:00Z"},
		{"the day of 23 hours", "Europe/Berlin", days(1), "2026-03-29T12:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"},
		{"its first instant", "Europe/Berlin", days(1), "2026-03-28T23:00Z", "2026-03-28T23:00Z", "2026-03-29T22:00Z"},
		{"the day of 25 hours", "Europe/Berlin", days(1), "2026-10-25T00:30Z", "2026-10-24T22:00Z", "2026-10-25T23:00Z"},
		{"the hour before clocks go forward", "Europe/Berlin", hours(1), "2026-03-29T00:59Z", "2026-03-29T00:00Z", "2026-03-29T01:00Z"},
		{"the hour after clocks went forward", "Europe/Berlin", hours(1), "2026-03-29T01:00Z", "2026-03-29T01:00Z", "2026-03-29T02:00Z"},
		{"the first 02:30", "Europe/Berlin", hours(1), "2026-10-25T00:30Z", "2026-10-25T00:00Z", "2026-10-25T01:00Z"},
		{"the second 02:30", "Europe/Berlin", hours(1), "2026-10-25T01:30Z", "2026-10-25T01:00Z", "2026-10-25T02:00Z"},
		{"a quarter of the day of 25 hours", "Europe/Berlin", hours(6), "2026-10-25T01:30Z", "2026-10-24T22:00Z", "2026-10-25T05:00Z"},
		{"a quarter of the day of 23 hours", "Europe/Berlin", hours(6), "2026-03-29T02:30Z", "2026-03-28T23:00Z", "2026-03-29T04:00Z"},
		{"half-hour zone", "Asia/Kolkata", hours(1), "2026-06-10T12:00Z", "2026-06-10T11:30Z", "2026-06-10T12:30Z"},
		{"a day without midnight", "America/Sao_Paulo", days(1), "2018-11-04T12:00Z", "2018-11-04T03:00Z", "2018-11-05T02:00Z"},
		{"a day with two times 23:00", "America/Sao_Paulo", days(1), "2018-02-18T02:30Z", "2018-02-17T02:00Z", "2018-02-18T03:00Z"},
		{"clocks go back half an hour", "Australia/Lord_Howe", hours(1), "2026-04-04T15:10Z", "2026-04-04T14:00Z", "2026-04-04T15:30Z"},
		{"the day after a skipped day", "Pacific/Apia", days(1), "2011-12-30T12:00Z", "2011-12-30T10:00Z", "2011-12-31T10:00Z"},
		{"the day before a skipped day", "Pacific/Apia", days(1), "2011-12-30T09:00Z", "2011-12-29T10:00Z", "2011-12-30T10:00Z"},
		{"the first instant of a day of 25 hours that goes back over midnight", "Asia/Beirut", days(1), "2024-10-26T10:00Z", "2024-10-25T21:00Z", "2024-10-26T22:00Z"},
		{"its repeated hour", "Asia/Beirut", days(1), "2024-10-26T21:30Z", "2024-10-25T21:00Z", "2024-10-26T22:00Z"},
		{"a day whose midnight comes twice", "America/Havana", days(1), "2024-11-03T05:30Z", "2024-11-03T04:00Z", "2024-11-04T05:00Z"},
		{"UTC", "UTC", days(1), "2026-10-25T00:30Z", "2026-10-25T00:00Z", "2026-10-26T00:00Z"},
		{"a week from 1970 on", "UTC", days(7), "1970-01-09T00:00Z", "1970-01-08T00:00Z", "1970-01-15T00:00Z"},
		{"before 1970", "Europe/Berlin", days(1), "1969-12-31T12:00Z", "1969-12-30T23:00Z", "1969-12-31T23:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at, err := time.Parse(layout, tt.at)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tt.assigner(zone(t, tt.zone)).Assign(nil, at.UnixMilli(), 0)
			if err != nil {
				t.Fatal(err)
			}
			start, end := time.UnixMilli(got[0].Start).UTC().Format(layout), time.UnixMilli(got[0].End).UTC().Format(layout)
			if len(got) != 1 || start != tt.start || end != tt.end {
				t.Errorf("got [%s, %s), want [%s, %s)", start, end, tt.start, tt.end)
			}
		})
	}
}

func days(n int) func(*time.Location) CalendarAssigner {
	return func(z *time.Location) CalendarAssigner { return Days(n, z) }
}

func hours(n int) func(*time.Location) CalendarAssigner {
	return func(z *time.Location) CalendarAssigner { return Hours(n, z) }
}

// Windows must tile time: whatever the instant, all instants of its window have the
// same window, and the neighbours touch it.
func TestCalendarWindowsTileTime(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata", "Africa/Casablanca", "America/New_York"}
	rapid.Check(t, func(t *rapid.T) {
		loc, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		a := Hours(rapid.SampledFrom([]int{1, 2, 3, 4, 6, 8, 12}).Draw(t, "hours"), loc)
		if rapid.Bool().Draw(t, "days") {
			a = Days(rapid.IntRange(1, 3).Draw(t, "n"), loc)
		}
		from := time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		to := time.Date(2060, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		at := rapid.Int64Range(from, to).Draw(t, "t")
		w := a.Span(at)
		if at < w.Start || at >= w.End {
			t.Fatalf("%v: %d is not in its window %v", a, at, w)
		}
		other := rapid.Int64Range(w.Start, w.End-1).Draw(t, "other")
		for _, same := range []int64{w.Start, w.End - 1, other} {
			if got := a.Span(same); got != w {
				t.Fatalf("%v: %d has window %v, %d has %v", a, at, w, same, got)
			}
		}
		if next := a.Span(w.End); next.Start != w.End {
			t.Fatalf("%v: behind %v comes %v", a, w, next)
		}
	})
}

// Around every change of the clock in zones of all kinds, window by window.
func TestCalendarWindowsAroundEveryChange(t *testing.T) {
	zones := []string{
		"Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Beirut",
		"Asia/Gaza", "America/Havana", "America/New_York", "Asia/Tehran", "Asia/Amman", "America/Asuncion", "Antarctica/Troll",
	}
	for _, name := range zones {
		loc := zone(t, name)
		for _, a := range []CalendarAssigner{Days(1, loc), Days(2, loc), Hours(1, loc), Hours(6, loc)} {
			at := time.Date(1975, 1, 1, 0, 0, 0, 0, time.UTC)
			for range 60 {
				_, change := at.In(loc).ZoneBounds()
				if change.IsZero() {
					break
				}
				checkTiles(t, a, change.UnixMilli()-4*24*3_600_000, change.UnixMilli()+4*24*3_600_000)
				at = change
			}
		}
	}
}

// checkTiles walks from window to window and looks at the inside of each.
func checkTiles(t *testing.T, a CalendarAssigner, from, to int64) {
	t.Helper()
	var date string
	for w := a.Span(from); w.Start < to; w = a.Span(w.End) {
		if w.End <= w.Start {
			t.Fatalf("%v: window %v", a, w)
		}
		for in := w.Start; in < w.End; in += 15 * 60_000 {
			if got := a.Span(in); got != w {
				t.Fatalf("%v: %d of window %v has window %v", a, in, w, got)
			}
		}
		if last := a.Span(w.End - 1); last != w {
			t.Fatalf("%v: the end of window %v has window %v", a, w, last)
		}
		if next := a.Span(w.End); next.Start != w.End {
			t.Fatalf("%v: behind %v comes %v", a, w, next)
		}
		if a.unit != time.Hour {
			begins := time.UnixMilli(w.Start).In(a.zone).Format(time.DateOnly)
			if begins <= date {
				t.Fatalf("%v: two windows begin on %s", a, begins)
			}
			date = begins
		}
	}
}

func TestCalendarValidate(t *testing.T) {
	for _, tt := range []struct {
		assigner CalendarAssigner
		want     string
	}{
		{Days(1, time.UTC), ""},
		{Hours(6, time.UTC), ""},
		{Days(0, time.UTC), "window.Days(0): must be at least 1"},
		{Hours(5, time.UTC), "window.Hours(5): must divide 24"},
		{Days(100_000, time.UTC), "at most"},
		{Hours(1, nil), "the time zone is nil"},
	} {
		err := tt.assigner.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want %q", tt.assigner, err, tt.want)
		}
	}
	if _, err := Days(1, time.UTC).Assign(nil, noTimestamp, 0); err != ErrNoTimestamp {
		t.Errorf("a record without a timestamp: got %v, want ErrNoTimestamp", err)
	}
}
