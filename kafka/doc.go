// Package kafka reads Kafka topics into a job and writes a job's records to
// Kafka topics.
//
// A source has one split per partition. It uses no consumer group: the
// partitions are assigned by the engine, by the formula Flink uses (spec
// watermarks 5.15), and offsets live in the job. Offsets committed to a group
// (GroupID) are there to be looked at and nothing reads them back, unless a
// later job starts from them (GroupOffsets), which without checkpoints may skip records.
//
// What a reader does when Kafka has bad news:
//
//   - Leader elections, broker restarts and lost connections are retried for as
//     long as they last, and logged.
//   - An offset that is no longer in the log, a topic that was deleted or
//     recreated, missing authorization, lost data and broken records end the
//     job with an error that names topic, partition and offset. The source
//     never moves to another offset by itself.
//
// A source's positions are part of the job's checkpoints. A sink gives at-least-once, or
// exactly-once with transactions that are committed when a checkpoint has completed
// (Delivery). docs/kafka.md says what that asks of whoever runs the cluster. No topic is
// created by this package, and it does not know about formats, timestamp assigners,
// watermarks or when checkpoints are taken.
package kafka
