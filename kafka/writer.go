package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// writer produces the records of one subtask. The client sends in the
// background and calls done with each record's fate.
type writer[T any] struct {
	*cluster
	sink *Sink[T]
	// topics are the numbers of partitions of the topics written to so far.
	topics map[string]int
	last   string // the topic of the last record
	// records are acknowledged ones, to be used again with their buffers.
	records sync.Pool
	done    func(*kgo.Record, error)
	// countBytes may be nil.
	countBytes func(n int64)

	// exactly is what makes the sink exactly-once; in others it only recovers.
	exactly *transactions

	// base ends when the writer gives up all records.
	base  context.Context
	abort context.CancelFunc
	// lease is the context of the records written until renewal.
	lease   context.Context
	renewal time.Time

	failed atomic.Bool
	mu     sync.Mutex
	err    error // the first failure
}

var (
	_ connector.Writer[int]    = (*writer[int])(nil)
	_ connector.TwoPhaseWriter = (*writer[int])(nil)
)

func newWriter[T any](ctx context.Context, s *Sink[T], rt connector.WriterRuntime) (connector.Writer[T], error) {
	options := s.cfg.writerOptions(s.partition != nil)
	c, err := connect("kafka sink", "WRITE and DESCRIBE", &s.cfg.client, rt.Logger, []kgo.Opt{protocolVersion1()}, options)
	if err != nil {
		return nil, err
	}
	w := &writer[T]{cluster: c, sink: s, topics: map[string]int{}, countBytes: rt.CountBytes}
	w.done = w.acknowledged
	w.base, w.abort = context.WithCancel(context.Background())
	w.exactly = newTransactions(w.base, c, s.cfg, rt, options)
	if s.cfg.topic != "" {
		if err := w.open(ctx, s.cfg.topic); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// open checks that a topic exists, the first time it is written to.
func (w *writer[T]) open(ctx context.Context, topic string) error {
	if topic == w.last && topic != "" {
		return nil
	}
	if _, ok := w.topics[topic]; !ok {
		n, err := w.countPartitions(ctx, topic)
		if err != nil {
			return err
		}
		w.topics[topic] = n
	}
	w.last = topic
	return nil
}

func (w *writer[T]) countPartitions(ctx context.Context, topic string) (int, error) {
	if topic == "" {
		return 0, w.errorf("WithTopic returned an empty topic")
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.startupTimeout)
	defer cancel()
	resp, err := w.metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	for _, t := range resp.Topics {
		if err := w.topicError(topic, kerr.ErrorForCode(t.ErrorCode)); err != nil {
			return 0, err
		}
		return len(t.Partitions), nil
	}
	return 0, w.topicError(topic, kerr.UnknownTopicOrPartition)
}

// Write hands records to the client, and waits while too much of what was
// written is not acknowledged. It returns the first failure of records written
// before, too. If ctx ends, everything that is not acknowledged is given up.
func (w *writer[T]) Write(ctx context.Context, b *connector.Batch[T]) error {
	defer context.AfterFunc(ctx, w.abort)()
	client := w.client
	if w.sink.cfg.guarantee == ExactlyOnce {
		var err error
		if client, err = w.exactly.begin(ctx); err != nil {
			return err
		}
	}
	lease := w.leased()
	size := 0
	for i := range b.Values {
		if w.failed.Load() {
			return w.failure()
		}
		rec, err := w.record(ctx, b.Values[i], b.Timestamps[i])
		if err != nil {
			return err
		}
		size += len(rec.Key) + len(rec.Value)
		client.Produce(lease, rec, w.done)
	}
	if w.countBytes != nil {
		w.countBytes(int64(size))
	}
	return nil
}

// leaseInterval is for how long of writing records share a context.
const leaseInterval = time.Second

// leased returns a context that ends when a record written now has waited for
// its acknowledgement for too long. The client's own timeout goes by the
// record's timestamp, which here is event time.
func (w *writer[T]) leased() context.Context {
	if now := time.Now(); now.After(w.renewal) {
		lease, cancel := context.WithTimeout(w.base, leaseInterval+w.sink.cfg.deliveryTimeout)
		_ = cancel // a lease outlives its renewal, and ends with base
		w.lease, w.renewal = lease, now.Add(leaseInterval)
	}
	return w.lease
}

// record makes a Kafka record of a value.
func (w *writer[T]) record(ctx context.Context, v T, timestamp int64) (*kgo.Record, error) {
	topic := w.sink.cfg.topic
	if w.sink.topic != nil {
		topic = w.sink.topic(v)
	}
	if err := w.open(ctx, topic); err != nil {
		return nil, err
	}
	rec := w.fresh()
	rec.Topic = topic
	value, err := w.sink.enc.Encode(rec.Value, v)
	if err != nil {
		return nil, w.errorf("cannot encode a value for topic %q: %w", topic, err)
	}
	rec.Value = value
	w.setKey(rec, v)
	if w.sink.headers != nil {
		rec.Headers = w.sink.headers(v)
	}
	if w.sink.timestamp != nil {
		timestamp = w.sink.timestamp(v)
	}
	switch {
	case timestamp < 0 || timestamp == eventtime.MaxTimestamp:
		// none, or the end of time, as of a window without an end: the time of writing
	case timestamp > maxMillis:
		return nil, w.errorf("the timestamp %d of a value for topic %q is later than the year 2262, which no record can carry; "+
			"check whether it is in milliseconds, or set WithTimestamp", timestamp, topic)
	default:
		rec.Timestamp = time.UnixMilli(timestamp)
	}
	return rec, w.choose(rec, v)
}

// maxMillis is the largest time in milliseconds that has nanoseconds in 64 bits, which is
// how the client keeps it.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

// setKey copies the key. No key and an empty one are different.
func (w *writer[T]) setKey(rec *kgo.Record, v T) {
	if w.sink.key == nil {
		return
	}
	switch key := w.sink.key(v); {
	case key == nil:
		rec.Key = nil
	case rec.Key == nil:
		rec.Key = append([]byte{}, key...)
	default:
		rec.Key = append(rec.Key, key...)
	}
}

// choose sets the partition if the user does so.
func (w *writer[T]) choose(rec *kgo.Record, v T) error {
	if w.sink.partition == nil {
		return nil
	}
	n := w.topics[rec.Topic]
	p := w.sink.partition(v, n)
	if p < 0 || p >= n || p > math.MaxInt32 {
		return w.errorf("WithPartition returned %d for topic %q; want 0 to %d", p, rec.Topic, n-1)
	}
	rec.Partition = int32(p)
	return nil
}

// maxPooledRecord keeps single huge records from staying for ever.
const maxPooledRecord = 64 << 10

// fresh returns a record with empty buffers. The value's is never nil, so that
// an empty value stays apart from none.
func (w *writer[T]) fresh() *kgo.Record {
	rec, ok := w.records.Get().(*kgo.Record)
	if !ok {
		rec = &kgo.Record{}
	}
	if rec.Value == nil {
		rec.Value = make([]byte, 0, 256)
	}
	*rec = kgo.Record{Key: rec.Key[:0], Value: rec.Value[:0]}
	return rec
}

// acknowledged is called by the client when a record is written or given up.
func (w *writer[T]) acknowledged(rec *kgo.Record, err error) {
	if err == nil {
		if cap(rec.Value)+cap(rec.Key) <= maxPooledRecord {
			w.records.Put(rec)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = w.explain(rec, err)
		w.failed.Store(true)
	}
}

func (w *writer[T]) explain(rec *kgo.Record, err error) error {
	if isUnknownTopic(err) {
		return w.topicError(rec.Topic, err)
	}
	place := fmt.Sprintf("topic %q", rec.Topic)
	if rec.Partition >= 0 {
		place = partition{rec.Topic, rec.Partition}.String()
	}
	switch {
	case rec.Context.Err() != nil && w.base.Err() == nil:
		return w.errorf("writing to %s on %s: not acknowledged within %v: %w; check the brokers, or raise DeliveryTimeout",
			place, w.cfg.addresses(), w.sink.cfg.deliveryTimeout, w.cause(err))
	case errors.Is(err, kerr.InvalidTimestamp):
		return w.errorf("writing to %s on %s: the record's timestamp, %s, is further from the broker's clock than the topic allows: %w; "+
			"set another one with WithTimestamp, or the topic's message.timestamp.after.max.ms (an hour if not set) or message.timestamp.before.max.ms",
			place, w.cfg.addresses(), rec.Timestamp.UTC().Format(time.RFC3339Nano), err)
	case isSuperseded(err):
		return w.errorf("writing to %s on %s: the transaction was ended by someone else: %w; another run of the job, or another job with the same "+
			"TransactionalIDPrefix %q, has taken over, or more than TransactionTimeout %v passed since the transaction's first record",
			place, w.cfg.addresses(), err, w.sink.cfg.transactionalIDPrefix, w.sink.cfg.transactionTimeout)
	default:
		return w.errorf("writing to %s on %s: %w", place, w.cfg.addresses(), err)
	}
}

// Failure implements connector.FailureReporter.
func (w *writer[T]) Failure() error {
	if !w.failed.Load() {
		return nil
	}
	return w.failure()
}

func (w *writer[T]) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Flush waits until everything written is acknowledged, or returns the first
// failure.
func (w *writer[T]) Flush(ctx context.Context) error { return w.flush(ctx, w.client) }

func (w *writer[T]) flush(ctx context.Context, client *kgo.Client) error {
	err := client.Flush(ctx)
	if failure := w.failure(); failure != nil {
		return failure
	}
	if err != nil {
		return w.errorf("waiting for %d records that are not acknowledged: %w", client.BufferedProduceRecords(), err)
	}
	return nil
}

// Recover implements connector.TwoPhaseWriter.
func (w *writer[T]) Recover(ctx context.Context, prepared, undecided [][]byte) error {
	return w.exactly.recover(ctx, prepared, undecided)
}

// Prepare implements connector.TwoPhaseWriter.
func (w *writer[T]) Prepare(ctx context.Context, checkpoint int64) ([]byte, error) {
	if open := w.exactly.open; open == nil || !open.begun {
		return nil, w.failure()
	}
	// The client never gives up records of a transaction that may have been written.
	ctx, cancel := context.WithTimeout(ctx, w.sink.cfg.deliveryTimeout)
	defer cancel()
	if err := w.flush(ctx, w.exactly.open.client); err != nil {
		return nil, err
	}
	return w.exactly.prepare(ctx, checkpoint)
}

// Commit implements connector.TwoPhaseWriter.
func (w *writer[T]) Commit(ctx context.Context, prepared []byte) error {
	return w.exactly.commit(ctx, prepared)
}

// Close gives up what is not acknowledged, and the open transaction.
func (w *writer[T]) Close() error {
	w.abort()
	w.exactly.close(isSuperseded(w.failure()))
	w.client.Close()
	return nil
}
