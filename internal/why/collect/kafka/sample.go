package kafka

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/internal/why"
)

const (
	// aheadMillis is how far ahead of its append time an event is suspicious.
	aheadMillis = 60_000
	mostAhead   = 8
	mostGaps    = 32
	// mostKeys bounds the keys that are followed.
	mostKeys = 10_000
	// steadyRecords is how many records a key needs to say something about its pauses.
	steadyRecords = 10
)

type partition struct {
	topic string
	id    int32
}

// sample reads the last records of every partition.
func (l *look) sample(ctx context.Context) {
	offsets := map[string]map[int32]kgo.Offset{}
	left := map[partition]int64{} // the offset to stop at
	l.ends.Each(func(end kadm.ListedOffset) {
		start, ok := l.starts.Lookup(end.Topic, end.Partition)
		if !ok || end.Err != nil || start.Err != nil || start.Offset >= end.Offset {
			return
		}
		if offsets[end.Topic] == nil {
			offsets[end.Topic] = map[int32]kgo.Offset{}
		}
		offsets[end.Topic][end.Partition] = kgo.NewOffset().At(max(start.Offset, end.Offset-l.c.o.Records))
		left[partition{end.Topic, end.Partition}] = end.Offset
	})
	if len(left) == 0 {
		l.e.Means.KafkaRecords = true
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.c.o.Time)
	defer cancel()
	client, err := kgo.NewClient(append(l.c.options[:len(l.c.options):len(l.c.options)],
		kgo.ConsumePartitions(offsets), kgo.KeepControlRecords(), kgo.FetchMaxPartitionBytes(1<<20))...)
	if err != nil {
		l.cannot("records: %v", short(err))
		return
	}
	defer client.Close()
	profiles := l.read(ctx, client, left)
	l.bounds(profiles)
	l.e.Means.KafkaRecords = len(profiles) > 0
	for i := range l.now.Splits {
		sp := &l.now.Splits[i]
		if p := profiles[partition{sp.Topic, sp.Partition}]; p != nil && p.count > 0 {
			p.describe(sp)
		}
	}
	if len(left) > 0 {
		l.cannot("the last records of %d partitions: not read within %v and %d MB", len(left), l.c.o.Time, l.c.o.Bytes>>20)
	}
}

// read fetches until all partitions are read or a limit is reached.
func (l *look) read(ctx context.Context, client *kgo.Client, left map[partition]int64) map[partition]*profiler {
	profiles := map[partition]*profiler{}
	var bytes int64
	for len(left) > 0 && bytes < l.c.o.Bytes {
		fetches := client.PollRecords(ctx, 1000)
		if ctx.Err() != nil && fetches.NumRecords() == 0 {
			return profiles
		}
		if err := fetches.Err0(); err != nil && fetches.NumRecords() == 0 {
			l.cannot("records: %v", short(err))
			return profiles
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at := partition{r.Topic, r.Partition}
			end, reading := left[at]
			if !reading {
				return
			}
			if r.Offset+1 >= end {
				delete(left, at)
			}
			if r.Offset >= end || r.Attrs.IsControl() {
				return
			}
			bytes += int64(len(r.Key) + len(r.Value))
			if profiles[at] == nil {
				profiles[at] = &profiler{c: l.c, now: l.now.AtMillis, keys: map[string]*keyTimes{}, position: l.positionOf(at)}
			}
			profiles[at].add(r)
		})
	}
	return profiles
}

// positionOf is up to where the job has read a partition, 0 if that is unknown.
func (l *look) positionOf(at partition) int64 {
	for _, sp := range l.now.Splits {
		if sp.Topic == at.topic && sp.Partition == at.id && sp.PositionOffset.OK {
			return sp.PositionOffset.Value
		}
	}
	return 0
}

// profiler makes a profile of the records of one partition, in their order.
type profiler struct {
	c     *Collector
	now   int64
	count int64
	p     why.Profile
	max   int64 // the largest event time that is not far ahead
	// youngest and oldest are the smallest and the largest age on arrival.
	youngest, oldest int64
	keys             map[string]*keyTimes
	// payload and record are the times of the last record.
	payload why.Known[int64]
	record  int64
	// read is the largest event time before position, which the job has read.
	position int64
	read     why.Known[int64]
}

