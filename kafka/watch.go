package kafka

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// watchInterval is how often brokers are asked about quiet splits. Those that have
	// caught up are asked about ever more seldom, at last every maxWatchInterval: what
	// is appended to them comes without a question.
	watchInterval    = time.Second
	maxWatchInterval = time.Minute
	// endInterval is how old the end of another split may be: a slow job works for
	// long on what was fetched, and fetches nothing meanwhile.
	endInterval = 5 * time.Second
	// watchTimeout bounds one round of questions.
	watchTimeout = 5 * time.Second
	// unknownTopicGrace is how long a topic may be unknown before it counts as
	// deleted: metadata of brokers may lag.
	unknownTopicGrace = 30 * time.Second
	// stuckChecks is after how many checks without a record a split that is not
	// at its end is probed for a gap, maxProbes how many are per round.
	stuckChecks = 2
	maxProbes   = 16
)

// tail is what brokers said about the end of a quiet split.
type tail struct {
	// at is the split's position at the last check, checks how many in a row
	// found it there.
	at     int64
	checks int
	// since and asOf are the times of the first and the last answer that
	// showed the position to be the end; zero if the last answer did not.
	since, asOf time.Time
	// ask is when to ask next, unless answers are to be fresh.
	ask time.Time
	// unknownSince is when the topic became unknown, zero if it is known.
	unknownSince time.Time
}

// watchLoop finds out where splits end that fetching tells nothing of. The client
// does not tell about answers without records, so that it takes a question of our
// own to learn that a split has caught up, was deleted, or stands before offsets
// without records.
func (f *fetcher) watchLoop(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if due := f.dueSplits(); len(due) > 0 {
			round, cancel := context.WithTimeout(ctx, watchTimeout)
			f.watch(round, due)
			cancel()
		}
	}
}

// answers hears how brokers answer.
type answers fetcher

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (a *answers) OnBrokerE2E(_ kgo.BrokerMetadata, _ int16, e2e kgo.BrokerE2E) {
	if e2e.Err() != nil {
		a.doubtful.Store(true)
	}
}

// hear notes the ends that an answer tells, before the subtask takes it: one that is
// blocked does not. An answer may have waited in the client for long, and have old ones.
func (f *fetcher) hear(fetches kgo.Fetches) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if s := f.byPart[partition{p.Topic, p.Partition}]; s != nil && p.Err == nil {
			s.end.Store(max(s.end.Load(), f.visibleEnd(&p.FetchPartition)))
			s.heard = now
		}
	})
}

// dueSplits returns the splits to ask about: those that have not moved since the last
// call, and those of whose end nothing was heard for long.
func (f *fetcher) dueSplits() []*split {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, fresh := time.Now(), f.fresh.Load()
	doubtful := f.doubtful.Swap(false)
	var due []*split
	for _, s := range f.splits {
		if s.finished.Load() {
			continue
		}
		at := s.next.Load()
		quiet := at == s.tail.at && !s.paused.Load()
		if !s.paused.Load() && !quiet {
			s.tail = tail{at: at}
		}
		switch {
		case doubtful, quiet && (fresh || !now.Before(s.tail.ask)), !quiet && now.Sub(s.heard) >= endInterval:
			due = append(due, s)
			if quiet {
				s.tail.checks++
			}
		}
	}
	return due
}

// watch asks for the ends of splits.
func (f *fetcher) watch(ctx context.Context, due []*split) {
	parts := make([]partition, len(due))
	for i, s := range due {
		parts[i] = partition{s.Topic, s.Partition}
	}
	asked := time.Now()
	ends := listOffsets(ctx, f.client, parts, atEnd, 0)
	visible := ends
	if f.cfg.readCommitted {
		visible = listOffsets(ctx, f.client, parts, atEnd, f.cfg.isolation())
	}
	if ctx.Err() == context.Canceled {
		return
	}
	var silent trouble
	probes := 0
	for i, s := range due {
		end, seen := ends[parts[i]], visible[parts[i]]
		if err := cmp.Or(end.err, seen.err); err != nil {
			silent.add(parts[i], err)
			f.noteError(s, err)
			continue
		}
		stuck := f.note(s, end.offset, seen.offset, asked)
		if stuck && f.starving.Load() && probes < maxProbes {
			probes++
			f.findGap(ctx, s, seen.offset)
		}
	}
	silent.report(f, "where partitions end is unknown; asking again")
}

