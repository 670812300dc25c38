package progress_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/internal/progress"
)

// trace writes down what comes out of any kind of output.
type trace struct{ lines []string }

func (l *trace) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *trace) Watermark(t int64) error { l.add("watermark %d", t); return nil }
func (l *trace) Status(idle bool) error  { l.add("idle %t", idle); return nil }
func (l *trace) EmitWatermark(t int64)   { l.add("watermark %d", t) }
func (l *trace) MarkIdle()               { l.add("markIdle") }
func (l *trace) MarkActive()             { l.add("markActive") }

// naiveValve is section 1 of the specification taken literally: every rule looks
// at all channels.
type naiveValve struct {
	channels  []progress.ChannelState
	watermark int64
	idle      bool
	rules     progress.Rules
	out       trace
}

func newNaiveValve(n int, rules progress.Rules) *naiveValve {
	v := &naiveValve{watermark: math.MinInt64, rules: rules}
	for range n {
		v.channels = append(v.channels, progress.ChannelState{Watermark: math.MinInt64, Aligned: true})
	}
	return v
}

func (v *naiveValve) Watermark(channel int, t int64) {
	c := &v.channels[channel]
	if v.idle || c.Idle || t <= c.Watermark {
		return
	}
	c.Watermark = t
	if !c.Aligned && t >= v.watermark {
		c.Aligned = true
	}
	v.tryMin()
}

func (v *naiveValve) tryMin() {
	lowest, found := int64(math.MaxInt64), false
	for _, c := range v.channels {
		if c.Aligned {
			lowest, found = min(lowest, c.Watermark), true
		}
	}
	if found && lowest > v.watermark {
		v.watermark = lowest
		_ = v.out.Watermark(lowest)
	}
}

func (v *naiveValve) Status(channel int, idle bool) {
	c := &v.channels[channel]
	if c.Idle == idle {
		return
	}
	c.Idle = idle
	if !idle {
		c.Aligned = c.Watermark >= v.watermark
		if v.idle {
			v.idle = false
			_ = v.out.Status(false)
		}
		if v.rules == progress.Current {
			v.tryMin()
		}
		return
	}
	c.Aligned = false
	active := slices.ContainsFunc(v.channels, func(c progress.ChannelState) bool { return !c.Idle })
	if active {
		if c.Watermark == v.watermark {
			v.tryMin()
		}
		return
	}
	largest := int64(math.MinInt64)
	for _, c := range v.channels {
		largest = max(largest, c.Watermark)
	}
	if (c.Watermark == v.watermark || v.rules == progress.Current) && largest > v.watermark {
		v.watermark = largest
		_ = v.out.Watermark(largest)
	}
	v.idle = true
	_ = v.out.Status(true)
}

// times are few, so that equal ones are common, with both ends of time.
func times() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-3, 12), rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, math.MaxInt64}))
}

func TestValveEqualsNaiveModel(t *testing.T) {
	for _, rules := range []progress.Rules{progress.Current, progress.Flink23} {
		t.Run(fmt.Sprint("rules ", rules), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "channels")
				model := newNaiveValve(n, rules)
				var out trace
				valve := progress.NewValve(n, rules, &out)
				for range rapid.IntRange(1, 60).Draw(t, "steps") {
					channel := rapid.IntRange(0, n-1).Draw(t, "channel")
					switch rapid.IntRange(0, 3).Draw(t, "kind") {
					case 0:
						idle := rapid.Bool().Draw(t, "idle")
						model.Status(channel, idle)
						mustDo(t, valve.Status(channel, idle))
					default:
						ts := times().Draw(t, "watermark")
						model.Watermark(channel, ts)
						mustDo(t, valve.Watermark(channel, ts))
					}
					for i, want := range model.channels {
						if got := valve.Channel(i); got != want {
							t.Fatalf("channel %d: %+v, want %+v", i, got, want)
						}
					}
				}
				if diff := cmp.Diff(model.out.lines, out.lines); diff != "" {
					t.Fatalf("output (-model +valve):\n%s", diff)
				}
				checkStream(t, out.lines)
			})
		})
	}
}

func mustDo(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// checkStream: watermarks rise, statuses alternate, and no watermark is sent
// while idle.
func checkStream(t *rapid.T, lines []string) {
	last, idle := int64(math.MinInt64), false
	for _, line := range lines {
		var watermark int64
		if n, _ := fmt.Sscanf(line, "watermark %d", &watermark); n == 1 {
			if watermark <= last || idle {
				t.Fatalf("watermark %d after %d, idle %t", watermark, last, idle)
			}
			last = watermark
			continue
		}
		if line == fmt.Sprintf("idle %t", idle) {
			t.Fatalf("status repeated: %s", line)
		}
		idle = !idle
	}
}

// naiveCombined is section 2 of the specification taken literally.
type naiveCombined struct {
	inputs    map[int]*naiveInput
	watermark int64
	idle      bool
}

type naiveInput struct {
	watermark int64
	idle      bool
}

func newNaiveCombined(n int) *naiveCombined {
	c := &naiveCombined{inputs: map[int]*naiveInput{}, watermark: math.MinInt64}
	for i := range n {
		c.inputs[i] = &naiveInput{watermark: math.MinInt64}
	}
	return c
}

func (c *naiveCombined) update() (advanced bool) {
	if len(c.inputs) == 0 {
		return false
	}
	lowest, largest := int64(math.MaxInt64), int64(math.MinInt64)
	c.idle = true
	for _, in := range c.inputs {
		largest = max(largest, in.watermark)
		if !in.idle {
			c.idle = false
			lowest = min(lowest, in.watermark)
		}
	}
	t := lowest
	if c.idle {
		t = largest
	}
	if t <= c.watermark {
		return false
	}
	c.watermark = t
	return true
}

func TestCombinationEqualsNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "inputs")
		model := newNaiveCombined(n)
		var want, got trace
		combination := progress.NewCombination(n, &got)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "input")
			in, wasIdle := model.inputs[i], model.idle
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				in.idle = rapid.Bool().Draw(t, "idle")
				if model.update() {
					want.EmitWatermark(model.watermark)
				}
				if model.idle != wasIdle {
					_ = want.Status(model.idle)
				}
				mustDo(t, combination.Input(i).Status(in.idle))
			} else {
				ts := times().Draw(t, "watermark")
				in.idle, in.watermark = false, max(in.watermark, ts)
				if model.update() {
					want.EmitWatermark(model.watermark)
				}
				mustDo(t, combination.Input(i).Watermark(ts))
			}
			if watermark, idle := combination.InputState(i); watermark != in.watermark || idle != in.idle {
				t.Fatalf("input %d: %d, %t, want %+v", i, watermark, idle, *in)
			}
		}
		if diff := cmp.Diff(want.lines, got.lines); diff != "" {
			t.Fatalf("output (-model +combination):\n%s", diff)
		}
	})
}

