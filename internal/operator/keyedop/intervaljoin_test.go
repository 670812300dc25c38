package keyedop

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
)

type intervalCase struct {
	caseHead
	Join struct {
		Lower          int64 `json:"lower"`
		Upper          int64 `json:"upper"`
		LowerInclusive bool  `json:"lowerInclusive"`
		UpperInclusive bool  `json:"upperInclusive"`
		LateSideOutput bool  `json:"lateSideOutput"`
	} `json:"join"`
	Steps          []intervalStep `json:"steps"`
	EndEventTimers int            `json:"endEventTimers"`
	ConstructError string         `json:"constructError"`
}

type intervalStep struct {
	Do          string            `json:"do"`
	Key         string            `json:"key"`
	Value       int               `json:"value"`
	Timestamp   *int64            `json:"ts"`
	Emit        []json.RawMessage `json:"emit"`
	LeftBuffer  []int64           `json:"leftBuffer"`
	RightBuffer []int64           `json:"rightBuffer"`
	Error       string            `json:"error"`
}

func (c intervalCase) interval() Interval {
	i := Interval{Lower: c.Join.Lower, Upper: c.Join.Upper}
	if !c.Join.LowerInclusive {
		i.Lower++
	}
	if !c.Join.UpperInclusive {
		i.Upper--
	}
	if c.Join.LateSideOutput {
		i.LateLeft, i.LateRight = "left", "right"
	}
	return i
}

// pairs emits what a pair consists of.
func pairs(p *Pair, out *operator.Emitter[result]) func(row, row) error {
	return func(l, r row) error {
		out.Append(result{"key": l.Key, "left": l.Value, "right": r.Value, "leftTs": p.LeftTimestamp, "rightTs": p.RightTimestamp}, p.Timestamp, p.Origin)
		return nil
	}
}

type rowJoin = intervalJoin[string, row, row, result]

func (o *intervalJoin[K, T, U, R]) adopt(old operator.Operator) {
	from := old.(*intervalJoin[K, T, U, R])
	o.keys, o.timers.Event = from.keys, from.timers.Event
}

// contents returns the timestamps that are kept, each once a key, and how many timers there
// were if each side of a key had one per timestamp, as in Flink.
func contents(o *rowJoin) (left, right []int64, timers int) {
	for e := range o.keys.All() {
		l := slices.Compact(slices.Clone(e.Value.left.times[e.Value.left.start:]))
		r := slices.Compact(slices.Clone(e.Value.right.times[e.Value.right.start:]))
		left, right = append(left, l...), append(right, r...)
		timers += len(l) + len(r)
	}
	slices.Sort(left)
	slices.Sort(right)
	return left, right, timers
}

func TestConformanceIntervalJoin(t *testing.T) {
	replay(t, "interval_join", func(t *testing.T, c intervalCase) {
		if c.ConstructError != "" {
			if c.Join.Lower <= c.Join.Upper {
				t.Errorf("why is this wrong? %+v", c.Join)
			}
			return // the API refuses it
		}
		h := newHarness(t)
		newOperator := func() operator.Operator {
			return NewIntervalJoin[string](c.interval(), pairs)
		}
		h.open(t, newOperator())
		inputs := progress.NewCombination(2, h.op)
		for i, step := range c.Steps {
			ok, err := inputSignal(inputs, step.Do, timestampOf(step.Timestamp))
			if !ok {
				switch step.Do {
				case "left":
					err = h.send(0, step.Key, step.Value, timestampOf(step.Timestamp))
				case "right":
					err = h.send(1, step.Key, step.Value, timestampOf(step.Timestamp))
				case "checkpoint_restore":
					h.restore(t, newOperator(), 0)
					inputs = progress.NewCombination(2, h.op)
				default:
					t.Fatalf("step %d: unknown step %q", i, step.Do)
				}
			}
			if (err != nil) != (step.Error != "") {
				t.Fatalf("step %d (%s): error %v, want %q", i, step.Do, err, step.Error)
			}
			got := h.out.take()
			for j, r := range got {
				for _, side := range []string{"left", "right"} {
					if late, ok := r[side].([]any); ok {
						got[j] = result{"late": side, "key": late[0], "value": late[1], "ts": r["ts"]}
					}
				}
			}
			if diff := cmp.Diff(asJSON(t, parseResults(t, step.Emit)), asJSON(t, got)); diff != "" {
				t.Errorf("step %d (%s) emitted (-want +got):\n%s", i, step.Do, diff)
			}
			left, right, _ := contents(h.op.(*rowJoin))
			if step.LeftBuffer != nil && !slices.Equal(step.LeftBuffer, left) || step.RightBuffer != nil && !slices.Equal(step.RightBuffer, right) {
				t.Errorf("step %d (%s) keeps %v and %v, want %v and %v", i, step.Do, left, right, step.LeftBuffer, step.RightBuffer)
			}
		}
		if _, _, timers := contents(h.op.(*rowJoin)); timers != c.EndEventTimers {
			t.Errorf("Flink would have %d timers left, want %d", timers, c.EndEventTimers)
		}
		if keys, timers := h.op.(*rowJoin).keys.Len(), h.op.(*rowJoin).timers.Event.Len(); keys != timers {
			t.Errorf("%d timers for %d keys", timers, keys)
		}
	})
}