// note records an answer and reports whether the split stands still before its
// visible end.
func (f *fetcher) note(s *split, end, visible int64, asked time.Time) (stuck bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, t := time.Now(), &s.tail
	t.unknownSince = time.Time{}
	s.end.Store(visible)
	s.heard = asked
	switch {
	case s.paused.Load(): // no time goes by for it
		return false
	case t.at != end:
		t.since, t.asOf = time.Time{}, time.Time{}
	case t.since.IsZero():
		t.since, t.asOf = now, now
	default:
		t.asOf = asked
		t.ask = asked.Add(min(asked.Sub(t.since)/8, maxWatchInterval))
	}
	return t.at < visible && t.checks >= stuckChecks
}

// noteError forgets the end, which may be another by now, and fails the reading if
// the error says for long that there is no such topic.
func (f *fetcher) noteError(s *split, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.end.Store(-1)
	s.heard, s.tail.ask = time.Time{}, time.Time{}
	switch now, t := time.Now(), &s.tail; {
	case !isUnknownTopic(err):
		t.unknownSince = time.Time{}
	case t.unknownSince.IsZero():
		t.unknownSince = now
	case now.Sub(t.unknownSince) >= unknownTopicGrace && f.err == nil:
		f.err = fmt.Errorf("kafka source: %s was deleted while it was read, at offset %d: %w; create it, or remove it from Topics",
			s.id, t.at, err)
		f.signal()
	}
}

// findGap looks for records between the position of a split and its visible
// end, and tells the subtask if there are none. That is so where a transaction
// was aborted whose marker is not visible yet, and where compaction removed the
// last records.
func (f *fetcher) findGap(ctx context.Context, s *split, end int64) {
	from := s.next.Load()
	to, err := f.probe(ctx, partition{s.Topic, s.Partition}, from, end)
	if err != nil {
		var failed trouble
		failed.add(partition{s.Topic, s.Partition}, err)
		failed.report(f, "looking for records failed; trying again")
		return
	}
	if to > from {
		f.mu.Lock()
		f.gaps = append(f.gaps, gap{split: s, from: from, to: to})
		f.mu.Unlock()
		f.signal()
	}
}

// probe returns the offset, at most end, up to which a partition has no records
// that a reader gets to see.
func (f *fetcher) probe(ctx context.Context, p partition, from, end int64) (int64, error) {
	opts := kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Topic: p.topic, Partition: p.num}
	if f.cfg.readCommitted {
		opts.IsolationLevel = kgo.ReadCommitted()
	}
	at := from
	for at < end {
		answer, err := f.fetchOnce(ctx, p, at)
		if err != nil {
			return from, err
		}
		opts.Offset = at
		found, next := kgo.ProcessFetchPartition(opts, answer, kgo.DefaultDecompressor(), nil)
		switch {
		case found.Err != nil:
			return from, found.Err
		case len(found.Records) > 0:
			return min(found.Records[0].Offset, end), nil
		case len(answer.RecordBatches) == 0:
			// The log goes on without records, up to where it was looked at.
			return max(at, min(end, f.visibleEnd(&found))), nil
		case next == at:
			return at, nil // the batch is cut off
		}
		at = next
	}
	return end, nil
}

// fetchOnce fetches a partition beside the client's own fetching.
func (f *fetcher) fetchOnce(ctx context.Context, p partition, offset int64) (*kmsg.FetchResponseTopicPartition, error) {
	topicID, leader, err := f.leader(ctx, p)
	if err != nil {
		return nil, err
	}
	part := kmsg.NewFetchRequestTopicPartition()
	part.Partition = p.num
	part.FetchOffset = offset
	part.PartitionMaxBytes = f.cfg.fetchMaxPartitionBytes
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = p.topic, topicID
	topic.Partitions = append(topic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes = f.cfg.fetchMaxPartitionBytes
	req.IsolationLevel = f.cfg.isolation()
	req.Topics = append(req.Topics, topic)

	answer, err := f.client.Broker(int(leader)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errNoAnswer
	}
	return &resp.Topics[0].Partitions[0], nil
}

func (f *fetcher) leader(ctx context.Context, p partition) (topicID [16]byte, leader int32, err error) {
	resp, err := metadataRequest(p.topic).RequestWith(ctx, f.client)
	if err != nil {
		return topicID, -1, err
	}
	for _, t := range resp.Topics {
		for _, part := range t.Partitions {
			if part.Partition == p.num && part.Leader >= 0 {
				return t.TopicID, part.Leader, kerr.ErrorForCode(part.ErrorCode)
			}
		}
	}
	return topicID, -1, kerr.LeaderNotAvailable
}
