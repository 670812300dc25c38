package why

import "github.com/lowwater/lowwater/test/scenarios"

const minute, hour = 60_000, 3_600_000

// variants are what the causes look like in other jobs than those of the scenarios.
func variants() []variant {
	var all []variant
	all = append(all, quietVariants()...)
	all = append(all, structureVariants()...)
	all = append(all, timeVariants()...)
	all = append(all, lateVariants()...)
	all = append(all, readingVariants()...)
	return append(all, healthyVariants()...)
}

func quietVariants() []variant {
	return []variant{
		{
			name: "two partitions of six are silent, on different subtasks", at: 20 * minute,
			topics: []scenarios.Topic{topic("rain", 6, steady(0, 2000), until(steady(1, 2000), 4*minute), steady(2, 3000), steady(3, 2000), until(steady(4, 2000), 6*minute), steady(5, 1000))},
			job:    job(from("gauges", "rain", 3, bounded(5000, 0)), tumbling("half", minute/2, "gauges")),
			want:   verdict("quiet-partition", "stall", scenarios.Culprit{Source: "gauges", Topic: "rain", Partitions: []int32{1, 4}}, "set-idleness"),
		},
		{
			name: "a silent partition behind sliding windows", at: 15 * minute,
			topics: []scenarios.Topic{topic("wind", 3, steady(0, 1000), steady(1, 1000), until(steady(2, 1000), 3*minute))},
			job: job(from("masts", "wind", 3, bounded(2000, 0)),
				scenarios.Operator{ID: "moving", Kind: scenarios.Window, Type: scenarios.Sliding, SizeMillis: 5 * minute, SlideMillis: minute, Inputs: []scenarios.Input{{"masts"}}}),
			want: verdict("quiet-partition", "stall", scenarios.Culprit{Source: "masts", Topic: "wind", Partitions: []int32{2}, Subtasks: []int{2}}, "set-idleness"),
		},
		{
			name: "a partition never fed, of a source whose other is behind a connect", at: 12 * minute,
			topics: []scenarios.Topic{topic("loans", 2, steady(0, 2000)), topic("rates", 1, steady(0, 10_000))},
			job: job(from("loans", "loans", 2, bounded(1000, 0)), from("rates", "rates", 1, bounded(1000, 0)),
				scenarios.Operator{ID: "join", Kind: scenarios.Connect, Inputs: []scenarios.Input{{"loans"}, {"rates"}}}, tumbling("per-minute", minute, "join")),
			want: verdict("quiet-partition", "stall", scenarios.Culprit{Source: "loans", Topic: "loans", Partitions: []int32{1}, Subtasks: []int{1}}, "set-idleness"),
		},
		{
			name: "the second input of a connect fell silent", at: 30 * minute,
			topics: []scenarios.Topic{topic("orders", 2, steady(0, 2000), steady(1, 2000)), topic("payments", 2, until(steady(0, 2000), 5*minute), until(steady(1, 2000), 5*minute))},
			job: job(from("orders", "orders", 2, bounded(1000, 0)), from("payments", "payments", 2, bounded(1000, 0)),
				scenarios.Operator{ID: "match", Kind: scenarios.Connect, Inputs: []scenarios.Input{{"orders"}, {"payments"}}}, tumbling("per-minute", minute, "match")),
			want:   verdict("quiet-input", "stall", scenarios.Culprit{Source: "payments", Topic: "payments", Partitions: []int32{0, 1}}, "set-idleness"),
			accept: []string{"quiet-partition"},
		},
		{
			name: "an input of a union never had a record", at: 10 * minute,
			topics: []scenarios.Topic{topic("sales", 1, steady(0, 2000)), topic("refunds", 1)},
			job:    job(from("sales", "sales", 1, bounded(1000, 0)), from("refunds", "refunds", 1, bounded(1000, 0)), tumbling("per-minute", minute, "sales", "refunds")),
			want:   verdict("quiet-input", "stall", scenarios.Culprit{Source: "refunds", Topic: "refunds", Partitions: []int32{0}}, "set-idleness"),
			accept: []string{"quiet-partition"},
		},
		{
			name: "two inputs of three fell silent, the third before the second", at: 40 * minute,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000)), topic("b", 1, until(steady(0, 2000), 25*minute)), topic("c", 2, until(steady(0, 3000), 15*minute), until(steady(1, 3000), 15*minute))},
			job: job(from("a", "a", 2, bounded(5000, 0)), from("b", "b", 1, bounded(5000, 0)), from("c", "c", 2, bounded(5000, 0)),
				tumbling("per-minute", minute, "a", "b", "c")),
			want: verdict("quiet-input", "stall", scenarios.Culprit{Source: "c", Topic: "c", Partitions: []int32{0, 1}}, "set-idleness"),
		},
		{
			name: "a silent partition beside one in microseconds", at: 20 * minute,
			topics: []scenarios.Topic{topic("a", 3, steady(0, 1000), scaled(steady(1, 1000), 1000, 1), until(steady(2, 1000), 5*minute))},
			job:    job(from("a", "a", 3, bounded(5000, 0)), tumbling("per-minute", minute, "a")),
			want:   verdict("quiet-partition", "stall", scenarios.Culprit{Source: "a", Topic: "a", Partitions: []int32{2}}, "set-idleness"),
			accept: []string{"timestamps-too-fine"},
		},
		{
			name: "all inputs are silent, without idleness", at: 40 * minute,
			topics: []scenarios.Topic{topic("bids", 2, until(steady(0, 2000), 9*minute+7000), until(steady(1, 3000), 9*minute+7000))},
			job:    job(from("bids", "bids", 2, bounded(1000, 0)), tumbling("per-minute", minute, "bids")),
			want:   verdict("all-inputs-quiet", "stall", scenarios.Culprit{Source: "bids", Topic: "bids", Partitions: []int32{0, 1}}, "processing-time-timeout"),
		},
		{
			name: "an idle timeout of half an hour does not help yet", at: 20 * minute,
			topics: []scenarios.Topic{topic("taps", 2, steady(0, 1000), until(steady(1, 1000), 5*minute))},
			job:    job(from("taps", "taps", 2, bounded(1000, 30*minute)), tumbling("per-minute", minute, "taps")),
			want:   verdict("quiet-partition", "stall", scenarios.Culprit{Source: "taps", Topic: "taps", Partitions: []int32{1}}, "set-idleness"),
		},
		{
			name: "a filter behind the source lets a partition through, others are silent", at: 20 * minute,
			topics: []scenarios.Topic{topic("taps", 3, steady(0, 1000), until(steady(1, 1000), 5*minute), until(steady(2, 1000), 5*minute))},
			job: job(from("taps", "taps", 3, bounded(1000, 0)), scenarios.Operator{ID: "some", Kind: scenarios.Filter, DropKeys: []string{"k9"}, Inputs: []scenarios.Input{{"taps"}}},
				tumbling("per-minute", minute, "some")),
			want: verdict("quiet-partition", "stall", scenarios.Culprit{Source: "taps", Topic: "taps", Partitions: []int32{1, 2}}, "set-idleness"),
		},
		{
			name: "a silent partition with idleness is no trouble", at: 20 * minute,
			topics: []scenarios.Topic{topic("taps", 3, steady(0, 1000), steady(1, 2000), until(steady(2, 1000), 2*minute))},
			job:    job(from("taps", "taps", 1, bounded(1000, 20_000)), tumbling("per-minute", minute, "taps")),
			want:   healthy,
		},
	}
}

