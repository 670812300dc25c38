package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Start says from which offsets the partitions of a source are read. Make one
// with Earliest, Latest, Timestamp, GroupOffsets or Offsets.
type Start struct {
	kind     startKind
	millis   int64
	zeroTime bool
	group    string
	fallback *Start
	offsets  map[string]map[int32]int64
}

type startKind uint8

const (
	startEarliest startKind = iota
	startLatest
	startTimestamp
	startGroup
	startOffsets
)

// Earliest starts at the first record that the topic still holds.
func Earliest() Start { return Start{kind: startEarliest} }

// Latest starts behind the last record that is there when the job starts, with
// ReadCommitted at the last stable offset.
func Latest() Start { return Start{kind: startLatest} }

// Timestamp starts at the first record, in offset order, whose record timestamp
// is at or after t, and at the end of a partition that has none.
func Timestamp(t time.Time) Start {
	return Start{kind: startTimestamp, millis: t.UnixMilli(), zeroTime: t.IsZero()}
}

// GroupOffsets starts at the offsets that a consumer group committed, and at
// fallback for partitions without one. A committed offset that is not in the
// log any more fails the start of the job.
//
// Offsets that another job committed by GroupID are ahead of its results: what that
// job had read and not finished when it failed or was cancelled is skipped.
func GroupOffsets(group string, fallback Start) Start {
	return Start{kind: startGroup, group: group, fallback: &fallback}
}

// Offsets starts at the given offsets, by topic and partition. Partitions that
// are not named start at their earliest offset. An offset outside of its
// partition's log fails the start of the job.
func Offsets(offsets map[string]map[int32]int64) Start {
	s := Start{kind: startOffsets, offsets: map[string]map[int32]int64{}}
	for topic, ps := range offsets {
		s.offsets[topic] = maps.Clone(ps)
	}
	return s
}

// String returns it in words, such as "the earliest offsets".
func (s Start) String() string {
	switch s.kind {
	case startEarliest:
		return "the earliest offsets"
	case startLatest:
		return "the latest offsets"
	case startTimestamp:
		return "timestamp " + time.UnixMilli(s.millis).UTC().Format(time.RFC3339Nano)
	case startGroup:
		return fmt.Sprintf("offsets of group %s, else %s", s.group, *s.fallback)
	default:
		return "given offsets"
	}
}

// later returns where to start partitions that appeared after the first look.
func (s Start) later(parts []partition) Start {
	if s.kind != startOffsets {
		return Earliest()
	}
	named := Start{kind: startOffsets, offsets: map[string]map[int32]int64{}}
	for _, p := range parts {
		if offset, ok := s.offsets[p.topic][p.num]; ok {
			if named.offsets[p.topic] == nil {
				named.offsets[p.topic] = map[int32]int64{}
			}
			named.offsets[p.topic][p.num] = offset
		}
	}
	return named
}

func (s Start) validate(p *problems, c *sourceConfig) {
	switch s.kind {
	case startTimestamp:
		if s.zeroTime || s.millis < 0 {
			p.add("StartFrom", "Timestamp: the time is before 1970; Kafka knows no such timestamps")
		}
	case startGroup:
		if s.group == "" {
			p.add("StartFrom", "GroupOffsets: the group is empty")
		}
		if s.fallback.kind == startGroup {
			p.add("StartFrom", "GroupOffsets: the fallback is another group; want Earliest, Latest, Timestamp or Offsets")
			return
		}
		s.fallback.validate(p, c)
	case startOffsets:
		s.validateOffsets(p, c)
	}
}

func (s Start) validateOffsets(p *problems, c *sourceConfig) {
	for _, topic := range slices.Sorted(maps.Keys(s.offsets)) {
		if c.pattern == "" && !slices.Contains(c.topics, topic) {
			p.add("StartFrom", "Offsets: topic %q is not one of Topics", topic)
		}
		for _, n := range slices.Sorted(maps.Keys(s.offsets[topic])) {
			if offset := s.offsets[topic][n]; n < 0 || offset < 0 {
				p.add("StartFrom", "Offsets: %s at %d: partition and offset must not be negative", partition{topic, n}, offset)
			}
		}
	}
}

// resolve returns the start offset of each of the partitions.
func (s Start) resolve(ctx context.Context, e *enumerator, parts []partition) (map[partition]int64, error) {
	switch s.kind {
	case startLatest:
		return e.list(ctx, parts, atEnd, e.cfg.isolation())
	case startTimestamp:
		return e.listTimestamp(ctx, parts, s.millis)
	case startGroup:
		given, err := committedOffsets(ctx, e, s.group)
		if err != nil {
			return nil, err
		}
		return resolveGiven(ctx, e, parts, given, *s.fallback)
	case startOffsets:
		given := map[partition]int64{}
		for topic, ps := range s.offsets {
			for n, offset := range ps {
				given[partition{topic, n}] = offset
			}
		}
		if err := checkNamed(e, parts, given); err != nil {
			return nil, err
		}
		return resolveGiven(ctx, e, parts, given, Earliest())
	default:
		return e.list(ctx, parts, atStart, 0)
	}
}

// checkNamed reports offsets given for partitions that do not exist.
func checkNamed(e *enumerator, parts []partition, given map[partition]int64) error {
	exists := make(map[partition]bool, len(parts))
	for _, p := range parts {
		exists[p] = true
	}
	for _, p := range slices.SortedFunc(maps.Keys(given), comparePartitions) {
		if !exists[p] {
			return e.errorf("StartFrom(Offsets) names %s, which does not exist on %s", p, e.cfg.client.addresses())
		}
	}
	return nil
}

// resolveGiven uses given offsets where there are any, after checking that the
// log has them, and rest for the other partitions.
func resolveGiven(ctx context.Context, e *enumerator, parts []partition, given map[partition]int64, rest Start) (map[partition]int64, error) {
	var named, others []partition
	for _, p := range parts {
		if _, ok := given[p]; ok {
			named = append(named, p)
		} else {
			others = append(others, p)
		}
	}
	starts := map[partition]int64{}
	if len(others) > 0 {
		var err error
		if starts, err = rest.resolve(ctx, e, others); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 {
		return starts, nil
	}
	low, err := e.list(ctx, named, atStart, 0)
	if err != nil {
		return nil, err
	}
	high, err := e.list(ctx, named, atEnd, 0)
	if err != nil {
		return nil, err
	}
	for _, p := range named {
		offset := given[p]
		if offset < low[p] || offset > high[p] {
			return nil, e.errorf("start offset %d of %s is not in its log, which has %d to %d on %s; "+
				"give an offset that it has, or start from Earliest", offset, p, low[p], high[p], e.cfg.client.addresses())
		}
		starts[p] = offset
	}
	return starts, nil
}

// committedOffsets returns what a consumer group has committed.
func committedOffsets(ctx context.Context, e *enumerator, group string) (map[partition]int64, error) {
	resp, err := kadm.NewClient(e.client).FetchOffsets(ctx, group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, e.errorf("reading the offsets of group %s from %s: %w", group, e.cfg.client.addresses(), e.cause(err))
	}
	given := map[partition]int64{}
	for topic, ps := range resp {
		for n, o := range ps {
			if o.Err != nil {
				return nil, e.errorf("reading the offset of group %s for %s: %w", group, partition{topic, n}, o.Err)
			}
			if o.At >= 0 {
				given[partition{topic, n}] = o.At
			}
		}
	}
	return given, nil
}
