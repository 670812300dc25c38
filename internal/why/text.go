package why

import (
	"fmt"
	"strings"
	"time"
)

// duration writes milliseconds as people do: 250 ms, 60 s, 7 min 12 s, 24 h, 3 days.
func duration(millis int64) string {
	if millis < 0 {
		return "-" + duration(-max(millis, -MaxTime))
	}
	const second, minute, hour, day = 1000, 60_000, 3_600_000, 86_400_000
	switch {
	case millis < second:
		return fmt.Sprintf("%d ms", millis)
	case millis < 10*second && millis%second != 0:
		return fmt.Sprintf("%.1f s", float64(millis)/second)
	case millis < 2*minute:
		return fmt.Sprintf("%d s", (millis+second/2)/second)
	case millis < hour-second/2:
		return pair((millis+second/2)/second, 60, "min", "s")
	case millis < 3*day:
		return pair((millis+minute/2)/minute, 60, "h", "min")
	case millis < 2000*day:
		return pair((millis+hour/2)/hour, 24, "days", "h")
	}
	return fmt.Sprintf("%d years", (millis/day+182)/365)
}

// pair writes n as big units and small ones, small of which make a big one.
func pair(n, small int64, bigUnit, smallUnit string) string {
	if n%small == 0 {
		return fmt.Sprintf("%d %s", n/small, bigUnit)
	}
	return fmt.Sprintf("%d %s %d %s", n/small, bigUnit, n%small, smallUnit)
}

// instant writes an event time or a watermark, in UTC.
func instant(millis int64) string {
	switch {
	case millis == MinTime:
		return "none"
	case millis == MaxTime:
		return "the end of time"
	}
	t := time.UnixMilli(millis).UTC()
	if t.Year() > 9999 || t.Year() < 1 {
		return fmt.Sprintf("the year %d", t.Year())
	}
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02 15:04:05 UTC")
	}
	return t.Format("2006-01-02 15:04:05.000 UTC")
}

// clock writes the time of day, in UTC.
func clock(millis int64) string { return time.UnixMilli(millis).UTC().Format("15:04:05 UTC") }

// count writes a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// list writes "1, 2 and 3".
func list[T any](items []T) string {
	var b strings.Builder
	for i, x := range items {
		switch {
		case i == 0:
		case i == len(items)-1:
			b.WriteString(" and ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, x)
	}
	return b.String()
}

// numbered writes "partition 2" or "partitions 1, 2 and 3"; long lists are cut.
func numbered[T int | int32](noun string, numbers []T) string {
	switch n := len(numbers); {
	case n == 0:
		return noun + "s"
	case n == 1:
		return fmt.Sprintf("%s %d", noun, numbers[0])
	case n > 12:
		return fmt.Sprintf("%ss %s and %d others", noun, strings.ReplaceAll(list(numbers[:10]), " and ", ", "), n-10)
	}
	return noun + "s " + list(numbers)
}

// verb returns one form or the other for a number of things.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// quoted puts a name into quotation marks.
func quoted(name string) string { return `"` + name + `"` }

// upper begins a sentence.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// title names a target at the beginning of a sentence.
func (t *target) title() string {
	what := "Operator "
	switch t.op.Kind {
	case KindWindow:
		what = "Window "
	case KindJoin:
		what = "Join "
	}
	return what + quoted(t.v.nameOf(t.op.ID))
}
