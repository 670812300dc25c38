package kafka

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format"
)

// Record is a Kafka record as NewRecordSource's function sees it. Key, Value
// and Headers are valid only during the call.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	// Timestamp is in milliseconds since the epoch, eventtime.MinTimestamp if
	// TimestampType is NoTimestamp.
	Timestamp     int64
	TimestampType connector.TimestampType
	// Key is nil if the record has none.
	Key []byte
	// Value is nil in a tombstone.
	Value   []byte
	Headers []Header
}

// decodeFunc makes a value from a record. *into is the zero value before.
type decodeFunc[T any] func(rec *kgo.Record, into *T) error

// errTombstone says that a record has no value and the decoder none for it.
var errTombstone = errors.New("null value")

func decodeValue[T any](dec format.Decoder[T]) decodeFunc[T] {
	if dec == nil {
		return nil
	}
	nulls, _ := dec.(format.NullDecoder[T])
	return func(rec *kgo.Record, into *T) error {
		switch {
		case rec.Value != nil:
			return dec.Decode(rec.Value, into)
		case nulls != nil:
			return nulls.DecodeNull(into)
		default:
			return errTombstone
		}
	}
}

func decodeRecord[T any](decode func(rec Record) (T, error)) decodeFunc[T] {
	if decode == nil {
		return nil
	}
	return func(rec *kgo.Record, into *T) error {
		var err error
		*into, err = decode(Record{
			Topic:         rec.Topic,
			Partition:     rec.Partition,
			Offset:        rec.Offset,
			Timestamp:     timestampOf(rec),
			TimestampType: timestampTypeOf(rec),
			Key:           rec.Key,
			Value:         rec.Value,
			Headers:       rec.Headers,
		})
		return err
	}
}

func timestampTypeOf(rec *kgo.Record) connector.TimestampType {
	switch rec.Attrs.TimestampType() {
	case 0:
		return connector.CreateTime
	case 1:
		return connector.LogAppendTime
	default:
		return connector.NoTimestamp
	}
}

// timestampOf returns a record's timestamp in milliseconds. A producer may have
// set -1; only the ancient formats have none at all.
func timestampOf(rec *kgo.Record) int64 {
	if timestampTypeOf(rec) == connector.NoTimestamp {
		return eventtime.MinTimestamp
	}
	return rec.Timestamp.UnixMilli()
}

const maxSample = 64

// sampleOf describes a record that was dropped.
func sampleOf(rec *kgo.Record, cause error) string {
	value, more := rec.Value, ""
	if len(value) > maxSample {
		value, more = value[:maxSample], fmt.Sprintf("… (%d bytes)", len(rec.Value))
	}
	if value == nil {
		return fmt.Sprintf("%s key %.64q", placeOf(rec), rec.Key)
	}
	return fmt.Sprintf("%s %q%s: %.200s", placeOf(rec), value, more, cause)
}

func placeOf(rec *kgo.Record) string {
	return fmt.Sprintf("%s@%d", partition{rec.Topic, rec.Partition}, rec.Offset)
}

// deadLetterOf copies what the side output keeps: the record's bytes are used
// again for others.
func deadLetterOf(rec *kgo.Record, cause error) connector.DeadLetter {
	return connector.DeadLetter{
		SplitID:   partition{rec.Topic, rec.Partition}.String(),
		Topic:     rec.Topic,
		Partition: rec.Partition,
		Offset:    rec.Offset,
		Timestamp: timestampOf(rec),
		Key:       bytes.Clone(rec.Key),
		Value:     bytes.Clone(rec.Value),
		Err:       cause,
	}
}
