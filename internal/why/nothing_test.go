package why

import (
	"strings"
	"testing"
)

// hold lets partition 1 of source a be silent since a time.
func holdSince(e *Evidence, since int64) {
	for i := range e.History {
		s := &e.History[i]
		splitsOf(s, "a", func(sp *Split) {
			if sp.Partition == 1 {
				sp.MaxEventMillis, sp.Watermark, sp.LastPayloadMillis, sp.LastRecordMillis = Know(since), Know(since-2001), Know(since), Know(since)
				sp.LastReadMillis, sp.LastAppendMillis = Know(since), Know(since)
				sp.Records, sp.PositionOffset, sp.EndOffset, sp.Lag = Know[int64](100), Know[int64](100), Know[int64](100), Know[int64](0)
			}
		})
		subtasksOf(s, "a", func(sub *Subtask) {
			if sub.Index == 1 {
				sub.OutputWatermark, sub.RecordsOut = Know(since-2001), Know[int64](100)
			}
		})
		subtasksOf(s, "pair", func(sub *Subtask) {
			sub.InputWatermarks[0], sub.OutputWatermark = Know(since-2001), Know(since-2001)
		})
		subtasksOf(s, "per-minute", func(sub *Subtask) { sub.InputWatermark = Know(since - 2001) })
	}
}

// TestNothingIsDue: a watermark that stands is no stall before a window could be over,
// however old it is, and what holds it is named.
func TestNothingIsDue(t *testing.T) {
	for _, age := range []int64{minute, 4 * minute, 8 * minute} {
		e := healthyEvidence(t)
		operator(e, "per-minute").Window.SizeMillis = dayMillis
		holdSince(e, e.AtMillis-age)
		d := Diagnose(e)
		if a := d.Answer(); a.Severity != Fine || a.Code == NotEnoughEvidence {
			t.Errorf("after %s: %v", duration(age), d)
		} else if text := a.Answer + strings.Join(a.Why, " "); a.Code == None && (!strings.Contains(text, "partition 1 of topic a") || !strings.Contains(text, "nothing is due")) {
			t.Errorf("after %s: %q", duration(age), text)
		}
	}
}

// TestNothingComesOut: what keeps results back besides event time is said.
func TestNothingComesOut(t *testing.T) {
	for want, change := range map[string]func(e *Evidence){
		"no record reaches": func(e *Evidence) {
			for i := range e.History {
				subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) { sub.RecordsIn = Know[int64](0) })
			}
		},
		"its trigger never fires": func(e *Evidence) { operator(e, "per-minute").NeverFires = true },
		"Ask again in 18 s": func(e *Evidence) {
			e.StartedMillis = Know(e.AtMillis - 12_000)
			operator(e, "per-minute").Window.SizeMillis = 1000
		},
	} {
		e := healthyEvidence(t)
		change(e)
		if a := Diagnose(e).Answer(); a.Code != None || !strings.Contains(a.Answer, want) {
			t.Errorf("%s: %q, want %q", a.Code, a.Answer, want)
		}
	}
}
