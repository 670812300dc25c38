package lowwatertest

import (
	"encoding/json/v2"
	"time"

	"github.com/lowwater/lowwater/internal/kafkatest"
)

// Record is a record to append to a topic; see [JSON] and [Text].
type Record struct {
	// Partition is the number of an existing partition, from 0.
	Partition int
	// Timestamp is the record's own, zero for the virtual now.
	Timestamp time.Time
	// Key and Value are nil for none.
	Key, Value []byte

	err error // of JSON, told by Produce, which has a test to fail
}

// JSON returns a record with a value as JSON, the members of maps in order. A value that
// JSON cannot hold fails the test when the record is produced.
func JSON(partition int, value any) Record {
	text, err := json.Marshal(value, json.Deterministic(true))
	return Record{Partition: partition, Value: text, err: err}
}

// Text returns a record with a string.
func Text(partition int, value string) Record {
	return Record{Partition: partition, Value: []byte(value)}
}

// At returns the record with a timestamp, which Kafka keeps in milliseconds.
func (r Record) At(t time.Time) Record { r.Timestamp = t; return r }

// WithKey returns the record with a key.
func (r Record) WithKey(key string) Record { r.Key = []byte(key); return r }

func (r Record) stored() kafkatest.Record {
	out := kafkatest.Record{Partition: int32(r.Partition), Key: r.Key, Value: r.Value}
	if !r.Timestamp.IsZero() {
		out.Millis = r.Timestamp.UnixMilli()
	}
	return out
}

// Stored is a record of a topic, as [Kafka.Read] returns it.
type Stored struct {
	Partition int
	Offset    int64
	// Timestamp is in whole milliseconds.
	Timestamp time.Time
	// Key and Value are empty for null.
	Key   string
	Value string
}
