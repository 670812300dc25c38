package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// commitInterval is how often positions are committed to the group.
const commitInterval = 5 * time.Second

// commitLoop commits positions now and then. They are there to be looked at: a failure is
// logged and that is all. It commits nothing when the reader closes, which does not know
// whether the job has worked through what it was handed.
func (f *fetcher) commitLoop(ctx context.Context) {
	committed := kadm.Offsets{}
	for wait(ctx, commitInterval) {
		f.commit(ctx, &committed)
	}
}

// commit commits the positions that have moved since the last time.
func (f *fetcher) commit(ctx context.Context, committed *kadm.Offsets) {
	moved := kadm.Offsets{}
	for _, s := range f.snapshot() {
		at := s.next.Load()
		if before, ok := committed.Lookup(s.Topic, s.Partition); !ok || before.At != at {
			moved.Add(kadm.Offset{Topic: s.Topic, Partition: s.Partition, At: at, LeaderEpoch: -1})
		}
	}
	if len(moved) == 0 {
		return
	}
	err := kadm.NewClient(f.client).CommitAllOffsets(ctx, f.cfg.group, moved)
	if err == nil {
		moved.Each(committed.Add)
		for _, s := range f.snapshot() {
			if o, ok := moved.Lookup(s.Topic, s.Partition); ok {
				s.committed.Store(o.At)
			}
		}
		return
	}
	if ctx.Err() != context.Canceled && f.seldom.allow("commit") {
		f.log.Warn("committing offsets failed and is tried again", "group", f.cfg.group, "error", err)
	}
}
