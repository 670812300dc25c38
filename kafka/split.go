package kafka

import (
	"fmt"
	"strconv"

	"github.com/lowwater/lowwater/connector"
)

// Split is one partition of a topic and the offsets of it to read.
type Split struct {
	Topic     string
	Partition int32
	// Start is the offset of the first record to read.
	Start int64
	// Stop is the offset before which reading ends if the split is Bounded.
	// Others are read on for ever.
	Stop    int64
	Bounded bool
}

var _ connector.PartitionSplit = Split{}

// ID returns topic and partition as Flink writes them, such as "orders-2".
func (s Split) ID() string { return partition{s.Topic, s.Partition}.String() }

// TopicPartition implements connector.PartitionSplit.
func (s Split) TopicPartition() (topic string, partition int32) { return s.Topic, s.Partition }

// String returns the partition and its offsets.
func (s Split) String() string {
	stop := "no stop"
	if s.Bounded {
		stop = "stop " + strconv.FormatInt(s.Stop, 10)
	}
	return fmt.Sprintf("%s (start %d, %s)", s.ID(), s.Start, stop)
}

// partition names a partition of a topic.
type partition struct {
	topic string
	num   int32
}

func (p partition) String() string { return p.topic + "-" + strconv.Itoa(int(p.num)) }

// owner returns the subtask that reads a partition, as Flink's Kafka source
// assigns them (spec watermarks 5.15): the partitions of a topic go round the
// subtasks from one that depends on the topic's name.
func owner(p partition, parallelism int) int {
	first := (javaHash(p.topic) * 31 & 0x7fffffff) % int32(parallelism)
	return (int(first) + int(p.num)) % parallelism
}

// javaHash is Java's String.hashCode. Topic names are ASCII, so that their
// bytes are the UTF-16 units that Java hashes.
func javaHash(topic string) int32 {
	var h int32
	for i := range len(topic) {
		h = 31*h + int32(topic[i])
	}
	return h
}
