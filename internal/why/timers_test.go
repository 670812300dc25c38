package why

import (
	"slices"
	"testing"
)

// timersEvidence is of a job whose window is a keyed function instead, with a partition that
// has been silent for three minutes. next is its earliest timer.
func timersEvidence(t *testing.T, kind OperatorKind, registered bool, next int64) *Evidence {
	t.Helper()
	e := healthyEvidence(t)
	o := operator(e, "per-minute")
	o.Kind, o.Window = kind, nil
	holdSince(e, e.AtMillis-3*minute)
	for i := range e.History {
		subtasksOf(&e.History[i], "per-minute", func(sub *Subtask) {
			sub.EventTimers, sub.NextTimerMillis = Know(registered), KnowIf(next, registered)
			sub.OpenWindows = Known[int64]{}
		})
	}
	return e
}

// TestTimersWait: a function waits for event time if it has registered timers, and is held
// if one of them is due.
func TestTimersWait(t *testing.T) {
	now := healthyEvidence(t).AtMillis
	tests := []struct {
		name       string
		kind       OperatorKind
		registered bool
		next       int64
		want       Code
		severity   Severity
	}{
		{"a timer that is due", KindMaybeTimers, true, now - 2*minute, QuietPartition, Stall},
		{"one of tomorrow", KindMaybeTimers, true, now + dayMillis, None, Fine},
		{"all have fired", KindMaybeTimers, true, MaxTime, None, Fine},
		{"no timer ever", KindMaybeTimers, false, 0, None, Fine},
		{"a function of Flink's, of which nobody knows", KindTimers, false, 0, QuietPartition, Stall},
		{"an interval join", KindJoin, true, now - 2*minute, QuietPartition, Stall},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := timersEvidence(t, test.kind, test.registered, test.next)
			operator(e, "per-minute").Interval = test.kind == KindJoin
			d := Diagnose(e)
			a := d.Answer()
			if a.Code != test.want || a.Severity != test.severity || a.Code == QuietPartition && !slices.Equal(a.Culprit.Partitions, []int32{1}) {
				t.Errorf("want %s, %s:\n%v", test.want, test.severity, d)
			}
		})
	}
}

// TestWindowsThatCloseBySilence: they wait for no later record when nothing comes at all. If
// only one partition is silent, records come, and they do.
func TestWindowsThatCloseBySilence(t *testing.T) {
	silence := func(e *Evidence) {
		since := e.AtMillis - 4*minute
		for i := range e.History {
			s := &e.History[i]
			for k := range s.Splits {
				sp := &s.Splits[k]
				sp.MaxEventMillis, sp.Watermark, sp.LastPayloadMillis, sp.LastRecordMillis = Know(since), Know(since-2001), Know(since), Know(since)
				sp.LastReadMillis, sp.LastAppendMillis = Know(since), Know(since)
				sp.Records, sp.PositionOffset, sp.EndOffset, sp.Lag = Know[int64](100), Know[int64](100), Know[int64](100), Know[int64](0)
			}
			for k := range s.Subtasks {
				sub := &s.Subtasks[k]
				sub.InputWatermark, sub.OutputWatermark = Know(since-2001), Know(since-2001)
				sub.RecordsIn, sub.RecordsOut = Know[int64](400), Know[int64](400)
				for j := range sub.InputWatermarks {
					sub.InputWatermarks[j] = Know(since - 2001)
				}
			}
		}
	}
	e := healthyEvidence(t)
	silence(e)
	if a := Diagnose(e).Answer(); a.Code != AllInputsQuiet || a.Severity != Stall {
		t.Fatalf("%s, %s: %s", a.Code, a.Severity, a.Answer)
	}
	operator(e, "per-minute").SilenceMillis = 5000
	d := Diagnose(e)
	if a := d.Answer(); a.Severity != Fine || a.Code != AllInputsQuiet || slices.Contains(fixCodes(a), ProcessingTimeTimeout) {
		t.Errorf("with CloseAfterSilence: %v", d)
	}
	e = healthyEvidence(t)
	operator(e, "per-minute").SilenceMillis = 5000
	holdSince(e, e.AtMillis-4*minute)
	if a := Diagnose(e).Answer(); a.Code != QuietPartition || a.Severity != Stall {
		t.Errorf("one partition: %s, %s: %s", a.Code, a.Severity, a.Answer)
	}
}
