// Package observe watches running jobs from outside: it names their vertices and
// operators as Flink does, samples their numbers once a second, and makes metrics,
// rates, a history of watermarks and Prometheus exposition of them.
//
// It speaks no HTTP, which is package rest's, and measures nothing itself: jobs do. Nothing
// here is on the way of a record.
package observe
