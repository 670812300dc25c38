package why

import "testing"

// shiftSplits moves the event times of each split of a source by what of returns for it.
func shiftSplits(e *Evidence, source string, of func(sp *Split) int64) {
	for i := range e.History {
		splitsOf(&e.History[i], source, func(sp *Split) {
			off := of(sp)
			for _, t := range []*Known[int64]{&sp.Watermark, &sp.MaxEventMillis, &sp.LastPayloadMillis, &sp.LastRecordMillis} {
				if timeOf(*t).OK {
					t.Value += off
				}
			}
		})
	}
}

// TestSameEvidenceSameDiagnosis: who asks twice gets the same answer, also where several
// groups of splits or sources have something each.
func TestSameEvidenceSameDiagnosis(t *testing.T) {
	tests := map[string]func(*Evidence){
		"two time zones": func(e *Evidence) {
			shiftSplits(e, "a", func(sp *Split) int64 { return int64(2+3*sp.Partition) * hour })
		},
		"two units": func(e *Evidence) {
			for i := range e.History {
				splitsOf(&e.History[i], "a", func(sp *Split) {
					factor := []int64{1000, 1_000_000}[sp.Partition]
					sp.Watermark, sp.MaxEventMillis, sp.LastPayloadMillis = Know(sp.Watermark.Value*factor), Know(sp.MaxEventMillis.Value*factor), Know(sp.LastPayloadMillis.Value*factor)
				})
			}
		},
		"two alignment groups": func(e *Evidence) {
			throttle(e, &e.History[0], &e.History[1])
			operator(e, "b").Source.Strategy.Alignment.Group = "other"
		},
	}
	for name, change := range tests {
		e := healthyEvidence(t)
		change(e)
		d := Diagnose(e)
		if d.Answer().Severity == Fine {
			t.Errorf("%s: nothing is found:\n%v", name, d)
		}
		for range 100 {
			if again := Diagnose(e).String(); again != d.String() {
				t.Errorf("%s: first\n%v\nthen\n%s", name, d, again)
				break
			}
		}
	}
}
