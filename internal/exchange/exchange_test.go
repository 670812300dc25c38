package exchange

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/keyed"
)

type observer struct{ blocked, unblocked int }

func (o *observer) Blocked()   { o.blocked++ }
func (o *observer) Unblocked() { o.unblocked++ }

// rig is one sender connected to a number of receivers, one channel each.
type rig struct {
	out      *Outbox
	done     chan struct{}
	observer observer
	inboxes  []*Inbox
	channels []*Channel
}

func newRig(receivers, credits int) *rig {
	r := &rig{done: make(chan struct{})}
	r.out = NewOutbox(r.done, &r.observer)
	for range receivers {
		in := NewInbox(1, credits)
		r.inboxes = append(r.inboxes, in)
		r.channels = append(r.channels, in.Channel(0))
		r.out.Connect(in.Channel(0))
	}
	return r
}

// drain takes what is in inbox i, without giving credits back.
func (r *rig) drain(i int) (got []Message) {
	for {
		select {
		case m := <-r.inboxes[i].C():
			got = append(got, m)
		default:
			return got
		}
	}
}

func batchOf(values ...int) *connector.Batch[int] {
	b := connector.NewPool[int]().Get()
	for _, v := range values {
		b.Append(v, int64(v), connector.Origin(v))
	}
	return b
}

func sequence(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

func values(t *testing.T, messages []Message) (all []int) {
	t.Helper()
	for _, m := range messages {
		if m.Kind != Records {
			continue
		}
		b := m.Payload.(*connector.Batch[int])
		for i, v := range b.Values {
			if b.Timestamps[i] != int64(v) || b.Origins[i] != connector.Origin(v) {
				t.Errorf("record %d has timestamp %d and origin %d", v, b.Timestamps[i], b.Origins[i])
			}
		}
		all = append(all, b.Values...)
	}
	return all
}

func TestWritersDistribute(t *testing.T) {
	tests := []struct {
		name    string
		factory WriterFactory
		subtask int
		want    [][]int
	}{
		{"rebalance", Rebalance[int](), 0, [][]int{{0, 3}, {1, 4}, {2, 5}}},
		{"rebalance starts at the sender's number", Rebalance[int](), 2, [][]int{{1, 4}, {2, 5}, {0, 3}}},
		{"broadcast", Broadcast[int](), 0, [][]int{sequence(6), sequence(6), sequence(6)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(3, 4)
			w := tt.factory(r.out, r.channels, tt.subtask)
			if err := w.Write(batchOf(sequence(6)...)); err != nil {
				t.Fatal(err)
			}
			if !w.Pending() {
				t.Error("a partial batch was not kept")
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if w.Pending() {
				t.Error("records are kept after a flush with credit")
			}
			for i := range r.inboxes {
				if got := values(t, r.drain(i)); !slices.Equal(got, tt.want[i]) {
					t.Errorf("receiver %d got %v, want %v", i, got, tt.want[i])
				}
			}
		})
	}
}

func TestForwardHandsOverLargeBatches(t *testing.T) {
	r := newRig(1, 4)
	w := Forward[int]()(r.out, r.channels, 0)
	large := batchOf(sequence(connector.BatchSize)...)
	if err := w.Write(large); err != nil {
		t.Fatal(err)
	}
	got := r.drain(0)
	if len(got) != 1 || got[0].Payload.(*connector.Batch[int]) != large {
		t.Fatalf("got %d messages, want the batch itself", len(got))
	}
}

func TestWritersSendFullBatches(t *testing.T) {
	for name, factory := range map[string]WriterFactory{
		"forward": Forward[int](), "rebalance": Rebalance[int](), "broadcast": Broadcast[int](),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(1, 100)
			w := factory(r.out, r.channels, 0)
			for i := range 300 {
				if err := w.Write(batchOf(i*7, i*7+1, i*7+2, i*7+3, i*7+4, i*7+5, i*7+6)); err != nil {
					t.Fatal(err)
				}
			}
			got := r.drain(0)
			for _, m := range got {
				if m.Payload.Len() != connector.BatchSize {
					t.Errorf("a batch of %d records was sent before it was full", m.Payload.Len())
				}
			}
			if err := w.Broadcast(Message{Kind: Watermark, Time: 9}); err != nil {
				t.Fatal(err)
			}
			rest := r.drain(0)
			if last := rest[len(rest)-1]; last.Kind != Watermark || last.Time != 9 {
				t.Errorf("the last message is %v, want the watermark behind all records", last)
			}
			if all := values(t, append(got, rest...)); !slices.Equal(all, sequence(2100)) {
				t.Errorf("got %d records out of order or lost", len(all))
			}
		})
	}
}

