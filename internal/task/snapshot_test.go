package task

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// discarded is a coordinator, and a snapshot of which nothing is kept.
type discarded struct{ ctx context.Context }

func (d discarded) Begin(*exchange.Barrier) (Snapshot, error) { return d, nil }
func (discarded) Decline(*exchange.Barrier, error)            {}
func (discarded) Finished()                                   {}
func (d discarded) Context() context.Context                  { return d.ctx }
func (discarded) Done(error, Times)                           {}

func (d discarded) Writer(_ int, later func(func(context.Context) error)) (snapshot.Writer, error) {
	return laterWriter{later: later}, nil
}

// laterWriter passes on what is to be done later; its parts go nowhere.
type laterWriter struct {
	snapshot.Writer
	later func(func(context.Context) error)
}

func (w laterWriter) Later(f func(context.Context) error)           { w.later(f) }
func (laterWriter) Part(snapshot.Part) (snapshot.PartWriter, error) { return noPart{}, nil }

type noPart struct{}

func (noPart) Append(int, []byte) error { return nil }
func (noPart) Close() error             { return nil }

// holder is an operator that holds something until its snapshot has been written.
type holder struct {
	recorder
	let error
}

func (h *holder) Snapshot(w snapshot.Writer) error {
	w.Later(func(ctx context.Context) error {
		h.let = context.Cause(ctx)
		return h.let
	})
	return nil
}

type panicker struct{ recorder }

func (*panicker) Snapshot(snapshot.Writer) error { panic("kaboom in a snapshot") }

// What an operator holds for the background is let go if one behind it panics in its snapshot.
func TestPanicInSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inbox := exchange.NewInbox(1, 4)
		h := &holder{}
		nodes := []Node{
			{Operator: h, Runtime: runtimeOf("op0"), Outputs: []Output{{Copy: copyInts, Node: 1}}},
			{Operator: &panicker{}, Runtime: runtimeOf("op1")},
		}
		task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
			return Config{Nodes: nodes, Inbox: inbox, Logical: []int{0}, Checkpoints: discarded{ctx: t.Context()}}
		})
		newUpstream(inbox.Channel(0), nil).send(t, ints(1), exchange.Message{Kind: exchange.BarrierKind, Barrier: &exchange.Barrier{Checkpoint: 1}})
		if err := task.Run(); err == nil || !strings.Contains(err.Error(), "kaboom in a snapshot") {
			t.Errorf("got %v", err)
		}
		if h.let == nil || !strings.Contains(h.let.Error(), "panicked") {
			t.Errorf("what was held was let go with %v", h.let)
		}
	})
}
