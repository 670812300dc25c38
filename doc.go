// Package lowwater is an event-time stream processor with Apache Flink's
// semantics, as a library: typed streams, windows that fire by watermarks, and
// Kafka at both ends.
//
// A job is built on an Environment and run by Execute:
//
//	env := lowwater.NewEnvironment(lowwater.WithParallelism(3))
//	orders := lowwater.FromSource(env,
//		kafka.NewSource(json.Value[Order](), kafka.Brokers("localhost:9092"), kafka.Topics("orders")),
//		eventtime.ForBoundedOutOfOrderness[Order](20*time.Second).
//			WithTimestampAssigner(func(o Order, _ int64) int64 { return o.PlacedAtMillis }).
//			WithIdleness(time.Minute),
//		"orders")
//	orders.
//		KeyBy(func(o Order) string { return o.EventType }).
//		Window(window.Tumbling(5 * time.Minute)).
//		Aggregate(lowwater.Count[Order]()).
//		Print()
//	err := env.Execute(ctx, "orders per type")
//
// Methods that build a job never fail: what is wrong with their arguments is
// remembered, with the file and line of the call, and returned by Execute before
// anything runs.
//
// Values that flow through a job may be shared by several operators. User
// functions must not modify what values point to after they have emitted them.
//
// A plain function, such as one given to Map, KeyBy or a window's Process, serves all
// subtasks of its operator, which call it at the same time: what it shares between calls
// must be safe for concurrent use. Where a factory is asked for, it is called once for
// each subtask, and what it returns belongs to that subtask's goroutine alone.
//
// Timestamps and watermarks are int64 milliseconds since the epoch; eventtime.MinTimestamp
// stands for none. Lengths of time are a time.Duration of whole milliseconds. An error or
// a panic of a user function fails the job, which then ends or restarts, as WithRestart
// says.
//
// References such as "spec windows 2.3" are to sections of docs/spec/windows.md and
// docs/spec/watermarks.md, which say what Flink does. What differs from it is in
// docs/flink-differences.md.
//
// The engine itself is internal; connectors are in packages of their own
// (kafka, datagen) and implement package connector.
package lowwater
