package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const (
	// commitInterval is how often positions are committed to the group.
	commitInterval = 5 * time.Second
	// lastCommitTimeout bounds the commit when the reader closes.
	lastCommitTimeout = 2 * time.Second
)

// commitLoop commits positions now and then, and when the reader closes. They are there
// to be looked at: a failure is logged and that is all.
func (f *fetcher) commitLoop(ctx context.Context) {
	committed := kadm.Offsets{}
	for wait(ctx, commitInterval) {
		f.commit(ctx, &committed)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCommitTimeout)
	defer cancel()
	f.commit(last, &committed)
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
		return
	}
	if ctx.Err() != context.Canceled && f.seldom.allow("commit") {
		f.log.Warn("committing offsets failed and is tried again", "group", f.cfg.group, "err", err)
	}
}
