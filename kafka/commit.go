package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

const (
	// commitInterval is how often positions are committed to the group if there are no
	// checkpoints.
	commitInterval = 5 * time.Second
	// lastCommitTimeout bounds how long a reader that is closed goes on to commit the
	// last checkpoint's positions.
	lastCommitTimeout = 3 * time.Second
)

// committer makes positions visible as the offsets of a group. They are there to be looked
// at: a failure is logged and that is all.
type committer struct {
	// taken are the positions of checkpoints that are not completed yet, oldest first.
	// They belong to the subtask's goroutine.
	taken []takenPositions
	// completed holds the positions of the last completed checkpoint until they are
	// committed.
	completed chan kadm.Offsets
	// closing ends the commits of completed checkpoints, ctx one that takes too long.
	closing chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
}

type takenPositions struct {
	checkpoint int64
	offsets    kadm.Offsets
}

func newCommitter() committer {
	c := committer{completed: make(chan kadm.Offsets, 1), closing: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// commitLoop commits positions now and then. It commits nothing when the reader closes,
// which does not know whether the job has worked through what it was handed.
func (f *fetcher) commitLoop(ctx context.Context) {
	committed := kadm.Offsets{}
	for wait(ctx, commitInterval) {
		f.commit(ctx, f.positions(), committed)
	}
}

// commitCheckpoints commits the positions of completed checkpoints. The last one's are
// committed even if the reader is being closed.
func (f *fetcher) commitCheckpoints() {
	c, committed := &f.committer, kadm.Offsets{}
	for {
		select {
		case offsets := <-c.completed:
			f.commit(c.ctx, offsets, committed)
		case <-c.closing:
			select {
			case offsets := <-c.completed:
				f.commit(c.ctx, offsets, committed)
			default:
			}
			return
		}
	}
}

// close ends commitCheckpoints, soon.
func (c *committer) close() {
	close(c.closing)
	time.AfterFunc(lastCommitTimeout, c.cancel)
}

// SnapshotTaken implements connector.CheckpointListener.
func (f *fetcher) SnapshotTaken(checkpoint int64) {
	if f.cfg.group != "" {
		c := &f.committer
		c.taken = append(c.taken, takenPositions{checkpoint, f.positions()})
	}
}

// CheckpointCompleted implements connector.CheckpointListener.
func (f *fetcher) CheckpointCompleted(checkpoint int64) {
	c := &f.committer
	var offsets kadm.Offsets
	for len(c.taken) > 0 && c.taken[0].checkpoint <= checkpoint {
		offsets, c.taken = c.taken[0].offsets, c.taken[1:]
	}
	if offsets == nil {
		return
	}
	select {
	case <-c.completed: // superseded before it was committed
	default:
	}
	c.completed <- offsets
}

// positions returns how far each split has been passed on.
func (f *fetcher) positions() kadm.Offsets {
	offsets := kadm.Offsets{}
	for _, s := range f.snapshot() {
		offsets.Add(kadm.Offset{Topic: s.Topic, Partition: s.Partition, At: s.next.Load(), LeaderEpoch: -1})
	}
	return offsets
}

// commit commits the offsets that have moved since the last time.
func (f *fetcher) commit(ctx context.Context, offsets, committed kadm.Offsets) {
	moved := kadm.Offsets{}
	offsets.Each(func(o kadm.Offset) {
		if before, ok := committed.Lookup(o.Topic, o.Partition); !ok || before.At != o.At {
			moved.Add(o)
		}
	})
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
