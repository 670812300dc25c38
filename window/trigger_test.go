package window

import (
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestTriggersValidate(t *testing.T) {
	for _, test := range []struct {
		trigger TriggerCallbacks
		want    string
	}{
		{CountTrigger(0), "window.CountTrigger: 0: must be at least 1"},
		{ContinuousEventTimeTrigger(0), "window.ContinuousEventTimeTrigger: interval 0s: must be at least 1ms"},
		{ContinuousProcessingTimeTrigger(1500 * time.Microsecond), "window.ContinuousProcessingTimeTrigger: interval 1.5ms: must be a whole number of milliseconds"},
		{PurgingTrigger(CountTrigger(-1)), "window.CountTrigger: -1: must be at least 1"},
		{TimeoutTrigger(CountTrigger(1), -time.Second, TimeoutOptions{}), "window.TimeoutTrigger: timeout -1s: must be at least 1ms"},
		{TimeoutTrigger(CountTrigger(0), time.Second, TimeoutOptions{}), "window.CountTrigger: 0: must be at least 1"},
		{DeltaTrigger[int](1, nil), "window.DeltaTrigger: the delta function is nil"},
		{PurgingTrigger(EventTimeTrigger()), ""},
	} {
		got := ""
		if err := test.trigger.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v:\n got %q\nwant %q", test.trigger, got, test.want)
		}
	}
}

func TestTriggerStrings(t *testing.T) {
	got := PurgingTrigger(TimeoutTrigger(CountTrigger(3), time.Second, TimeoutOptions{ResetOnElement: true})).String()
	want := "window.PurgingTrigger(window.TimeoutTrigger(window.CountTrigger(3), 1s, window.TimeoutOptions{ResetOnElement:true, KeepOnTimeout:false}))"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStateIsPerScope(t *testing.T) {
	count := NewMergingState("count", func(a, b int64) int64 { return a + b })
	name := NewState[string]("count") // of another type, so another state
	var a, b Scope
	count.Set(&a, 3)
	count.Set(&a, 4)
	count.Set(&b, 5)
	name.Set(&a, "x")
	if v, ok := name.Get(&b); ok {
		t.Errorf("name of b is %q, want none", v)
	}
	count.Merge(&a, []*Scope{&b, {}})
	if v, _ := count.Get(&a); v != 9 {
		t.Errorf("merged count %d, want 9", v)
	}
	count.Clear(&a)
	if v, ok := name.Get(&a); !ok || v != "x" {
		t.Errorf("name %q, %v after clearing the count", v, ok)
	}
	name.Clear(&a)
	if !a.IsEmpty() || !b.IsEmpty() {
		t.Error("Empty is wrong after clearing")
	}
}

func TestEvictors(t *testing.T) {
	const none = noTimestamp
	elements := func(pairs ...int64) []Timestamped[int64] {
		var list []Timestamped[int64]
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, Timestamped[int64]{pairs[i], pairs[i+1]})
		}
		return list
	}
	distance := func(element, last int64) float64 { return float64(last - element) }
	for _, test := range []struct {
		evictor  BuiltInEvictor[int64]
		in, want []Timestamped[int64]
	}{
		{CountEvictor[int64](2), elements(1, 10, 2, 20, 3, 30), elements(2, 20, 3, 30)},
		{CountEvictor[int64](5), elements(1, 10, 2, 20), elements(1, 10, 2, 20)},
		{CountEvictor[int64](0), elements(1, 10), nil},
		{TimeEvictor[int64](10 * time.Millisecond), elements(1, 25, 2, 20, 3, 30, 4, 21), elements(1, 25, 3, 30, 4, 21)},
		{TimeEvictor[int64](10 * time.Millisecond), elements(1, none, 2, 20, 3, 30), elements(1, none, 2, 20, 3, 30)},
		{DeltaEvictor(2, distance), elements(1, 0, 9, 0, 2, 0, 3, 0), elements(9, 0, 2, 0, 3, 0)},
		{DeltaEvictor(2, distance), nil, nil},
	} {
		if err := test.evictor.Validate(); err != nil {
			t.Fatal(err)
		}
		keep := func(e BuiltInEvictor[int64]) (before, after []Timestamped[int64]) {
			return slices.Concat(e.EvictBefore(slices.Clone(test.in), GlobalWindow)),
				slices.Concat(e.EvictAfter(slices.Clone(test.in), GlobalWindow))
		}
		before, after := keep(test.evictor)
		if diff := gocmp.Diff(test.want, before) + gocmp.Diff(test.in, after); diff != "" {
			t.Errorf("%v:\n%s", test.evictor, diff)
		}
		before, after = keep(test.evictor.After())
		if diff := gocmp.Diff(test.in, before) + gocmp.Diff(test.want, after); diff != "" {
			t.Errorf("%v:\n%s", test.evictor.After(), diff)
		}
	}
	for _, e := range []BuiltInEvictor[int]{CountEvictor[int](-1), TimeEvictor[int](0), DeltaEvictor[int](1, nil)} {
		if e.Validate() == nil {
			t.Errorf("%v is valid", e)
		}
	}
}
