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
// The engine itself is internal; connectors are in packages of their own
// (kafka, datagen) and implement package connector.
package lowwater
