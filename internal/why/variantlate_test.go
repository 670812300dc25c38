package why

import (
	"encoding/json/jsontext"
	"fmt"

	"github.com/lowwater/lowwater/test/scenarios"
)

// row is a record on its own: when it is appended, where, its time and its key.
func row(at int64, partition int32, payload int64, key string) []jsontext.Value {
	return []jsontext.Value{
		jsontext.Value(fmt.Sprint(at)), jsontext.Value(fmt.Sprint(partition)), jsontext.Value(fmt.Sprint(payload)), jsontext.Value(fmt.Sprintf("%q", key)),
	}
}

func jsonRows(rows ...[]jsontext.Value) [][]jsontext.Value { return rows }

func withKafkaTime(s scenarios.Series, millis int64) scenarios.Series {
	s.KafkaMillis = &millis
	return s
}

func jittered(s scenarios.Series, jitter ...int64) scenarios.Series {
	s.PayloadJitter = jitter
	return s
}

// uploads is a partition whose records come gathered, every so often.
func uploads(partition int32, every, to int64) [][]jsontext.Value {
	var rows [][]jsontext.Value
	for at := every; at < to; at += every {
		for i := range int64(12) {
			rows = append(rows, row(at+20*i, partition, variantStart+at-every+i*every/12, "gateway"))
		}
	}
	return rows
}

