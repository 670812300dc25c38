package gaps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// traceLimit is how many bytes of times are kept for the replay, 30 to 60 million
// records.
const traceLimit = 256 << 20

// askTimeout bounds the questions before reading begins.
const askTimeout = 15 * time.Second

// quietTime is how long nothing may come before it is asked whether anything will: longer
// than a broker takes for a fetch, also one that it slows down by a quota.
const quietTime = 30 * time.Second

// ReadOptions says what to read. The limits are checked between fetches.
type ReadOptions struct {
	Topic string
	// Field is where event times are; nil for Kafka's timestamps.
	Field *Field
	// Since leaves out records whose Kafka timestamp is before; zero reads from the
	// start.
	Since time.Time
	// Records, Bytes (of keys and values) and Time limit the reading; 0 is no limit.
	Records, Bytes int64
	Time           time.Duration
	// Progress, if not nil, is told between fetches how much was read, and how many
	// records there are by their offsets.
	Progress func(read, total int64)
}

// Read reads the topic through a client of its own with the options opts, up to the end
// that the topic has now. When a limit is reached or ctx ends, it returns what it has
// read, and Data.Stopped says why. It is an error if it has read nothing by then.
func Read(ctx context.Context, opts []kgo.Opt, o ReadOptions) (*Data, error) {
	began := time.Now()
	r := &reader{ReadOptions: o, data: &Data{Topic: o.Topic, LogAppendTime: true}}
	if o.Field != nil {
		r.data.Field = o.Field.String()
	}
	if err := r.locate(ctx, opts); err != nil {
		return nil, err
	}
	if len(r.left) > 0 {
		if err := r.read(ctx, opts); err != nil {
			return nil, err
		}
	}
	r.data.LogAppendTime = r.data.LogAppendTime && r.data.Records > 0
	r.data.Took = time.Since(began)
	return r.data, nil
}

type reader struct {
	ReadOptions
	data  *Data
	total int64
	// left are the partitions that are not read to their end.
	left map[int32]*Partition
	kept int
}

// locate finds the partitions, where to begin and their ends.
func (r *reader) locate(ctx context.Context, opts []kgo.Opt) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	from := func() (kadm.ListedOffsets, error) { return admin.ListStartOffsets(ctx, r.Topic) }
	if !r.Since.IsZero() {
		from = func() (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, r.Since.UnixMilli(), r.Topic)
		}
	}
	starts, err := from()
	if err == nil {
		err = starts.Error()
	}
	ends, endErr := admin.ListEndOffsets(ctx, r.Topic)
	if err = errors.Join(err, endErr); err == nil {
		err = ends.Error()
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("topic %q does not exist", r.Topic)
	case err != nil:
		return fmt.Errorf("topic %q: asking for its offsets: %w", r.Topic, err)
	}
	r.left = map[int32]*Partition{}
	for _, end := range ends.Offsets().Sorted() {
		start, _ := starts.Lookup(r.Topic, end.Partition)
		p := &Partition{Number: end.Partition, From: start.Offset, Next: start.Offset, End: end.At}
		if p.From < 0 { // nothing that late
			p.From, p.Next = p.End, p.End
		}
		r.data.Partitions = append(r.data.Partitions, p)
		if !p.complete() {
			r.left[p.Number] = p
			r.total += p.End - p.From
		}
	}
	return nil
}

// read fetches until all partitions are at their ends, or a limit is reached.
func (r *reader) read(ctx context.Context, opts []kgo.Opt) error {
	starts := map[int32]kgo.Offset{}
	for n, p := range r.left {
		starts[n] = kgo.NewOffset().At(p.From)
	}
	// Markers of transactions have offsets, so that an end is seen even if one is last.
	client, err := kgo.NewClient(append(opts[:len(opts):len(opts)],
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: starts}), kgo.KeepControlRecords())...)
	if err != nil {
		return err
	}
	defer client.Close()
	polling := ctx
	if r.Time > 0 {
		var cancel context.CancelFunc
		polling, cancel = context.WithTimeout(ctx, r.Time)
		defer cancel()
	}
	for len(r.left) > 0 && r.data.Stopped == "" {
		poll, cancel := context.WithTimeout(polling, quietTime)
		fetches := client.PollRecords(poll, 10_000)
		quiet := poll.Err() != nil && fetches.NumRecords() == 0
		cancel()
		switch {
		case ctx.Err() != nil:
			r.data.Stopped = "interrupted"
		case polling.Err() != nil:
			r.data.Stopped = fmt.Sprintf("the limit of %v was reached", r.Time)
		case quiet:
			r.skipEmptyEnds(polling, kadm.NewClient(client))
		default:
			if err := fetches.Err(); err != nil {
				return fmt.Errorf("reading topic %q: %w", r.Topic, err)
			}
		}
		fetches.EachRecord(r.take)
		if r.Progress != nil {
			r.Progress(r.data.Records, r.total)
		}
	}
	if r.data.Records == 0 && r.data.Stopped != "" {
		return fmt.Errorf("topic %q: nothing was read: %s", r.Topic, r.data.Stopped)
	}
	return nil
}

// skipEmptyEnds ends the partitions from which nothing has come for quietTime: if their
// brokers answer, their last offsets have no records any more, as after a compaction.
func (r *reader) skipEmptyEnds(ctx context.Context, admin *kadm.Client) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ends, err := admin.ListEndOffsets(ctx, r.Topic)
	for _, n := range slices.Sorted(maps.Keys(r.left)) {
		end, ok := ends.Lookup(r.Topic, n)
		if failed := errors.Join(err, end.Err); failed != nil || !ok {
			r.data.Stopped = fmt.Sprintf("nothing came from partition %d for %v: %v", n, quietTime, cmp.Or(failed, errors.New("it is not there any more")))
			return
		}
		p := r.left[n]
		p.Missing, p.Next = p.End-p.Next, p.End
		delete(r.left, n)
	}
}

// take adds a record, unless a limit was reached before it.
func (r *reader) take(record *kgo.Record) {
	p := r.left[record.Partition]
	if p == nil || r.limited() {
		return
	}
	p.Next = record.Offset + 1
	if p.complete() {
		delete(r.left, p.Number)
	}
	if record.Offset >= p.End || record.Attrs.IsControl() {
		return
	}
	r.data.Records++
	r.data.Bytes += int64(len(record.Key) + len(record.Value))
	r.data.LogAppendTime = r.data.LogAppendTime && record.Attrs.TimestampType() == 1
	event := record.Timestamp.UnixMilli()
	if r.Field != nil {
		var err error
		if event, err = r.Field.Millis(record.Value); err != nil {
			if p.Unreadable == 0 {
				p.UnreadableSample = fmt.Sprintf("offset %d: %v", record.Offset, err)
			}
			p.Unreadable++
			return
		}
	}
	before := len(p.trace.data)
	p.add(record.Timestamp.UnixMilli(), event)
	r.kept += len(p.trace.data) - before
}

// limited says whether a limit was reached, and remembers which.
func (r *reader) limited() bool {
	switch {
	case r.data.Stopped != "":
	case r.Records > 0 && r.data.Records >= r.Records:
		r.data.Stopped = fmt.Sprintf("the limit of %d records was reached", r.Records)
	case r.Bytes > 0 && r.data.Bytes >= r.Bytes:
		r.data.Stopped = fmt.Sprintf("the limit of %d bytes was reached", r.Bytes)
	case r.kept >= traceLimit:
		r.data.Stopped = "the limit of what can be kept for the replay was reached"
	default:
		return false
	}
	return true
}
