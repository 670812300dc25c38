package exchange

import (
	"fmt"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/keyed"
)

type noObserver struct{}

func (noObserver) Blocked()   {}
func (noObserver) Unblocked() {}

// A keyed record goes to the owner of its key group, with its key and hash.
func TestHashSendsToTheOwner(t *testing.T) {
	const parallelism, maxParallelism, records = 3, 10, 500
	hasher, err := keyed.HasherFor[string]()
	if err != nil {
		t.Fatal(err)
	}
	out := NewOutbox(nil, noObserver{})
	var inboxes []*Inbox
	var channels []*Channel
	for range parallelism {
		in := NewInbox(1, records)
		out.Connect(in.Channel(0))
		inboxes, channels = append(inboxes, in), append(channels, in.Channel(0))
	}

	key := func(v int) string { return fmt.Sprint("user-", v) }
	w := Hash(key, hasher, maxParallelism)(out, channels, 0)
	b := connector.NewPool[int]().Get()
	for v := range records {
		b.Append(v, int64(v), 0)
	}
	if err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Broadcast(Message{Kind: EndOfData}); err != nil {
		t.Fatal(err)
	}

	seen := map[int]bool{}
	for subtask, in := range inboxes {
		for m := <-in.C(); m.Kind != EndOfData; m = <-in.C() {
			got := m.Payload.(*KeyedBatch[string, int])
			for i, v := range got.Values {
				if got.Keys[i] != key(v) || got.Hashes[i] != hasher(key(v)) {
					t.Errorf("record %d has key %q, hash %#x", v, got.Keys[i], got.Hashes[i])
				}
				group := keyed.KeyGroup(got.Hashes[i], maxParallelism)
				if owner := keyed.SubtaskOf(group, parallelism, maxParallelism); owner != subtask {
					t.Errorf("record %d of group %d went to %d, not to %d", v, group, subtask, owner)
				}
				seen[v] = true
			}
		}
	}
	if len(seen) != records {
		t.Errorf("%d of %d records arrived", len(seen), records)
	}
}