func structureVariants() []variant {
	return []variant{
		{
			name: "one source of a union has more readers than partitions", at: 8 * minute,
			topics: []scenarios.Topic{topic("a", 4, steady(0, 1000), steady(1, 1000), steady(2, 1000), steady(3, 1000)), topic("b", 2, steady(0, 1000), steady(1, 1000))},
			job:    job(from("first", "a", 4, bounded(1000, 0)), from("second", "b", 4, bounded(1000, 0)), tumbling("per-minute", minute, "first", "second")),
			want:   verdict("over-parallel-source", "stall", scenarios.Culprit{Source: "second", Topic: "b", Subtasks: []int{2, 3}}, "lower-source-parallelism"),
		},
		{
			name: "more readers than partitions, with idleness", at: 8 * minute,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000))},
			job:    job(from("first", "a", 4, bounded(1000, 10_000)), tumbling("per-minute", minute, "first")),
			want:   healthy,
		},
		{
			name: "more readers than partitions before a generator behind the source", at: 8 * minute,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000))},
			job: job(from("first", "a", 3, nil), scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Inputs: []scenarios.Input{{"first"}}, Strategy: bounded(1000, 0)},
				tumbling("per-minute", minute, "stamp")),
			want: verdict("over-parallel-source", "stall", scenarios.Culprit{Source: "first", Topic: "a", Subtasks: []int{2}}, "lower-source-parallelism"),
		},
		{
			name: "no strategy on either input", at: 8 * minute,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000)), topic("b", 1, steady(0, 1000))},
			job: job(from("left", "a", 2, nil), from("right", "b", 1, nil),
				scenarios.Operator{ID: "both", Kind: scenarios.Connect, Inputs: []scenarios.Input{{"left"}, {"right"}}}, tumbling("per-minute", minute, "both")),
			want: verdict("no-watermark-strategy", "stall", scenarios.Culprit{Source: "left", Topic: "a"}, "add-strategy"),
		},
		{
			name: "no strategy on one source of a union", at: 8 * minute,
			topics: []scenarios.Topic{topic("a", 2, steady(0, 1000), steady(1, 1000)), topic("b", 1, steady(0, 1000))},
			job:    job(from("good", "a", 2, bounded(1000, 0)), from("bare", "b", 1, nil), tumbling("per-minute", minute, "good", "bare")),
			want:   verdict("no-watermark-strategy", "stall", scenarios.Culprit{Source: "bare", Topic: "b"}, "add-strategy"),
		},
		{
			name: "the first input of a connect has no strategy", at: 8 * minute,
			topics: []scenarios.Topic{topic("rules", 1, until(steady(0, 1000), 5000)), topic("clicks", 2, steady(0, 1000), steady(1, 1000))},
			job: job(from("rules", "rules", 1, nil), from("clicks", "clicks", 2, bounded(1000, 0)),
				scenarios.Operator{ID: "enrich", Kind: scenarios.Connect, Inputs: []scenarios.Input{{"rules"}, {"clicks"}}}, tumbling("per-minute", minute, "enrich")),
			want: verdict("side-input-without-watermarks", "stall", scenarios.Culprit{Source: "rules", Topic: "rules", Operator: "enrich"}, "strategy-on-side-input"),
		},
		{
			name: "a filter drops a partition before the generator", at: 10 * minute,
			topics: []scenarios.Topic{topic("cams", 2, steady(0, 1000), steady(1, 1000))},
			job: job(from("cams", "cams", 2, nil), scenarios.Operator{ID: "only-doors", Kind: scenarios.Filter, DropPartitions: []int32{1}, Inputs: []scenarios.Input{{"cams"}}},
				scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Inputs: []scenarios.Input{{"only-doors"}}, Strategy: bounded(1000, 0)}, tumbling("per-minute", minute, "stamp")),
			want: verdict("filtered-before-generator", "stall", scenarios.Culprit{Source: "cams", Topic: "cams", Operator: "only-doors", Partitions: []int32{1}}, "move-strategy-to-source"),
		},
		{
			name: "a filter drops everything before the generator", at: 10 * minute,
			topics: []scenarios.Topic{topic("cams", 1, steady(0, 1000, "x"))},
			job: job(from("cams", "cams", 1, nil), scenarios.Operator{ID: "only-doors", Kind: scenarios.Filter, DropKeys: []string{"x"}, Inputs: []scenarios.Input{{"cams"}}},
				scenarios.Operator{ID: "stamp", Kind: scenarios.Assign, Inputs: []scenarios.Input{{"only-doors"}}, Strategy: bounded(1000, 0)}, tumbling("per-minute", minute, "stamp")),
			want: verdict("filtered-before-generator", "stall", scenarios.Culprit{Source: "cams", Topic: "cams", Operator: "only-doors", Partitions: []int32{0}}, "move-strategy-to-source"),
		},
		{
			name: "sessions of keys that never pause", at: 30 * minute,
			topics: []scenarios.Topic{topic("pings", 2, steady(0, 2000, "a", "b"), steady(1, 3000, "c"))},
			job: job(from("pings", "pings", 2, bounded(1000, 0)),
				scenarios.Operator{ID: "visits", Kind: scenarios.Window, Type: scenarios.Session, GapMillis: minute, Inputs: []scenarios.Input{{"pings"}}}),
			want: verdict("session-never-gaps", "stall", scenarios.Culprit{Operator: "visits"}, "cap-session-length"),
		},
	}
}

