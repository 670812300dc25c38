package why

import (
	"strings"
	"testing"
)

// inUnit makes payloads look as if they were read in another unit than the job's.
func inUnit(e *Evidence, source string, of func(millis int64) int64) {
	for i := range e.History {
		splitsOf(&e.History[i], source, func(sp *Split) {
			event := of(sp.LastPayloadMillis.Value)
			sp.LastPayloadMillis = Know(event)
			sp.Profile = &Profile{Records: 50, FirstAppendMillis: sp.LastAppendMillis.Value - minute, LastAppendMillis: sp.LastAppendMillis.Value}
			if event > sp.LastAppendMillis.Value {
				sp.Profile.AheadRecords, sp.Profile.MaxAheadMillis = 50, event-sp.LastAppendMillis.Value
				sp.Profile.Ahead = []AheadRecord{{Offset: 599, EventMillis: event, AppendMillis: sp.LastAppendMillis.Value}}
			}
		})
	}
}

// TestMisreadPayloads: where the job's own watermarks are right it has converted the times,
// in whatever unit they were read back.
func TestMisreadPayloads(t *testing.T) {
	units := []struct {
		name, flag string
		wrong      Code
		of         func(int64) int64
	}{
		{"seconds", "--unit s", TimestampsInSeconds, func(t int64) int64 { return t / 1000 }},
		{"microseconds", "--unit us", TimestampsTooFine, func(t int64) int64 { return t * 1000 }},
		{"nanoseconds", "--unit ns", TimestampsTooFine, func(t int64) int64 { return t * 1_000_000 }},
	}
	for _, u := range units {
		for _, gauges := range []bool{true, false} {
			e := healthyEvidence(t)
			inUnit(e, "a", u.of)
			if !gauges {
				eachSplit(e, withoutGauges)
			}
			d := Diagnose(e)
			if a := d.Answer(); a.Code != None || !strings.Contains(strings.Join(d.Blind, " "), u.flag) {
				t.Errorf("%s, gauges %t: %s, could not see %q", u.name, gauges, a.Code, d.Blind)
			}
		}
		t.Run(u.name+" that the job takes for milliseconds", func(t *testing.T) {
			e := healthyEvidence(t)
			inUnit(e, "a", u.of)
			for i := range e.History {
				splitsOf(&e.History[i], "a", func(sp *Split) { sp.MaxEventMillis, sp.Watermark = sp.LastPayloadMillis, sp.LastPayloadMillis })
			}
			if a := Diagnose(e).Answer(); a.Code != u.wrong {
				t.Errorf("%s, want %s", a.Code, u.wrong)
			}
		})
	}
	t.Run("a few records in seconds are late", func(t *testing.T) {
		e := healthyEvidence(t)
		inUnit(e, "a", units[0].of)
		setLate(&e.History[0], 50)
		setLate(&e.History[1], 100)
		if d := Diagnose(e); strings.Contains(strings.Join(d.Blind, " "), "--unit") {
			t.Errorf("taken for converted: %v", d)
		}
	})
	t.Run("records that are still to be read", func(t *testing.T) {
		e := healthyEvidence(t)
		inUnit(e, "a", units[1].of)
		eachSplit(e, func(sp *Split) {
			if sp.Source == "a" {
				sp.Lag, sp.Profile.AheadRecords = Know[int64](1), 1
			}
		})
		if a := Diagnose(e).Answer(); a.Code != TimestampsTooFine {
			t.Errorf("%s, want %s", a.Code, TimestampsTooFine)
		}
	})
}