func lateVariants() []variant {
	hives := topic("hives", 3, steady(0, 2000), steady(2, 3000))
	alone := topic("hives", 2, steady(0, 2000))
	alone.Rows = uploads(1, 2*minute, 40*minute)
	hives.Rows = uploads(1, 2*minute, 40*minute)
	shuffled := []scenarios.Series{jittered(steady(0, 1000), 0, -12_000, 0, 0, -4000, 0, 0, 0), jittered(steady(1, 1000), 0, 0, 0, -12_000, 0, 0, 0, 0)}
	return []variant{
		{
			name: "a gateway that uploads every two minutes", at: 30*minute + 7000,
			topics: []scenarios.Topic{hives},
			job:    job(from("hives", "hives", 1, bounded(5000, 15_000)), tumbling("half", minute/2, "hives")),
			want:   verdict("idleness-too-short", "loss", scenarios.Culprit{Source: "hives", Topic: "hives", Partitions: []int32{1}, Facts: facts("gap_ms", 2*minute, "idleness_ms", 15_000)}, "raise-idleness"),
		},
		{
			name: "a bound too small for two partitions", at: 15 * minute,
			topics: []scenarios.Topic{topic("cells", 2, shuffled...)},
			job:    job(from("cells", "cells", 2, bounded(2000, 0)), tumbling("ten", 10_000, "cells")),
			want:   verdict("bound-too-small", "loss", scenarios.Culprit{Source: "cells", Topic: "cells", Partitions: []int32{0, 1}}, "raise-bound"),
		},
		{
			name: "a bound too small, with an idle timeout that never fires", at: 15 * minute,
			topics: []scenarios.Topic{topic("cells", 2, shuffled...)},
			job:    job(from("cells", "cells", 1, bounded(2000, minute)), tumbling("ten", 10_000, "cells")),
			want:   verdict("bound-too-small", "loss", scenarios.Culprit{Source: "cells", Topic: "cells", Partitions: []int32{0, 1}}, "raise-bound"),
		},
		{
			name: "a generator behind a shuffle sees partitions minutes apart", at: 15 * minute, needs: "records",
			topics: []scenarios.Topic{topic("docks", 2, steady(0, 1000, "a"), shifted(steady(1, 1000, "b"), -3*minute))},
			job: job(from("docks", "docks", 2, nil), scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Partitioning: "hash", Parallelism: 1,
				Routing: map[string]int{"a": 0, "b": 0}, Inputs: []scenarios.Input{{"docks"}}, Strategy: bounded(2000, 0)}, tumbling("ten", 10_000, "stamp")),
			want: verdict("strategy-after-source", "loss", scenarios.Culprit{Source: "docks", Topic: "docks", Operator: "stamp", Partitions: []int32{1}}, "move-strategy-to-source"),
		},
		{
			name: "a gateway on a subtask of its own", at: 30*minute + 7000,
			topics: []scenarios.Topic{alone},
			job:    job(from("hives", "hives", 2, bounded(5000, 15_000)), tumbling("half", minute/2, "hives")),
			want:   verdict("idleness-too-short", "loss", scenarios.Culprit{Source: "hives", Topic: "hives", Partitions: []int32{1}, Facts: facts("gap_ms", 2*minute, "idleness_ms", 15_000)}, "raise-idleness"),
		},
		{
			name: "the source has a strategy, and an operator behind it another", at: 15 * minute, needs: "records",
			topics: []scenarios.Topic{topic("docks", 2, steady(0, 1000), shifted(steady(1, 1000), -3*minute))},
			job: job(from("docks", "docks", 1, bounded(2000, 0)), scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Inputs: []scenarios.Input{{"docks"}}, Strategy: bounded(2000, 0)},
				tumbling("ten", 10_000, "stamp")),
			want: verdict("strategy-after-source", "loss", scenarios.Culprit{Source: "docks", Topic: "docks", Operator: "stamp", Partitions: []int32{1}}, "move-strategy-to-source"),
		},
		{
			name: "no key leads to one of the generators", at: 10 * minute,
			topics: []scenarios.Topic{topic("docks", 2, steady(0, 1000, "a"), steady(1, 1000, "b"))},
			job: job(from("docks", "docks", 2, nil), scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Partitioning: "hash", Parallelism: 3,
				Routing: map[string]int{"a": 0, "b": 2}, Inputs: []scenarios.Input{{"docks"}}, Strategy: bounded(2000, 0)}, tumbling("per-minute", minute, "stamp")),
			want: verdict("strategy-after-source", "stall", scenarios.Culprit{Source: "docks", Topic: "docks", Operator: "stamp", Subtasks: []int{1}}, "move-strategy-to-source"),
		},
		{
			name: "a partition in milliseconds multiplied as seconds", at: 10 * minute,
			topics: []scenarios.Topic{topic("flow", 2, scaled(steady(0, 2000), 1, 1000), steady(1, 2000))},
			job:    job(from("flow", "flow", 2, &scenarios.Strategy{Kind: scenarios.Bounded, DelayMillis: 2000, Multiply: 1000}), tumbling("per-minute", minute, "flow")),
			want:   verdict("timestamps-too-fine", "wrong-result", scenarios.Culprit{Source: "flow", Topic: "flow", Partitions: []int32{1}, Facts: facts("factor", 1000)}, "convert-unit"),
		},
		{
			name: "the wall clock and data of an hour ago", at: 10 * minute, needs: "records",
			topics: []scenarios.Topic{topic("rinks", 2, shifted(steady(0, 1000), -hour), shifted(steady(1, 1000), -hour))},
			job:    job(from("rinks", "rinks", 2, &scenarios.Strategy{Kind: scenarios.WallClock, DelayMillis: 5000}), tumbling("per-minute", minute, "rinks")),
			want:   verdict("wallclock-watermark", "loss", scenarios.Culprit{Source: "rinks", Topic: "rinks"}, "watermark-from-events"),
			accept: []string{"all-records-late"},
		},
	}
}

// stopped is a partition whose records are not read any more from some time on.
func stopped(s scenarios.Series, at int64) []scenarios.Series {
	head, tail := until(s, at), s
	n := (at - s.FromMillis + s.EveryMillis - 1) / s.EveryMillis
	tail.FromMillis += n * s.EveryMillis
	tail.PayloadFirst += n * s.PayloadStep
	tail.ReadDelayMillis = 100_000_000
	return []scenarios.Series{head, tail}
}

// backlog is a partition with records of a time before the start, read at once from a
// time on, one every so many milliseconds.
func backlog(partition int32, before, readFrom, readEvery int64) scenarios.Series {
	s := steady(partition, 2000)
	n := before / 2000
	s.FromMillis -= n * 2000
	s.PayloadFirst -= n * 2000
	s.ReadFromMillis, s.ReadEveryMillis = &readFrom, &readEvery
	return s
}

func aligned2(s scenarios.Source, drift, update int64) scenarios.Source {
	s.Alignment = &scenarios.Alignment{Group: "g", DriftMillis: drift, UpdateMillis: update}
	return s
}

