package kafka

import (
	"github.com/twmb/franz-go/pkg/kgo"
)

// This file is the subtask's side of the fetcher: from answers of brokers to
// the next split to serve.

// receive takes over the next answer if there is one, and what watchLoop found.
// It reports whether there was anything.
func (f *fetcher) receive() bool {
	f.ignoreFinished()
	found := f.applyGaps()
	select {
	case fetches := <-f.fetches:
		f.space <- struct{}{}
		f.distribute(fetches)
		return true
	default:
		return found
	}
}

// ignoreFinished stops fetching what is finished. The client keeps a pause until
// it is resumed, and unlike a removal it does not drop what was fetched of other
// partitions.
func (f *fetcher) ignoreFinished() {
	if len(f.toIgnore) > 0 {
		f.client.PauseFetchPartitions(f.toIgnore)
		clear(f.toIgnore)
	}
}

// applyGaps moves splits over offsets that hold no records.
func (f *fetcher) applyGaps() bool {
	f.mu.Lock()
	gaps := f.gaps
	f.gaps = nil
	f.mu.Unlock()
	for _, g := range gaps {
		s := g.split
		if s.finished.Load() || s.next.Load() != g.from {
			continue // records came after all
		}
		s.next.Store(g.to)
		if s.reached(g.to) {
			f.ended = append(f.ended, s)
		}
	}
	return len(gaps) > 0
}

// distribute gives the records of an answer to their splits.
func (f *fetcher) distribute(fetches kgo.Fetches) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range fetches {
		for _, t := range fetches[i].Topics {
			for j := range t.Partitions {
				f.give(f.byPart[partition{t.Topic, t.Partitions[j].Partition}], &t.Partitions[j])
			}
		}
	}
}

func (f *fetcher) give(s *split, fp *kgo.FetchPartition) {
	if s == nil || s.finished.Load() {
		return
	}
	if len(fp.Records) > 0 {
		s.pending = append(s.pending, fp.Records)
		f.enqueue(s)
	}
}

// visibleEnd is where a partition ends for this reader.
func (f *fetcher) visibleEnd(fp *kgo.FetchPartition) int64 {
	if f.cfg.readCommitted {
		return fp.LastStableOffset
	}
	return fp.HighWatermark
}

// enqueue lines a split up for nextReady, which passes over the paused.
func (f *fetcher) enqueue(s *split) {
	if !s.queued && s.peek() != nil {
		s.queued = true
		f.ready = append(f.ready, s)
	}
}

// nextReady returns the split whose turn it is, nil if none has records. Each
// gets a turn before any gets a second one.
func (f *fetcher) nextReady() *split {
	for len(f.ready) > 0 {
		if f.turn >= len(f.ready) {
			f.turn = 0
		}
		s := f.ready[f.turn]
		if !s.finished.Load() && !s.paused.Load() && s.peek() != nil {
			f.turn++
			return s
		}
		last := len(f.ready) - 1
		f.ready[f.turn] = f.ready[last]
		f.ready[last] = nil
		f.ready = f.ready[:last]
		s.queued = false
	}
	return nil
}

// finish marks a split as read to its end.
func (f *fetcher) finish(s *split) {
	s.finished.Store(true)
	s.pending, s.pos = nil, 0
	f.open--
	f.toIgnore[s.Topic] = append(f.toIgnore[s.Topic], s.Partition)
}

// setPaused pauses or resumes splits. Those it does not know or that are
// finished are skipped. What was fetched of a paused split stays pending.
func (f *fetcher) setPaused(ids []string, paused bool) {
	parts := map[string][]int32{}
	for _, id := range ids {
		s := f.byID[id]
		if s == nil || s.finished.Load() || s.paused.Load() == paused {
			continue
		}
		s.paused.Store(paused)
		parts[s.Topic] = append(parts[s.Topic], s.Partition)
		f.enqueue(s)
	}
	switch {
	case len(parts) == 0:
	case paused:
		f.client.PauseFetchPartitions(parts)
	default:
		f.client.ResumeFetchPartitions(parts)
		f.signal()
	}
}

// reached reports whether everything before Stop is read at an offset.
func (s *split) reached(offset int64) bool { return s.Bounded && offset >= s.Stop }

// peek returns the next record, nil if there is none at hand.
func (s *split) peek() *kgo.Record {
	for len(s.pending) > 0 {
		if s.pos < len(s.pending[0]) {
			return s.pending[0][s.pos]
		}
		s.pending[0] = nil
		s.pending, s.pos = s.pending[1:], 0
	}
	return nil
}

// drop removes the record that peek returned and gives its memory back.
func (s *split) drop() {
	rec := s.pending[0][s.pos]
	s.pending[0][s.pos] = nil
	s.pos++
	rec.Recycle()
}
