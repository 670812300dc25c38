// Package input is what the chaos test feeds to its job and what must come out, as pure
// functions of a seed, so that the harness and the job agree without talking. It knows
// neither of the faults nor of Kafka.
package input

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The job's windows, and how far records are out of order, in milliseconds.
const (
	WindowMillis = 5_000
	JitterMillis = 2_000
	// StepMillis is the event time between two records of a partition.
	StepMillis = 20
	Keys       = 40
	Partitions = 4
)

// Event is the value of a record, as JSON.
type Event struct {
	Key string `json:"key"`
	At  int64  `json:"at"`
}

// FlushKey is the key of the records that end the last windows.
const FlushKey = "flush"

// Start is the event time of the first records.
func Start(seed uint64) int64 {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() + int64(seed%1000)*1_000_000
}

// At returns record n of a partition.
func At(seed uint64, partition int, n int64) Event {
	r := rand.New(rand.NewPCG(seed, uint64(partition)<<48|uint64(n)))
	return Event{
		Key: fmt.Sprintf("key-%02d", r.IntN(Keys)),
		At:  Start(seed) + n*StepMillis + r.Int64N(JitterMillis),
	}
}

// Flush returns the record that lets all windows of n records a partition fire.
func Flush(seed uint64, n int64) Event {
	return Event{Key: FlushKey, At: Start(seed) + n*StepMillis + 100*WindowMillis}
}

// Result is one line of output.
func Result(kind, key string, start int64, count int64) string {
	return fmt.Sprintf("%s %s %d %d", kind, key, start, count)
}

// Expected returns how often each line must come out: once.
func Expected(seed uint64, n int64) map[string]int {
	type window struct {
		key   string
		start int64
	}
	counts := map[window]int64{}
	for p := range Partitions {
		for i := range n {
			e := At(seed, p, i)
			counts[window{e.Key, e.At - e.At%WindowMillis}]++
		}
	}
	lines := map[string]int{}
	for w, count := range counts {
		lines[Result("window", w.key, w.start, count)]++
		lines[Result("timer", w.key, w.start, count)]++
	}
	return lines
}