// naiveMultiplexer is sections 5.6 to 5.10 taken literally.
type naiveMultiplexer struct {
	*naiveCombined
	out trace
}

func (m *naiveMultiplexer) combine() {
	if m.update() {
		m.out.EmitWatermark(m.watermark)
	}
	if m.idle {
		m.out.MarkIdle()
	}
}

func (m *naiveMultiplexer) emit(id int, t int64, deferred bool) {
	in := m.inputs[id]
	rose := t > in.watermark
	in.idle, in.watermark = false, max(in.watermark, t)
	if !deferred && rose && t > m.watermark {
		m.combine()
	}
}

func (m *naiveMultiplexer) mark(id int, idle, deferred bool) {
	m.inputs[id].idle = idle
	if !deferred {
		m.combine()
	}
}

func TestMultiplexerEqualsNaiveModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := &naiveMultiplexer{naiveCombined: newNaiveCombined(0)}
		var out trace
		mux := progress.NewMultiplexer(&out)
		outputs := map[int]*progress.SplitOutput{}
		nextID := 0
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			kind := rapid.IntRange(0, 9).Draw(t, "kind")
			if len(outputs) == 0 || kind == 0 {
				model.inputs[nextID] = &naiveInput{watermark: math.MinInt64}
				outputs[nextID] = mux.Add(nil)
				nextID++
				continue
			}
			ids := make([]int, 0, len(outputs))
			for id := range outputs {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			id := rapid.SampledFrom(ids).Draw(t, "id")
			deferred := rapid.Bool().Draw(t, "deferred")
			output := outputs[id].Deferred()
			if !deferred {
				output = outputs[id]
			}
			switch kind {
			case 1:
				delete(model.inputs, id)
				if !mux.Remove(outputs[id]) || mux.Remove(outputs[id]) {
					t.Fatal("a split is removed once")
				}
				delete(outputs, id)
			case 2:
				model.combine()
				mux.Combine()
			case 3:
				model.mark(id, true, deferred)
				output.MarkIdle()
			case 4:
				model.mark(id, false, deferred)
				output.MarkActive()
			default:
				ts := times().Draw(t, "watermark")
				model.emit(id, ts, deferred)
				output.EmitWatermark(ts)
			}
		}
		if diff := cmp.Diff(model.out.lines, out.lines); diff != "" {
			t.Fatalf("output (-model +multiplexer):\n%s", diff)
		}
	})
}

// TestRemovedSplitIsSilent: what a reader does to a split after its release must
// not reach the split that took its place.
func TestRemovedSplitIsSilent(t *testing.T) {
	var out trace
	mux := progress.NewMultiplexer(&out)
	gone := mux.Add(func() { t.Error("a removed split changed") })
	mux.Remove(gone)
	next := mux.Add(nil)
	for _, o := range []interface {
		EmitWatermark(int64)
		MarkIdle()
		MarkActive()
	}{gone, gone.Deferred()} {
		o.EmitWatermark(5)
		o.MarkIdle()
		o.MarkActive()
	}
	mux.Combine()
	if len(out.lines) > 0 || next.Watermark() != math.MinInt64 || next.Idle() || gone.Idle() || gone.Watermark() != math.MinInt64 {
		t.Errorf("output %v, the next split at %d, idle %t", out.lines, next.Watermark(), next.Idle())
	}
}

// TestClocksChain: a clock that runs on another's time stands still whenever
// either is paused, exactly as one clock with both pauses.
func TestClocksChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shared, own, both progress.PausableClock
		var sharedPauses, ownPauses int
		now := rapid.Int64Range(-100, 100).Draw(t, "start")
		elapsed := func() int64 { return own.Time(shared.Time(now)) }
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				shared.Pause(now)
				both.Pause(now)
				sharedPauses++
			case 1:
				if sharedPauses > 0 {
					sharedPauses--
					shared.Resume(now)
					both.Resume(now)
				}
			case 2:
				own.Pause(shared.Time(now))
				both.Pause(now)
				ownPauses++
			case 3:
				if ownPauses > 0 {
					ownPauses--
					own.Resume(shared.Time(now))
					both.Resume(now)
				}
			default:
				now += rapid.Int64Range(0, 20).Draw(t, "ms")
			}
			if got, want := elapsed(), both.Time(now); got != want {
				t.Fatalf("chained %d, single %d", got, want)
			}
		}
	})
}

func TestClockResumedWithoutPause(t *testing.T) {
	var c progress.PausableClock
	c.Resume(5)
	c.Pause(10)
	if got := c.Time(20); got != 10 {
		t.Errorf("Time(20) = %d while paused at 10", got)
	}
}
