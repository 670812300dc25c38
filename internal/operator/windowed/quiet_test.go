package windowed

import (
	"testing"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// TestSilenceSetsNoTimerUnderBackPressure: what cannot end the silence need not be looked
// at. The timer is back with what was left of the wait, or with all of it if a record
// came meanwhile.
func TestSilenceSetsNoTimerUnderBackPressure(t *testing.T) {
	op := silentCount(window.Tumbling(ms(10)), 0)
	pressure := op.(operator.BackPressured).BackPressure
	h := openHarness(t, op)
	pressure(true, false)
	pressure(false, false)
	if n := len(h.clock.timers); n != 0 {
		t.Errorf("%d timers before the first record, want none", n)
	}
	must(t, h.process(at("a", 1)...))
	must(t, h.clock.set(999))
	for range 3 {
		pressure(true, false)
		must(t, h.clock.set(h.clock.now+5000))
		pressure(false, true)
		if n := len(h.clock.timers); n != 0 {
			t.Errorf("%d timers under back pressure, want none", n)
		}
		pressure(false, false)
	}
	h.expect(t, 0)
	pressure(false, true)
	must(t, h.process(at("a", 2)...))
	pressure(false, false)
	must(t, h.clock.set(h.clock.now+999))
	h.expect(t, 0)
	must(t, h.clock.set(h.clock.now+1))
	h.expect(t, 0, "a [0,10) 2 closed by silence")
}