func readingVariants() []variant {
	return []variant{
		{
			name: "two hot partitions of six", at: 15 * minute, tasks: map[string][2]int64{"bids": {990, 0}},
			topics: []scenarios.Topic{topic("bids", 6, readSlowly(steady(0, 200), 300), steady(1, 5000), steady(2, 5000), readSlowly(steady(3, 200), 300), steady(4, 5000), steady(5, 5000))},
			job:    job(from("bids", "bids", 6, bounded(2000, 0)), tumbling("per-minute", minute, "bids")),
			want:   verdict("partition-lag", "slow", scenarios.Culprit{Source: "bids", Topic: "bids", Partitions: []int32{0, 3}, Subtasks: []int{0, 3}}, "repartition-key"),
			accept: []string{"data-skew"},
		},
		{
			name: "a sink that is too slow", at: 15 * minute, tasks: map[string][2]int64{"tolls": {100, 850}, "enrich": {990, 0}, "per-minute": {80, 0}},
			topics: []scenarios.Topic{topic("tolls", 2, readSlowly(steady(0, 1000), 1500), readSlowly(steady(1, 1000), 1500))},
			job: job(from("tolls", "tolls", 2, bounded(2000, minute)), scenarios.Operator{ID: "enrich", Kind: scenarios.Forward, Inputs: []scenarios.Input{{"tolls"}}},
				tumbling("per-minute", minute, "enrich")),
			want: verdict("backpressure", "slow", scenarios.Culprit{Source: "tolls", Topic: "tolls", Operator: "enrich"}, "scale-operator"),
		},
		{
			name: "a reader that stopped", at: 15 * minute, needs: "records",
			topics: []scenarios.Topic{topic("rides", 2, append(stopped(steady(0, 1000), 5*minute), steady(1, 1000))...)},
			job:    job(from("rides", "rides", 2, bounded(2000, 0)), tumbling("per-minute", minute, "rides")),
			want:   verdict("stalled-reader", "stall", scenarios.Culprit{Source: "rides", Topic: "rides", Partitions: []int32{0}, Subtasks: []int{0}}, "restart-reader"),
		},
		{
			name: "a hot partition that an aligned source waits for", at: 15 * minute, tasks: map[string][2]int64{"b": {990, 0}},
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000)), topic("b", 1, readSlowly(steady(0, 200), 400))},
			job: job(aligned2(from("a", "a", 2, bounded(5000, 0)), 30_000, 1000), aligned2(from("b", "b", 1, bounded(5000, 0)), 30_000, 1000),
				tumbling("per-minute", minute, "a", "b")),
			want:   verdict("partition-lag", "slow", scenarios.Culprit{Source: "b", Topic: "b", Partitions: []int32{0}}, "repartition-key"),
			accept: []string{"data-skew"},
		},
		{
			name: "a member of three aligned sources is silent", at: 15 * minute,
			topics: []scenarios.Topic{topic("a", 1, steady(0, 1000)), topic("b", 1, steady(0, 1000)), topic("c", 1, until(steady(0, 1000), 3*minute))},
			job: job(aligned2(from("a", "a", 1, bounded(2000, 0)), 30_000, 1000), aligned2(from("b", "b", 1, bounded(2000, 0)), 30_000, 1000),
				aligned2(from("c", "c", 1, bounded(2000, 0)), 30_000, 1000), tumbling("per-minute", minute, "a", "b", "c")),
			want:   verdict("alignment-blocked", "stall", scenarios.Culprit{Source: "c", Topic: "c", Partitions: []int32{0}}, "set-idleness"),
			accept: []string{"quiet-input"},
		},
	}
}