// keyTimes are the events of one key.
type keyTimes struct{ count, first, last, largestGap int64 }

func (f *profiler) add(r *kgo.Record) {
	record := r.Timestamp.UnixMilli()
	event := record
	payload := why.Known[int64]{}
	if f.c.o.Payload != nil {
		if t, err := f.c.o.Payload.Millis(r.Value); err == nil {
			payload, event = why.Know(t), t
			f.p.PayloadBehindRecordMillis = max(f.p.PayloadBehindRecordMillis, record-event)
		}
	}
	appended := min(record, f.now) // a producer's clock may be ahead
	if f.count == 0 {
		f.p.FirstAppendMillis, f.max = appended, math.MinInt64
		f.youngest, f.oldest = math.MaxInt64, math.MinInt64
	} else {
		appended = max(appended, f.p.LastAppendMillis)
		f.gap(f.p.LastAppendMillis, appended)
	}
	f.p.LastAppendMillis = appended
	f.count++
	f.record, f.payload = record, payload
	if r.Attrs.TimestampType() < 0 {
		f.record = -1
	}
	f.event(r, event, appended)
}

// event looks at the event time of a record.
func (f *profiler) event(r *kgo.Record, event, appended int64) {
	ahead := event - appended
	f.p.MaxAheadMillis = max(f.p.MaxAheadMillis, ahead)
	if ahead > aheadMillis {
		f.p.AheadRecords++
		f.p.Ahead = append(f.p.Ahead, why.AheadRecord{Offset: r.Offset, Key: text(r.Key), EventMillis: event, AppendMillis: appended})
		if len(f.p.Ahead) > mostAhead {
			f.p.Ahead = slices.Delete(f.p.Ahead, 0, 1)
		}
		return
	}
	if f.max != math.MinInt64 {
		f.p.DisorderMillis = max(f.p.DisorderMillis, f.max-event)
	}
	f.max = max(f.max, event)
	if r.Offset < f.position {
		f.read = why.Know(f.max)
	}
	f.youngest, f.oldest = min(f.youngest, -ahead), max(f.oldest, -ahead)
	f.p.DelaySpreadMillis = f.oldest - f.youngest
	key := f.keys[string(r.Key)]
	if key == nil {
		if len(f.keys) >= mostKeys {
			return
		}
		key = &keyTimes{first: event, last: event}
		f.keys[string(r.Key)] = key
	}
	key.count++
	key.largestGap = max(key.largestGap, event-key.last)
	key.last = max(key.last, event)
}

// text is a key for people: what is not text is not shown.
func text(key []byte) string {
	const longest = 64
	for _, b := range key {
		if b < ' ' || b > '~' {
			return ""
		}
	}
	return string(key[:min(len(key), longest)])
}

// gap keeps the longest times without an append.
func (f *profiler) gap(from, to int64) {
	if to <= from {
		return
	}
	g := why.Gap{FromMillis: from, ToMillis: to}
	i, _ := slices.BinarySearchFunc(f.p.Gaps, g, func(a, b why.Gap) int { return cmp.Compare(b.Millis(), a.Millis()) })
	if i < mostGaps {
		f.p.Gaps = slices.Insert(f.p.Gaps, i, g)
		f.p.Gaps = f.p.Gaps[:min(len(f.p.Gaps), mostGaps)]
	}
}

// describe tells a split what was found.
func (f *profiler) describe(sp *why.Split) {
	f.p.Records = f.count
	var steadiest *string
	for name, key := range f.keys {
		if key.count < steadyRecords {
			continue
		}
		gap, span := max(key.largestGap, f.max-key.last), key.last-key.first // a key may have ended
		if steadiest == nil || cmp.Or(cmp.Compare(gap, f.p.SteadiestGapMillis.Value), cmp.Compare(f.p.SteadiestSpanMillis, span), cmp.Compare(name, *steadiest)) < 0 {
			steadiest = &name
			f.p.SteadiestGapMillis, f.p.SteadiestSpanMillis, f.p.SteadiestKey = why.Know(gap), span, text([]byte(name))
		}
	}
	sp.Profile = &f.p
	sp.LastAppendMillis = why.Know(f.p.LastAppendMillis)
	sp.LastRecordMillis = why.Know(f.record)
	sp.LastPayloadMillis = f.payload
}
