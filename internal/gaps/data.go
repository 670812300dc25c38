package gaps

import (
	"math"
	"time"
)

// Data is what was read of a topic.
type Data struct {
	Topic string
	// Field is the payload field that event times come from, empty for Kafka's
	// timestamps.
	Field string
	// LogAppendTime says that Kafka's timestamps are the broker's clock and not the
	// producers'.
	LogAppendTime bool
	Partitions    []*Partition
	// Records and Bytes (of keys and values) were read in Took.
	Records, Bytes int64
	Took           time.Duration
	// Stopped says why reading ended before the end of the topic, empty if it did not.
	Stopped string
}

// Partition is what was read of one partition. Times are milliseconds since the epoch.
type Partition struct {
	Number int32
	// Records are those with an event time, Unreadable those without, of which
	// UnreadableSample describes the first.
	Records, Unreadable int64
	UnreadableSample    string
	// From is the first offset to read, Next the one after the last that was read, End
	// the partition's end when reading began.
	From, Next, End int64
	// Missing are the last offsets, if no records came from them and they are taken for
	// ones that were removed.
	Missing                 int64
	FirstAppend, LastAppend int64
	FirstEvent, MaxEvent    int64
	// Gaps are the times between records, by append time.
	Gaps Histogram
	// EventGaps are the steps in which the largest event time grows.
	EventGaps Histogram
	// Disorder is how far each record is behind the largest event time before it. A
	// bound of that much keeps it from being late in its own partition.
	Disorder Histogram
	// Delay is append time minus event time, 0 if that is negative; Future is the
	// largest by which it is. Far are the records with an event time that can hardly be one:
	// more than 20 years before they were appended, or a year after.
	Delay  Histogram
	Future int64
	Far    int64

	trace trace
}

// add takes a record of the partition. kafkaMillis is its Kafka timestamp.
func (p *Partition) add(kafkaMillis, eventMillis int64) {
	appended := kafkaMillis
	if p.Records == 0 {
		p.FirstAppend, p.FirstEvent, p.MaxEvent = appended, eventMillis, eventMillis
	} else {
		appended = max(appended, p.LastAppend)
		p.Gaps.Add(appended - p.LastAppend)
		if eventMillis > p.MaxEvent {
			p.EventGaps.Add(minus(eventMillis, p.MaxEvent))
		}
	}
	p.Disorder.Add(minus(p.MaxEvent, eventMillis))
	delay := minus(appended, eventMillis)
	p.Delay.Add(delay)
	p.Future = max(p.Future, minus(eventMillis, appended))
	if delay > 20*yearMillis || delay < -yearMillis {
		p.Far++
	}
	p.MaxEvent = max(p.MaxEvent, eventMillis)
	p.LastAppend = appended
	p.Records++
	p.trace.add(appended, eventMillis)
}

const yearMillis = 365 * 24 * 3600 * 1000

// minus subtracts without running over: times may be anything.
func minus(a, b int64) int64 {
	switch d := a - b; {
	case a >= 0 && b < 0 && d < 0:
		return math.MaxInt64
	case a < 0 && b > 0 && d >= 0:
		return math.MinInt64
	default:
		return d
	}
}

func (p *Partition) complete() bool { return p.Next >= p.End }

// horizon is the append time up to which all partitions were read: a partition that was
// not read to its end may have more records after its last one.
func (d *Data) horizon() int64 {
	var whole, cut int64
	incomplete := false
	for _, p := range d.Partitions {
		if p.Records == 0 && p.complete() {
			continue
		}
		whole = max(whole, p.LastAppend)
		if !p.complete() && (!incomplete || p.LastAppend < cut) {
			cut, incomplete = p.LastAppend, true
		}
	}
	if incomplete {
		return cut
	}
	return whole
}

// start is the first append time.
func (d *Data) start() int64 {
	var first int64
	found := false
	for _, p := range d.Partitions {
		if p.Records > 0 && (!found || p.FirstAppend < first) {
			first, found = p.FirstAppend, true
		}
	}
	return first
}

// whole returns a distribution over all partitions.
func (d *Data) whole(of func(*Partition) *Histogram) Histogram {
	var h Histogram
	for _, p := range d.Partitions {
		h.merge(of(p))
	}
	return h
}
