package lowwater_test

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

func TestRollingAggregations(t *testing.T) {
	events := []event{{"a", 1, 3}, {"b", 2, 5}, {"a", 3, 1}, {"a", 4, 7}, {"b", 5, 5}, {"a", 6, 1}}
	number := func(e event) int { return e.N }
	show := func(kv lowwater.KeyValue[string, int]) string { return fmt.Sprint(kv.Key, kv.Value) }
	for _, parallelism := range []int{1, 3} {
		env := newEnv(lowwater.WithParallelism(parallelism))
		s := timed(env, events...).KeyBy(keyOf)
		reduced := s.Reduce(func(a, b event) event { return event{a.Key, b.At, a.N*10 + b.N} }).Collect()
		counted := s.Aggregate(window.Count[event]()).
			Map(func(kv lowwater.KeyValue[string, int64]) string { return fmt.Sprint(kv.Key, kv.Value) }).Collect()
		sum, smallest, largest := s.Sum(number).Map(show).Collect(), s.Min(number).Map(show).Collect(), s.Max(number).Map(show).Collect()
		minBy, maxBy := s.MinBy(number).Collect(), s.MaxBy(number).Collect()
		execute(t, env)

		of := func(key string, all []event) (events []event) {
			for _, e := range all {
				if e.Key == key {
					events = append(events, e)
				}
			}
			return events
		}
		inOrder(t, "Reduce of a", of("a", reduced.Values()), event{"a", 1, 3}, event{"a", 3, 31}, event{"a", 4, 317}, event{"a", 6, 3171})
		inOrder(t, "Reduce of b", of("b", reduced.Values()), event{"b", 2, 5}, event{"b", 5, 55})
		expect(t, "timestamps", reduced.Timestamps(), 1, 2, 3, 4, 5, 6)
		expect(t, "Aggregate", counted.Values(), "a1", "a2", "a3", "a4", "b1", "b2")
		expect(t, "Sum", sum.Values(), "a3", "a4", "a11", "a12", "b5", "b10")
		expect(t, "Min", smallest.Values(), "a3", "a1", "a1", "a1", "b5", "b5")
		expect(t, "Max", largest.Values(), "a3", "a3", "a7", "a7", "b5", "b5")
		inOrder(t, "MinBy of a", of("a", minBy.Values()), event{"a", 1, 3}, event{"a", 3, 1}, event{"a", 3, 1}, event{"a", 3, 1})
		inOrder(t, "MinBy of b", of("b", minBy.Values()), event{"b", 2, 5}, event{"b", 2, 5})
		inOrder(t, "MaxBy of a", of("a", maxBy.Values()), event{"a", 1, 3}, event{"a", 1, 3}, event{"a", 4, 7}, event{"a", 4, 7})
	}
}

func TestSortByEventTime(t *testing.T) {
	late := lowwater.NewOutputTag[event]("late")
	events := []event{{"a", 30, 1}, {"a", 10, 2}, {"b", 25, 3}, {"a", 20, 4}, {"a", 10, 5}}
	for _, parallelism := range []int{1, 3} {
		env := newEnv(lowwater.WithParallelism(parallelism))
		sorted := from(env, splitsOf(2, events), bounded(0)).KeyBy(keyOf).SortByEventTime(late)
		byKey := sorted.Collect()
		tooLate := timed(env, event{"a", 30, 1}, event{"a", 10, 2}).KeyBy(keyOf).SortByEventTime(late).SideOutput(late).Collect()
		execute(t, env)
		if parallelism == 1 {
			inOrder(t, "timestamps over all keys", byKey.Timestamps(), 10, 10, 20, 25, 30)
		}
		var a []event
		for _, e := range byKey.Values() {
			if e.Key == "a" {
				a = append(a, e)
			}
		}
		inOrder(t, "sorted", a, event{"a", 10, 2}, event{"a", 10, 5}, event{"a", 20, 4}, event{"a", 30, 1})
		inOrder(t, "late", tooLate.Values(), event{"a", 10, 2})
	}
}

func TestRollingBuildErrors(t *testing.T) {
	type keyed = *lowwater.KeyedStream[string, event]
	tests := []struct {
		want    string
		mistake func(keyed)
	}{
		{"Reduce: the function is nil", func(s keyed) { s.Reduce(nil).Collect() }},
		{"Aggregate: the aggregator is nil", func(s keyed) { s.Aggregate[int, int](nil).Collect() }},
		{"Sum: the function is nil", func(s keyed) { s.Sum[int](nil).Collect() }},
		{"Min: the function is nil", func(s keyed) { s.Min[int](nil).Collect() }},
		{"Max: the function is nil", func(s keyed) { s.Max[int](nil).Collect() }},
		{"MinBy: the function is nil", func(s keyed) { s.MinBy[int](nil).Collect() }},
		{"MaxBy: the function is nil", func(s keyed) { s.MaxBy[int](nil).Collect() }},
		{"SortByEventTime: the output tag has no id", func(s keyed) { s.SortByEventTime(lowwater.OutputTag[event]{}).Collect() }},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			env := newEnv()
			tt.mistake(timed(env, event{}).KeyBy(keyOf))
			wantBuildError(t, env, tt.want)
		})
	}
}
