package kafka

import (
	"context"
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format"
)

// Sink writes to Kafka topics. It describes what to write and holds no
// connection. Its With methods return a changed copy.
type Sink[T any] struct {
	cfg       *sinkConfig
	enc       format.Encoder[T]
	topic     func(T) string
	key       func(T) []byte
	headers   func(T) []Header
	partition func(v T, numPartitions int) int
	timestamp func(T) int64
	missing   []string // the methods that were given a nil function
}

var (
	_ connector.Sink[int]      = (*Sink[int])(nil)
	_ connector.GuaranteedSink = (*Sink[int])(nil)
)

// NewSink returns a sink that writes encoded values. If the encoder returns nil
// for a value, the record's value is null (a tombstone).
//
// Without further settings records have no key and no headers, go to a partition
// that changes now and then, and carry their event time as timestamp.
func NewSink[T any](enc format.Encoder[T], opts ...SinkOption) *Sink[T] {
	return &Sink[T]{cfg: newSinkConfig(opts), enc: enc}
}

// WithTopic takes the topic from the value, instead of the option Topic. A
// topic that does not exist fails the job when the first record is written to
// it.
func (s *Sink[T]) WithTopic(topic func(v T) string) *Sink[T] {
	c := s.with("WithTopic", topic == nil)
	c.topic = topic
	return c
}

// WithKey sets the record's key; nil is no key. The bytes are copied. Records
// with equal keys go to the same partition, the one that Kafka's Java clients
// choose.
func (s *Sink[T]) WithKey(key func(v T) []byte) *Sink[T] {
	c := s.with("WithKey", key == nil)
	c.key = key
	return c
}

// WithHeaders sets the record's headers. They must not be changed later.
func (s *Sink[T]) WithHeaders(headers func(v T) []Header) *Sink[T] {
	c := s.with("WithHeaders", headers == nil)
	c.headers = headers
	return c
}

// WithPartition sets the partition, from 0 to numPartitions-1, instead of
// choosing it by key. The number of a topic's partitions is read once:
// partitions added later are used after a restart, as in Flink.
func (s *Sink[T]) WithPartition(partition func(v T, numPartitions int) int) *Sink[T] {
	c := s.with("WithPartition", partition == nil)
	c.partition = partition
	return c
}

// WithTimestamp sets the record's timestamp, in milliseconds since the epoch.
// Default is the record's event time. Without one, and for negative ones, it is
// the time of writing.
func (s *Sink[T]) WithTimestamp(timestamp func(v T) int64) *Sink[T] {
	c := s.with("WithTimestamp", timestamp == nil)
	c.timestamp = timestamp
	return c
}

// with returns a copy for a method to change. isNil says that the method was given nothing.
func (s *Sink[T]) with(method string, isNil bool) *Sink[T] {
	c := *s
	if isNil {
		c.missing = append(slices.Clip(c.missing), method)
	}
	return &c
}

// Validate reports all wrong options at once, and what the encoder says about itself
// (format.Validator).
func (s *Sink[T]) Validate() error {
	p := &problems{of: "kafka sink"}
	if s.enc == nil {
		p.add("encoder", "nil; want one for NewSink")
	}
	p.codec("encoder", s.enc)
	for _, method := range s.missing {
		p.add(method, "the function is nil; leave the call out")
	}
	s.cfg.validate(p, s.topic != nil)
	return p.err()
}

// NewWriter opens the writer of one subtask. It fails if the topic of the option
// Topic does not exist, or if Kafka does not answer within StartupTimeout.
func (s *Sink[T]) NewWriter(ctx context.Context, rt connector.WriterRuntime) (connector.Writer[T], error) {
	return newWriter(ctx, s, rt)
}

// Guarantee returns what the option Delivery says.
func (s *Sink[T]) Guarantee() Guarantee { return s.cfg.guarantee }

// String describes the sink, without secrets.
func (s *Sink[T]) String() string { return s.cfg.String() }

// GoString keeps secrets out of %#v, too.
func (s *Sink[T]) GoString() string { return s.cfg.String() }
