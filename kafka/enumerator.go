package kafka

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/lowwater/lowwater/connector"
)

// enumerator finds the partitions of a source.
type enumerator struct {
	*cluster
	cfg *sourceConfig
	log *slog.Logger
	// known are the partitions that Discover has returned, in this run or in the one
	// that is restored, nil before the first time.
	known map[partition]bool
}

var (
	_ connector.Enumerator = (*enumerator)(nil)
	_ connector.Discoverer = (*enumerator)(nil)
)

func newEnumerator(cfg *sourceConfig, rt connector.SourceRuntime) (connector.Enumerator, error) {
	log := rt.Logger.With("operator", rt.Operator)
	c, err := connect("kafka source", "READ and DESCRIBE", &cfg.client, log, nil, nil)
	if err != nil {
		return nil, err
	}
	return &enumerator{cluster: c, cfg: cfg, log: log}, nil
}

func (e *enumerator) Close() error {
	e.client.Close()
	return nil
}

func (e *enumerator) Owner(split connector.Split, parallelism int) int {
	s := split.(Split)
	return owner(partition{s.Topic, s.Partition}, parallelism)
}

// DiscoveryInterval is how often Discover should be called again, 0 for never.
func (e *enumerator) DiscoveryInterval() time.Duration { return e.cfg.discovery }

func (e *enumerator) Discover(ctx context.Context) ([]connector.Split, error) {
	if e.known != nil && e.cfg.bounded {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.client.startupTimeout)
	defer cancel()

	parts, err := e.partitions(ctx)
	if err != nil {
		return nil, err
	}
	parts = slices.DeleteFunc(parts, func(p partition) bool { return e.known[p] })
	start := e.cfg.start
	if e.known != nil {
		start = start.later(parts)
	}
	splits, err := e.splits(ctx, parts, start)
	if err != nil {
		return nil, err
	}
	if e.known == nil {
		e.known = map[partition]bool{}
	}
	for _, p := range parts {
		e.known[p] = true
	}
	return splits, nil
}

// partitions returns the partitions of the source's topics, in order.
func (e *enumerator) partitions(ctx context.Context) ([]partition, error) {
	resp, err := e.metadata(ctx, e.cfg.topics...)
	if err != nil {
		return nil, err
	}
	match, err := e.cfg.matcher()
	if err != nil {
		return nil, err
	}
	var parts []partition
	for _, t := range resp.Topics {
		if e.cfg.pattern != "" && (t.IsInternal || !match.MatchString(*t.Topic)) {
			continue
		}
		if err := e.topicError(*t.Topic, kerr.ErrorForCode(t.ErrorCode)); err != nil {
			return nil, err
		}
		for _, p := range t.Partitions {
			parts = append(parts, partition{*t.Topic, p.Partition})
		}
	}
	if len(parts) == 0 && e.known == nil {
		if e.cfg.discovery == 0 {
			return nil, e.errorf("no topic on %s matches %q; check TopicPattern, or set DiscoveryInterval to wait for one",
				e.cfg.client.addresses(), e.cfg.pattern)
		}
		e.log.Warn("no topic matches yet", "pattern", e.cfg.pattern, "interval", e.cfg.discovery)
	}
	slices.SortFunc(parts, comparePartitions)
	return parts, nil
}

// splits finds out where to read partitions.
func (e *enumerator) splits(ctx context.Context, parts []partition, start Start) ([]connector.Split, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	// The ends come first, so that a start at the end is not behind them.
	var stops map[partition]int64
	if e.cfg.bounded {
		var err error
		if stops, err = e.list(ctx, parts, atEnd, e.cfg.isolation()); err != nil {
			return nil, err
		}
	}
	starts, err := start.resolve(ctx, e, parts)
	if err != nil {
		return nil, err
	}
	splits := make([]connector.Split, 0, len(parts))
	for _, p := range parts {
		s := Split{Topic: p.topic, Partition: p.num, Start: starts[p]}
		if e.cfg.bounded {
			s.Stop, s.Bounded = max(stops[p], starts[p]), true
		}
		splits = append(splits, s)
	}
	return splits, nil
}

// list returns the offsets at a time, or atStart or atEnd. It retries what is
// wrong for a moment only, until ctx ends.
func (e *enumerator) list(ctx context.Context, parts []partition, millis int64, isolation int8) (map[partition]int64, error) {
	for {
		offsets := make(map[partition]int64, len(parts))
		answers := listOffsets(ctx, e.client, parts, millis, isolation)
		var failed error
		for _, p := range parts {
			a := answers[p]
			if a.err != nil {
				failed = e.errorf("listing offsets of %s on %s: %w", p, e.cfg.client.addresses(), e.cause(a.err))
				if !kerr.IsRetriable(a.err) {
					return nil, failed
				}
			}
			offsets[p] = a.offset
		}
		if failed == nil {
			return offsets, nil
		}
		if !wait(ctx, retryInterval) {
			return nil, failed
		}
	}
}

// listTimestamp returns the offsets of the first records at or after a time, of
// the end where there is none.
func (e *enumerator) listTimestamp(ctx context.Context, parts []partition, millis int64) (map[partition]int64, error) {
	offsets, err := e.list(ctx, parts, millis, e.cfg.isolation())
	if err != nil {
		return nil, err
	}
	late := slices.DeleteFunc(slices.Clone(parts), func(p partition) bool { return offsets[p] >= 0 })
	if len(late) == 0 {
		return offsets, nil
	}
	ends, err := e.list(ctx, late, atEnd, e.cfg.isolation())
	if err != nil {
		return nil, err
	}
	for p, end := range ends {
		offsets[p] = end
	}
	return offsets, nil
}