func timeVariants() []variant {
	half := bounded(2000, 0)
	future := topic("boilers", 2, steady(0, 2000), steady(1, 2000))
	future.Rows = jsonRows(row(4*minute, 0, variantStart+3*24*hour, "bad"), row(4*minute+10, 1, variantStart+3*24*hour, "bad"))
	return []variant{
		{
			name: "one partition in seconds", at: 12 * minute,
			topics: []scenarios.Topic{topic("flow", 3, steady(0, 2000), scaled(steady(1, 2000), 1, 1000), steady(2, 2000))},
			job:    job(from("flow", "flow", 3, half), tumbling("per-minute", minute, "flow")),
			want:   verdict("timestamps-in-seconds", "stall", scenarios.Culprit{Source: "flow", Topic: "flow", Partitions: []int32{1}, Facts: facts("factor", 1000)}, "convert-unit"),
		},
		{
			name: "everything in nanoseconds", at: 12 * minute,
			topics: []scenarios.Topic{topic("flow", 2, scaled(steady(0, 2000), 1_000_000, 1), scaled(steady(1, 2000), 1_000_000, 1))},
			job:    job(from("flow", "flow", 2, half), tumbling("per-minute", minute, "flow")),
			want:   verdict("timestamps-too-fine", "wrong-result", scenarios.Culprit{Source: "flow", Topic: "flow", Partitions: []int32{0, 1}, Facts: facts("factor", 1_000_000)}, "convert-unit"),
		},
		{
			name: "one source in microseconds, of a union", at: 12 * minute,
			topics: []scenarios.Topic{topic("old", 1, steady(0, 2000)), topic("new", 1, scaled(steady(0, 2000), 1000, 1))},
			job:    job(from("old", "old", 1, half), from("new", "new", 1, half), tumbling("per-minute", minute, "old", "new")),
			want:   verdict("timestamps-too-fine", "wrong-result", scenarios.Culprit{Source: "new", Topic: "new", Partitions: []int32{0}, Facts: facts("factor", 1000)}, "convert-unit"),
		},
		{
			name: "local time of a zone west of Greenwich", at: 30 * minute, needs: "records",
			topics: []scenarios.Topic{topic("gates", 2, shifted(steady(0, 5000), -5*hour), shifted(steady(1, 5000), -5*hour))},
			job:    job(from("gates", "gates", 2, half), tumbling("per-minute", minute, "gates")),
			want:   verdict("timezone-shift", "wrong-result", scenarios.Culprit{Source: "gates", Topic: "gates", Facts: facts("offset_ms", -5*hour)}, "fix-timezone"),
		},
		{
			name: "local time of Nepal", at: 30 * minute,
			topics: []scenarios.Topic{topic("gates", 2, shifted(steady(0, 5000), 5*hour+45*minute), shifted(steady(1, 5000), 5*hour+45*minute))},
			job:    job(from("gates", "gates", 2, half), tumbling("per-minute", minute, "gates")),
			want:   verdict("timezone-shift", "wrong-result", scenarios.Culprit{Source: "gates", Topic: "gates", Facts: facts("offset_ms", 5*hour+45*minute)}, "fix-timezone"),
		},
		{
			name: "local time of India", at: 30 * minute,
			topics: []scenarios.Topic{topic("gates", 2, shifted(steady(0, 5000), 5*hour+hour/2), shifted(steady(1, 5000), 5*hour+hour/2))},
			job:    job(from("gates", "gates", 2, half), tumbling("per-minute", minute, "gates")),
			want:   verdict("timezone-shift", "wrong-result", scenarios.Culprit{Source: "gates", Topic: "gates", Facts: facts("offset_ms", 5*hour+hour/2)}, "fix-timezone"),
		},
		{
			name: "a record of next week on each partition", at: 15 * minute,
			topics: []scenarios.Topic{future},
			job:    job(from("boilers", "boilers", 2, half), tumbling("per-minute", minute, "boilers")),
			want: verdict("future-timestamp", "loss", scenarios.Culprit{Source: "boilers", Topic: "boilers", Partitions: []int32{0, 1},
				Facts: facts("ahead_ms", 3*24*hour-4*minute, "arrived_at_ms", 4*minute)}, "bound-future-timestamps"),
		},
		{
			name: "records without a timestamp and no assigner", at: 10 * minute,
			topics: []scenarios.Topic{topic("locks", 1, withKafkaTime(steady(0, 2000), -1))},
			job:    job(from("locks", "locks", 1, &scenarios.Strategy{Kind: scenarios.Bounded, DelayMillis: 1000, Timestamp: scenarios.FromKafka}), tumbling("per-minute", minute, "locks")),
			want:   verdict("no-timestamp-assigner", "stall", scenarios.Culprit{Source: "locks", Topic: "locks"}, "add-timestamp-assigner"),
		},
		{
			name: "Kafka timestamps minutes behind the events", at: 20 * minute, needs: "records",
			topics: []scenarios.Topic{topic("locks", 2, shifted(steady(0, 2000), -4*minute), shifted(steady(1, 2000), -7*minute))},
			job:    job(from("locks", "locks", 2, &scenarios.Strategy{Kind: scenarios.Bounded, DelayMillis: 1000, Timestamp: scenarios.FromKafka}), tumbling("per-minute", minute, "locks")),
			want:   verdict("no-timestamp-assigner", "wrong-result", scenarios.Culprit{Source: "locks", Topic: "locks"}, "add-timestamp-assigner"),
		},
		{
			name: "a backfill of a week ago beside the present, in a union", at: 20 * minute,
			topics: []scenarios.Topic{topic("live", 1, steady(0, 2000)), topic("archive", 1, shifted(steady(0, 2000), -7*24*hour))},
			job:    job(from("live", "live", 1, half), from("archive", "archive", 1, half), tumbling("per-minute", minute, "live", "archive")),
			want:   verdict("event-time-skew", "slow", scenarios.Culprit{Source: "archive", Topic: "archive", Partitions: []int32{0}, Facts: facts("behind_ms", 7*24*hour)}, "separate-backfill"),
		},
		{
			name: "a bound of six hours", at: 40 * minute,
			topics: []scenarios.Topic{topic("bills", 1, steady(0, 2000))},
			job:    job(from("bills", "bills", 1, bounded(6*hour, 0)), tumbling("per-minute", minute, "bills")),
			want:   verdict("delay-by-design", "stall", scenarios.Culprit{Source: "bills", Topic: "bills", Facts: facts("delay_ms", 6*hour)}, "lower-bound"),
		},
		{
			name: "a bound as long as three windows, for hours", at: 5 * hour,
			topics: []scenarios.Topic{topic("bills", 1, steady(0, 10_000))},
			job:    job(from("bills", "bills", 1, bounded(30*minute, 0)), tumbling("ten", 10*minute, "bills")),
			want:   verdict("delay-by-design", "none", scenarios.Culprit{Source: "bills"}, "lower-bound"),
		},
		{
			name: "sessions of two hours", at: 40 * minute,
			topics: []scenarios.Topic{topic("bills", 1, steady(0, 2000))},
			job:    job(from("bills", "bills", 1, half), scenarios.Operator{ID: "visits", Kind: scenarios.Window, Type: scenarios.Session, GapMillis: 2 * hour, Inputs: []scenarios.Input{{"bills"}}}),
			want:   verdict("window-not-due", "none", scenarios.Culprit{Operator: "visits"}, "wait"),
		},
		{
			name: "windows of sixty milliseconds", at: 10 * minute,
			topics: []scenarios.Topic{topic("bills", 1, steady(0, 2000))},
			job:    job(from("bills", "bills", 1, half), tumbling("tiny", 60, "bills")),
			want:   verdict("window-definition", "wrong-result", scenarios.Culprit{Operator: "tiny"}, "fix-operator"),
		},
		{
			name: "a window of a day", at: 40 * minute,
			topics: []scenarios.Topic{topic("bills", 1, steady(0, 2000))},
			job:    job(from("bills", "bills", 1, half), tumbling("daily", 24*hour, "bills")),
			want:   verdict("window-not-due", "none", scenarios.Culprit{Operator: "daily"}, "wait"),
		},
	}
}
