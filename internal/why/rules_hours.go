package why

import (
	"fmt"
	"slices"
)

const (
	// nightMillis is how long a silence must be for the clock to be its reason.
	nightMillis = 2 * 3_600_000
	// sameTimeMillis is how far times of day may be apart to be the same.
	sameTimeMillis = 45 * 60_000
	dayMillis      = 24 * 3_600_000
)

// quietByTheClock turns a finding of silence into one of business hours, if the splits
// were silent at the same time of day before.
func (f *Finding) quietByTheClock(splits []quietSplit) {
	var before Gap
	for _, s := range splits {
		gap, ok := s.sameGapBefore()
		if !ok {
			return
		}
		if before.ToMillis == 0 || gap.ToMillis < before.ToMillis {
			before = gap
		}
	}
	if before.ToMillis == 0 {
		return
	}
	from, to := timeOfDay(before.FromMillis), timeOfDay(before.ToMillis)
	f.Code = BusinessHours
	f.Why = slices.Insert(f.Why, 0, fmt.Sprintf("It was silent from %s to %s UTC before, on %s, and fell silent at the same time of day now.",
		from.text(), to.text(), instant(before.FromMillis)[:len("2006-01-02")]))
	f.Numbers = append(f.Numbers, Number{"quiet_from_hour", from.hour}, Number{"quiet_to_hour", to.hour}, Number{"last_gap_ms", before.Millis()})
	f.RuledOut = append(f.RuledOut, RuledOut{AllInputsQuiet, "the silence repeats by the clock: it is no outage"})
}

// sameGapBefore returns an earlier silence that began at the time of day at which the
// present one did.
func (s quietSplit) sameGapBefore() (Gap, bool) {
	if s.never || s.Profile == nil {
		return Gap{}, false
	}
	for _, gap := range s.Profile.Gaps {
		if gap.Millis() < nightMillis || s.millis > gap.Millis()+sameTimeMillis {
			continue
		}
		apart := (s.sinceMillis - gap.FromMillis) % dayMillis
		if apart = min(apart, dayMillis-apart); apart <= sameTimeMillis && s.sinceMillis-gap.FromMillis > dayMillis/2 {
			return gap, true
		}
	}
	return Gap{}, false
}

// dayTime is a time of day, rounded to half an hour.
type dayTime struct{ hour, minute int64 }

func timeOfDay(millis int64) dayTime {
	const half = 30 * 60_000
	halves := (millis%dayMillis + half/2) / half % 48
	return dayTime{halves / 2, halves % 2 * 30}
}

func (t dayTime) text() string { return fmt.Sprintf("%02d:%02d", t.hour, t.minute) }