func healthyVariants() []variant {
	paused := steady(1, 2000)
	later := shifted(steady(1, 2000), 0)
	later.FromMillis, later.PayloadFirst = 600_000, variantStart+600_000
	return []variant{
		{
			name: "five seconds after the start", at: 5000,
			topics: []scenarios.Topic{topic("a", 3, steady(0, 1000), steady(1, 1000))},
			job:    job(from("a", "a", 4, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "a job that catches up an hour", at: 90_000, tasks: map[string][2]int64{"a": {950, 0}},
			topics: []scenarios.Topic{topic("a", 2, backlog(0, hour, 1000, 60), backlog(1, hour, 1000, 60))},
			job:    job(from("a", "a", 2, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "a job that catches up under back pressure", at: 90_000, tasks: map[string][2]int64{"a": {100, 850}, "per-minute": {990, 0}},
			topics: []scenarios.Topic{topic("a", 2, backlog(0, hour, 1000, 60), backlog(1, hour, 1000, 60))},
			job:    job(from("a", "a", 2, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "full load without a lag", at: 15 * minute, tasks: map[string][2]int64{"a": {700, 290}, "per-minute": {980, 0}},
			topics: []scenarios.Topic{topic("a", 2, steady(0, 200), steady(1, 200))},
			job:    job(from("a", "a", 2, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "a pause of twenty seconds", at: 595_000,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), until(paused, 575_000), later)},
			job:    job(from("a", "a", 2, bounded(1000, 0)), tumbling("ten", 10_000, "a")),
			want:   healthy,
		},
		{
			name: "a partition with a record a minute", at: 20*minute + 50_000,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, minute))},
			job:    job(from("a", "a", 2, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "a replay of last year", at: 10 * minute,
			topics: []scenarios.Topic{topic("a", 2, shifted(steady(0, 100), -365*24*hour-7*minute), shifted(steady(1, 100), -365*24*hour-7*minute))},
			job:    job(from("a", "a", 2, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "aligned sources, the fast one held a little", at: 10 * minute,
			topics: []scenarios.Topic{topic("a", 1, steady(0, 1000)), topic("b", 1, steady(0, 1000))},
			job: job(aligned2(from("a", "a", 1, bounded(2000, 0)), 500, 1000), aligned2(from("b", "b", 1, bounded(2000, 0)), 500, 1000),
				tumbling("per-minute", minute, "a", "b")),
			want: healthy,
		},
		{
			name: "two partitions that catch up at different speeds", at: 6 * minute,
			topics: []scenarios.Topic{topic("a", 2, backlog(0, 2*hour, 2000, 150), backlog(1, 2*hour, 2000, 300))},
			job:    job(from("a", "a", 2, bounded(5000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "partitions with a record every few minutes, at night", at: 3 * hour,
			topics: []scenarios.Topic{topic("a", 3, steady(0, 240_000), started(steady(1, 260_000), 90_000), started(steady(2, 200_000), 50_000))},
			job:    job(from("a", "a", 3, bounded(5000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
		{
			name: "sessions of keys that do not come back", at: 30 * minute,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 4000, visitors("u")...), steady(1, 4000, visitors("v")...))},
			job: job(from("a", "a", 2, bounded(5000, 0)),
				scenarios.Operator{ID: "visits", Kind: scenarios.Window, Type: scenarios.Session, GapMillis: 30_000, Inputs: []scenarios.Input{{"a"}}}),
			want: healthy,
		},
		{
			name: "sessions that end", at: 30 * minute,
			topics: []scenarios.Topic{sessions()},
			job: job(from("a", "a", 1, bounded(1000, 0)),
				scenarios.Operator{ID: "visits", Kind: scenarios.Window, Type: scenarios.Session, GapMillis: 30_000, Inputs: []scenarios.Input{{"a"}}}),
			want: healthy,
		},
		{
			name: "a quiet evening without open windows", at: 40 * minute,
			topics: []scenarios.Topic{topic("a", 1, until(steady(0, 1000), 100))},
			job:    job(from("a", "a", 1, bounded(1000, 0)), tumbling("per-minute", minute, "a")),
			want:   healthy,
		},
	}
}

// started moves a series to later.
func started(s scenarios.Series, by int64) scenarios.Series {
	s.FromMillis += by
	s.PayloadFirst += by
	return s
}

// visitors are keys with 20 records each.
func visitors(name string) []string {
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprint(name, i/20))
	}
	return keys
}

// sessions is a topic whose keys are busy for 40 s and then pause for a minute and more.
func sessions() scenarios.Topic {
	t := topic("a", 1)
	for i := range int64(30) {
		s := steady(0, 2000, fmt.Sprint("user", i%3))
		s.FromMillis += i * minute
		s.PayloadFirst += i * minute
		s.ToMillis = s.FromMillis + 40_000
		t.Series = append(t.Series, s)
	}
	return t
}
