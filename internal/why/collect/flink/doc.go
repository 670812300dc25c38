// Package flink collects evidence for package why from a live Flink cluster by its
// monitoring REST API, releases 1.17 to 2.3, or from a job of ours that answers as Flink
// does. It needs nothing else, changes nothing, and
// does not judge what it sees.
//
// What REST does not tell (watermark strategies, the split of a late record, the status of
// a channel) stays unknown. Metrics are up to ten seconds old: Flink fetches them when it
// is asked and answers with what it had.
package flink
