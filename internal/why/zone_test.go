package why

import (
	"strings"
	"testing"
)

// TestZoneOf: what is off by no zone's distance from UTC is no time zone.
func TestZoneOf(t *testing.T) {
	for minutes, want := range map[int64]int64{
		60: 60, -300: -300, 840: 840, 330: 330, 345: 345, -570: -570, -150: -150, 333: 330, 57: 60,
		0: 0, 30: 0, -32: 0, 90: 0, -90: 0, 450: 0, 690: 0, 70: 0, 15: 0, 900: 0, -10_000: 0,
	} {
		if got, ok := zoneOf(minutes * minute); ok != (want != 0) || ok && got != want*minute {
			t.Errorf("%d min: %d, %t; want %d min", minutes, got/minute, ok, want)
		}
	}
}

// TestDelayIsNoTimeZone: a pipeline that is evenly behind is not one in another zone, or
// only perhaps.
func TestDelayIsNoTimeZone(t *testing.T) {
	for _, test := range []struct {
		minutes int64
		zone    bool
	}{{-32, false}, {-90, false}, {-60, true}, {-300, true}} {
		e := healthyEvidence(t)
		for _, source := range []string{"a", "b"} {
			shiftSplits(e, source, func(*Split) int64 { return test.minutes * minute })
		}
		a := Diagnose(e).Answer()
		if (a.Code == TimezoneShift) != test.zone || test.zone && len(a.Unless) == 0 {
			t.Errorf("%d min: %s, unless %v", test.minutes, a.Code, a.Unless)
		}
	}
}

// TestOneRecordIsNoTimeZone: the last record alone does not tell of all.
func TestOneRecordIsNoTimeZone(t *testing.T) {
	profile := func(at, spread, ahead int64) *Profile {
		return &Profile{Records: 200, FirstAppendMillis: at - 200_000, LastAppendMillis: at, DelaySpreadMillis: spread, AheadRecords: ahead}
	}
	tests := []struct {
		name    string
		off     int64
		looks   int
		profile func(at int64) *Profile
		zone    bool
		answer  string
		likely  bool
	}{
		{"late among others", -hour, 1, func(at int64) *Profile { return profile(at, hour, 0) }, false, "", false},
		{"late among others, at two looks", -hour, 2, func(at int64) *Profile { return profile(at, hour, 0) }, false, "", false},
		{"ahead among others", hour, 2, func(at int64) *Profile { return profile(at, 0, 3) }, false, "", false},
		{"ahead, nobody knows of others", 2 * hour, 1, func(int64) *Profile { return nil }, true, "The last record of ", true},
		{"ahead like all", 2 * hour, 1, func(at int64) *Profile { return profile(at, 0, 200) }, true, "Every record of ", false},
		{"behind like all", -2 * hour, 2, func(at int64) *Profile { return profile(at, 1000, 0) }, true, "Every record of ", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := healthyEvidence(t)
			e.History = e.History[2-test.looks:]
			for i := range e.History {
				splitsOf(&e.History[i], "a", func(sp *Split) {
					sp.LastPayloadMillis, sp.Profile = Know(sp.LastAppendMillis.Value+test.off), test.profile(sp.LastAppendMillis.Value)
				})
			}
			d := Diagnose(e)
			a := d.Answer()
			if (a.Code == TimezoneShift) != test.zone || !strings.HasPrefix(a.Answer, test.answer) || test.zone && (len(a.Unless) > 0) != test.likely {
				t.Errorf("%s, unless %v: %s", a.Code, a.Unless, a.Answer)
			}
		})
	}
}
