package progress

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/eventtime"
)

// TestSettledCallsChangeNothing runs the same events through two sources, one of which
// leaves out the periodic calls that Settled says are of no use.
func TestSettledCallsChangeNothing(t *testing.T) {
	left := 0
	rapid.Check(t, func(t *rapid.T) {
		strategy := eventtime.ForBoundedOutOfOrderness[int](time.Millisecond)
		if rapid.Bool().Draw(t, "idleness") {
			strategy = strategy.WithIdleness(500 * time.Millisecond)
		}
		if rapid.Bool().Draw(t, "alignment") {
			strategy = strategy.WithWatermarkAlignment("g", 0, time.Second)
		}
		all, some := newPair(t, strategy), newPair(t, strategy)
		woken := true
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now := int64(step+1) * 200
			act, wakes := action(t, now)
			woken = woken || wakes
			act(all)
			act(some)
			if err := all.source.Periodic(now); err != nil {
				t.Fatal(err)
			}
			if woken || !some.source.Settled() {
				woken = false
				if err := some.source.Periodic(now); err != nil {
					t.Fatal(err)
				}
			} else {
				left++
			}
			if got, want := some.out.take(), all.out.take(); !slices.Equal(got, want) {
				t.Fatalf("at %d: %q, with all periodic calls %q", now, got, want)
			}
			if got, want := some.states(), all.states(); got != want {
				t.Fatalf("at %d: splits are %s, with all periodic calls %s", now, got, want)
			}
		}
	})
	if left == 0 {
		t.Error("no call was left out")
	}
}

// pair is a source and what comes out of it.
type pair struct {
	source *Source[int]
	out    *events
	added  int
}

type pauseNothing struct{}

func (pauseNothing) PauseSplits([]string)  {}
func (pauseNothing) ResumeSplits([]string) {}

func newPair(t *rapid.T, strategy eventtime.WatermarkStrategy[int]) *pair {
	p := &pair{out: &events{}}
	var err error
	cfg := SourceConfig{Samples: 1, Pauser: pauseNothing{}, Report: func(w int64) { *p.out = append(*p.out, fmt.Sprint("report ", w)) }}
	if p.source, err = NewSource(strategy, cfg, 0, p.out); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pair) states() string {
	text := ""
	for _, sp := range p.source.Splits() {
		text += fmt.Sprint(sp.ID(), " ", sp.State(), " ", sp.Watermark(), ", ")
	}
	return text
}

// action draws what happens before a periodic call, mostly nothing, and whether it may
// change what the call does.
func action(t *rapid.T, now int64) (act func(*pair), wakes bool) {
	which := rapid.IntRange(0, 9).Draw(t, "split")
	timestamp := rapid.Int64Range(0, 1000).Draw(t, "timestamp")
	on := rapid.Bool().Draw(t, "on")
	split := func(p *pair) *Split[int] {
		if n := len(p.source.Splits()); n > 0 {
			return p.source.Splits()[which%n]
		}
		return nil
	}
	switch rapid.SampledFrom([]string{"", "", "", "", "", "record", "record", "add", "release", "limit", "sample", "pressure"}).Draw(t, "action") {
	case "record":
		return func(p *pair) {
			if sp := split(p); sp != nil {
				sp.OnBatch([]int{0}, []int64{timestamp})
			}
		}, true
	case "add":
		return func(p *pair) {
			p.added++
			if _, err := p.source.AddSplit(fmt.Sprint(p.added), now); err != nil {
				t.Fatal(err)
			}
		}, true
	case "release":
		return func(p *pair) {
			if sp := split(p); sp != nil {
				p.source.ReleaseSplit(sp)
			}
		}, true
	case "limit":
		return func(p *pair) {
			if err := p.source.MaxAllowed(timestamp, now); err != nil {
				t.Fatal(err)
			}
		}, false
	case "sample":
		return func(p *pair) {
			if err := p.source.Sample(now); err != nil {
				t.Fatal(err)
			}
		}, false
	case "pressure":
		return func(p *pair) { p.source.BackPressure(now, on, false) }, false
	}
	return func(*pair) {}, false
}
