package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/connector"
)

// This file is what a checkpoint keeps of a source: where each partition is read on,
// and which partitions were found.

var (
	_ connector.SplitCodec           = (*Source[int])(nil)
	_ connector.SplitSnapshotter     = (*reader[int])(nil)
	_ connector.CheckpointListener   = (*reader[int])(nil)
	_ connector.RestorableEnumerator = (*enumerator)(nil)
)

// splitJSON is how a split is stored.
type splitJSON struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// Offset is that of the next record to read.
	Offset int64 `json:"offset"`
	// Stop is left out if the split is not bounded.
	Stop *int64 `json:"stop,omitempty"`
}

// EncodeSplit implements connector.SplitCodec.
func (s *Source[T]) EncodeSplit(split connector.Split) ([]byte, error) {
	ks, ok := split.(Split)
	if !ok {
		return nil, fmt.Errorf("kafka source: split %q is a %T, not a kafka.Split", split.ID(), split)
	}
	stored := splitJSON{Topic: ks.Topic, Partition: ks.Partition, Offset: ks.Start}
	if ks.Bounded {
		stored.Stop = &ks.Stop
	}
	return json.Marshal(stored)
}

// DecodeSplit implements connector.SplitCodec. A split that does not fit the source's
// options is an error: read from a topic that was taken out of them, or bounded where
// the source is not.
func (s *Source[T]) DecodeSplit(data []byte) (connector.Split, error) {
	var stored splitJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	split := Split{Topic: stored.Topic, Partition: stored.Partition, Start: stored.Offset}
	if stored.Stop != nil {
		split.Stop, split.Bounded = *stored.Stop, true
	}
	if split.Topic == "" || split.Partition < 0 || split.Start < 0 {
		return nil, errors.New("kafka source: want a topic, a partition and an offset that are not negative")
	}
	if reads, err := s.cfg.reads(split.Topic); err != nil || !reads {
		return nil, errors.Join(err, fmt.Errorf("kafka source: the checkpoint has read topic %q up to offset %d of partition %d, "+
			"but the source now reads %s: add the topic, or begin anew by giving the source another UID",
			split.Topic, split.Start, split.Partition, s.cfg.subject()))
	}
	if split.Bounded != s.cfg.bounded {
		return nil, fmt.Errorf("kafka source: %s comes from a source with the option Bounded %s, which now is %s: "+
			"leave it as it was, or begin anew by giving the source another UID", split, onOff(split.Bounded), onOff(s.cfg.bounded))
	}
	return split, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// reads reports whether a topic is one of the source's.
func (c *sourceConfig) reads(topic string) (bool, error) {
	if c.pattern == "" {
		return slices.Contains(c.topics, topic), nil
	}
	match, err := c.matcher()
	return err == nil && match.MatchString(topic), err
}

// SnapshotSplits implements connector.SplitSnapshotter. Splits that are finished are left
// out.
func (r *reader[T]) SnapshotSplits() ([]connector.Split, error) {
	var splits []connector.Split
	for _, s := range r.snapshot() {
		if !s.finished.Load() {
			at := s.Split
			at.Start = s.next.Load()
			splits = append(splits, at)
		}
	}
	return splits, nil
}

// enumeratorJSON is how what Discover has found is stored.
type enumeratorJSON struct {
	// Partitions are nil before the first Discover.
	Partitions map[string][]int32 `json:"partitions"`
}

// SnapshotEnumerator implements connector.RestorableEnumerator.
func (e *enumerator) SnapshotEnumerator() ([]byte, error) {
	var stored enumeratorJSON
	if e.known != nil {
		stored.Partitions = map[string][]int32{}
	}
	for p := range e.known {
		stored.Partitions[p.topic] = append(stored.Partitions[p.topic], p.num)
	}
	for _, nums := range stored.Partitions {
		slices.Sort(nums)
	}
	return json.Marshal(stored)
}

// RestoreEnumerator implements connector.RestorableEnumerator. A restored source reads
// partitions that are new since from their earliest offset, or from what the option
// StartFrom(Offsets) gives for them; a bounded one does not read them.
func (e *enumerator) RestoreEnumerator(data []byte) error {
	var stored enumeratorJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return e.errorf("the partitions in the checkpoint are unreadable: %w", err)
	}
	if stored.Partitions == nil {
		return nil
	}
	e.known = map[partition]bool{}
	for topic, nums := range stored.Partitions {
		for _, num := range nums {
			e.known[partition{topic, num}] = true
		}
	}
	return nil
}