func TestIntervalJoinCountsLateRecords(t *testing.T) {
	for _, output := range []string{"", "late"} {
		h := newHarness(t)
		h.open(t, NewIntervalJoin[string](Interval{Lower: -5, Upper: 5, LateLeft: output}, pairs))
		must(t, h.op.Watermark(100))
		must(t, h.send(0, "a", 1, 99))
		must(t, h.send(0, "a", 2, 100))
		must(t, h.send(1, "a", 3, 99)) // late as well, and always dropped
		wantDropped := int64(2)
		if output != "" {
			wantDropped = 1
		}
		m := h.metrics
		if m.NumLateRecords.Value() != 2 || m.NumLateRecordsDropped.Value() != wantDropped {
			t.Errorf("output %q: %d late, %d dropped, want 2 and %d", output, m.NumLateRecords.Value(), m.NumLateRecordsDropped.Value(), wantDropped)
		}
		sample := m.Late.Latest()
		if len(sample) != 2 || sample[0].Timestamp != 99 || sample[0].Watermark != 100 || sample[0].Key != "a" || m.Late.BySplit()[1] != 2 {
			t.Errorf("samples %+v, by split %v", sample, m.Late.BySplit())
		}
		want := []string{`{"watermark":100}`}
		if output != "" {
			want = []string{`{"late":["a",1],"ts":99}`, `{"watermark":100}`}
		}
		if diff := cmp.Diff(want, asJSON(t, h.out.take())); diff != "" {
			t.Errorf("emitted (-want +got):\n%s", diff)
		}
	}
}

// At the ends of the 64-bit range records are kept as long as there is time.
func TestIntervalJoinAtTheEndOfTime(t *testing.T) {
	h := newHarness(t)
	h.open(t, NewIntervalJoin[string](Interval{Lower: -10, Upper: 10}, pairs))
	must(t, h.send(0, "a", 1, math.MaxInt64-3))
	must(t, h.op.Watermark(math.MaxInt64-4))
	h.out.take()
	must(t, h.send(1, "a", 2, math.MaxInt64-1))
	if got := h.out.take(); len(got) != 1 {
		t.Errorf("emitted %v", got)
	}
	must(t, h.op.Watermark(math.MaxInt64))
	if left, right, _ := contents(h.op.(*rowJoin)); len(left)+len(right) != 0 {
		t.Errorf("left at the end: %v, %v", left, right)
	}
}

func TestIntervalJoinOrder(t *testing.T) {
	h := newHarness(t)
	h.open(t, NewIntervalJoin[string](Interval{Lower: -100, Upper: 100}, pairs))
	for i, at := range []int64{30, 10, 20, 10, 30} {
		must(t, h.send(0, "a", i, at))
	}
	must(t, h.send(1, "a", 9, 15))
	var order []int
	for _, r := range h.out.take() {
		order = append(order, r["left"].(int))
	}
	if want := []int{1, 3, 2, 0, 4}; !slices.Equal(order, want) {
		t.Errorf("partners in the order %v, want %v", order, want)
	}
}

// A buffer that is used at both ends neither grows nor mixes up its order.
func TestBuffer(t *testing.T) {
	var b buffer[int64]
	for i := range int64(10_000) {
		b.add(i, i)
		b.add(i-5, i-5)
		if i >= 50 {
			b.dropExpired(50, i)
		}
		if i < 60 {
			continue
		}
		if from, to := b.within(i-10, i-8); to-from != 6 || b.times[from] != i-10 || b.values[to-1] != i-8 {
			t.Fatalf("at %d: from %d to %d of %v", i, from, to, b.times)
		}
	}
	if b.first() != 9950 || b.len() != 95 || len(b.times) > 300 || !slices.IsSorted(b.times[b.start:]) || !slices.Equal(b.times[b.start:], b.values[b.start:]) {
		t.Errorf("left: first %d, %d of %d: %v", b.first(), b.len(), len(b.times), b.times)
	}
}

// Random inputs come out as in a join that goes through everything it
// keeps. The rule of what is kept decides only for records at the very watermark.
func TestIntervalJoinMatchesModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		lower := r.Int64N(21) - 10
		i := Interval{Lower: lower, Upper: lower + r.Int64N(15) - 1}
		h := newHarness(t)
		h.open(t, NewIntervalJoin[string](i, pairs))
		type arrived struct {
			row
			at int64
		}
		var sides [2][]arrived
		var want []result
		watermark := int64(math.MinInt64)
		for n := range 200 {
			if r.IntN(8) == 0 {
				watermark = max(watermark, int64(n)-r.Int64N(10))
				must(t, h.op.Watermark(watermark))
				for side, keep := range []int64{max(i.Upper, 0), max(-i.Lower, 0)} {
					sides[side] = slices.DeleteFunc(sides[side], func(a arrived) bool { return a.at+keep <= watermark })
				}
				continue
			}
			side, v := r.IntN(2), arrived{row{string(rune('a' + r.IntN(3))), n}, int64(n) + r.Int64N(20) - 15}
			must(t, h.send(side, v.Key, v.Value, v.at))
			if v.at < watermark {
				continue
			}
			sides[side] = append(sides[side], v)
			for _, o := range sides[1-side] {
				pair := [2]arrived{v, o}
				left, right := pair[side], pair[1-side]
				if left.Key == right.Key && left.at+i.Lower <= right.at && right.at <= left.at+i.Upper {
					want = append(want, result{"key": v.Key, "left": left.Value, "right": right.Value, "leftTs": left.at, "rightTs": right.at, "ts": max(left.at, right.at)})
				}
			}
		}
		got := slices.DeleteFunc(h.out.take(), func(r result) bool { _, signal := r["watermark"]; return signal })
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Fatalf("%+v (-want +got):\n%s", i, diff)
		}
		must(t, h.op.Watermark(math.MaxInt64))
		if join := h.op.(*rowJoin); join.keys.Len() != 0 || join.timers.Event.Len() != 0 {
			t.Fatal("something is left at the end", fmt.Sprint(contents(join)))
		}
	}
}