func TestHashFollowsKeyGroups(t *testing.T) {
	const parallelism, maxParallelism = 3, 128
	hasher, err := keyed.HasherFor[string]()
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(parallelism, 100)
	key := func(v int) string { return fmt.Sprintf("key-%d", v%50) }
	w := Hash(key, hasher, maxParallelism)(r.out, r.channels, 0)
	if err := w.Write(batchOf(sequence(1000)...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Broadcast(Message{Kind: Watermark, Time: 1}); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i := range r.inboxes {
		for _, m := range r.drain(i) {
			if m.Kind != Records {
				continue
			}
			b := m.Payload.(*KeyedBatch[string, int])
			for j, v := range b.Values {
				seen++
				h := hasher(key(v))
				if b.Keys[j] != key(v) || b.Hashes[j] != h {
					t.Fatalf("record %d travels with key %q and hash %x", v, b.Keys[j], b.Hashes[j])
				}
				if owner := keyed.SubtaskOf(keyed.KeyGroup(h, maxParallelism), parallelism, maxParallelism); owner != i {
					t.Fatalf("record %d went to subtask %d, its key group belongs to %d", v, i, owner)
				}
			}
		}
	}
	if seen != 1000 {
		t.Errorf("%d records arrived, want 1000", seen)
	}
}

func TestSendWithoutCreditBlocksUntilDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 2)
		w := Forward[int]()(r.out, r.channels, 0)
		signal := Message{Kind: Status}
		for range 2 {
			if err := w.Broadcast(signal); err != nil {
				t.Fatal(err)
			}
		}
		if r.out.Available() {
			t.Fatal("the outbox is available without a credit")
		}
		sent := make(chan error)
		go func() { sent <- w.Broadcast(signal) }()
		synctest.Wait()
		select {
		case <-sent:
			t.Fatal("a send without credit did not block")
		default:
		}
		m := <-r.inboxes[0].C()
		r.inboxes[0].Done(m.Channel)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if r.observer != (observer{1, 1}) {
			t.Errorf("the observer saw %+v", r.observer)
		}
		r.drain(0)
		if r.out.Available() {
			t.Error("taking messages without Done gave credit back")
		}
	})
}

func TestBlockedSendEndsWhenCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1, 1)
		w := Forward[int]()(r.out, r.channels, 0)
		if err := w.Broadcast(Message{Kind: Status}); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error)
		go func() { sent <- w.Broadcast(Message{Kind: Status}) }()
		synctest.Wait()
		close(r.done)
		if err := <-sent; !errors.Is(err, ErrCancelled) {
			t.Errorf("got %v, want ErrCancelled", err)
		}
	})
}

func TestFlushKeepsWhatHasNoCredit(t *testing.T) {
	r := newRig(2, 1)
	w := Rebalance[int]()(r.out, r.channels, 0)
	if err := w.Write(batchOf(0)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(batchOf(1, 2)); err != nil { // 1 to the second receiver, 2 to the first
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if !w.Pending() {
		t.Error("the record for the receiver without credit is gone")
	}
	if got := values(t, r.drain(1)); !slices.Equal(got, []int{1}) {
		t.Errorf("the receiver with credit got %v", got)
	}
	first := r.drain(0)
	r.inboxes[0].Done(first[0].Channel)
	select {
	case <-r.out.Wake():
	default:
		t.Error("a credit came back and the sender was not woken")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := values(t, r.drain(0)); !slices.Equal(got, []int{2}) {
		t.Errorf("after its credit came back the receiver got %v", got)
	}
}
