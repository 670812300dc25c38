package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// unlocked are the addresses of storages without a lock.
func unlocked(t *testing.T) map[string]string {
	all := addresses(t)
	delete(all, "local")
	return all
}

func openAgain(t *testing.T, address string) *Store {
	t.Helper()
	s, err := Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantTakenOver(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrTakenOver) || !strings.Contains(err.Error(), ": process ") {
		t.Errorf("%s: got %v", what, err)
	}
}

// TestTakeOver: the run that comes last has the directory, at once. The one before
// publishes nothing more, and removes nothing.
func TestTakeOver(t *testing.T) {
	for name, address := range unlocked(t) {
		t.Run(name, func(t *testing.T) {
			before := openAgain(t, address)
			if _, err := take(before, 1, KindCheckpoint, ""); err != nil {
				t.Fatal(err)
			}
			pending := begin(t, before, 2)
			unseen, err := before.Begin(3, KindCheckpoint, "") // it has written nothing yet
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := before.Begin(9, KindCheckpoint, "")
			if err != nil {
				t.Fatal(err)
			}
			s := openAgain(t, address)
			latest, _, err := s.Latest(0)
			checkWhole(t, 1, KindCheckpoint)(latest, err)
			next, err := s.NextID()
			if next != 3 || err != nil {
				t.Fatalf("next number %d, %v", next, err)
			}
			if _, err := take(s, 3, KindCheckpoint, ""); err != nil {
				t.Fatal(err)
			}
			// The run before has the same number, and a higher one.
			for subtask := range 2 {
				if err := errors.Join(writeSegment(unseen, subtask), writeSegment(ahead, subtask)); err != nil {
					t.Fatal(err)
				}
			}
			for what, p := range map[string]*Pending{"seen": pending, "unseen": unseen, "ahead": ahead} {
				_, err := p.Complete(Manifest{Job: "test", Operators: []Operator{counting}})
				wantTakenOver(t, what, err)
			}
			_, err = before.Begin(4, KindCheckpoint, "")
			wantTakenOver(t, "begin", err)
			_, err = before.Begin(4, KindSavepoint, "")
			wantTakenOver(t, "savepoint", err)
			wantTakenOver(t, "retain", before.Retain(1))
			if err := before.Close(); err != nil {
				t.Error(err)
			}
			latest, _, err = s.Latest(0)
			checkWhole(t, 3, KindCheckpoint)(latest, err)
			if err := s.Retain(1); err != nil {
				t.Fatal(err)
			}
			if _, err := take(s, 4, KindCheckpoint, ""); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// begin begins a checkpoint and writes its segments.
func begin(t *testing.T, s *Store, id int64) *Pending {
	t.Helper()
	p, err := s.Begin(id, KindCheckpoint, "")
	if err != nil {
		t.Fatal(err)
	}
	for subtask := range 2 {
		if err := writeSegment(p, subtask); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestRestartsAtOnce: a run that was killed leaves nothing to wait for, and one claim with its
// record is there however many there were.
func TestRestartsAtOnce(t *testing.T) {
	for name, address := range unlocked(t) {
		t.Run(name, func(t *testing.T) {
			for id := range int64(5) {
				s := openAgain(t, address)
				if _, err := take(s, id, KindCheckpoint, ""); err != nil {
					t.Fatal(err)
				}
			}
			if got := listed(t, openTestStorage(t, address), ownerDir); len(got) != 2 || !strings.HasPrefix(got[0], "owner/5 ") || !strings.HasPrefix(got[1], "owner/5.start ") {
				t.Errorf("claims and records: %v", got)
			}
		})
	}
}

// TestComeTogether: of runs that come at the same time one has the directory.
func TestComeTogether(t *testing.T) {
	for name, address := range unlocked(t) {
		t.Run(name, func(t *testing.T) {
			stores := make([]*Store, 4)
			var group sync.WaitGroup
			for i := range stores {
				group.Go(func() {
					var err error
					if stores[i], err = Open(t.Context(), address); err != nil {
						wantTakenOver(t, "open", err)
					}
				})
			}
			group.Wait()
			owners := 0
			for i, s := range stores {
				if s == nil {
					continue
				}
				err := s.CheckOwner()
				if err == nil {
					owners++
					_, err = take(s, int64(i), KindCheckpoint, "")
				}
				if err != nil {
					wantTakenOver(t, "check", err)
				}
			}
			if owners != 1 {
				t.Errorf("%d of them have it", owners)
			}
		})
	}
}

// intruded is a storage where another run takes over at a chosen call.
type intruded struct {
	storage
	calls, at int
	intrude   func()
}

func (i *intruded) call() {
	if i.calls++; i.calls == i.at {
		i.intrude()
	}
}

func (i *intruded) list(dir string) ([]fileInfo, error) {
	i.call()
	defer i.call()
	return i.storage.list(dir)
}

func (i *intruded) publish(name string, data []byte) error {
	i.call()
	defer i.call()
	return i.storage.publish(name, data)
}

func (i *intruded) remove(names ...string) error {
	for _, name := range names {
		i.call()
		if err := i.storage.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (i *intruded) lock() (owner, error) { return takeOver(i) }

// TestTakenOverAtAnyTime has another run take over, go on from the latest checkpoint and
// complete one of its own, at every call of taking checkpoint 2 and removing checkpoint 1.
// A checkpoint of the first run that is complete is the one the other went on from, and what
// the other has written stays whole.
func TestTakenOverAtAnyTime(t *testing.T) {
	for at, over := 1, false; !over; at++ {
		backing := openMem(fmt.Sprint(t.Name(), rand.Uint64()), "")
		first := openOn(t, backing)
		if _, err := take(first, 1, KindCheckpoint, ""); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		var other *Store
		from, own := int64(0), int64(0)
		watched := &intruded{storage: backing}
		s := openOn(t, watched)
		watched.calls, watched.at = 0, at
		watched.intrude = func() {
			other = openOn(t, backing)
			c, _, err := other.Latest(0)
			if err != nil || c == nil {
				t.Fatal(c, err)
			}
			from = c.Manifest().ID
			if own, err = other.NextID(); err != nil {
				t.Fatal(err)
			}
			if _, err := take(other, own, KindCheckpoint, ""); err != nil {
				t.Fatal(err)
			}
		}
		_, err := take(s, 2, KindCheckpoint, "")
		completed := err == nil
		if completed {
			err = s.Retain(1)
		}
		if other == nil {
			over = true
			if err != nil {
				t.Error(err)
			}
			if at < 10 {
				t.Errorf("there are only %d calls", at)
			}
			continue
		}
		if err != nil && !errors.Is(err, ErrTakenOver) {
			t.Errorf("call %d: %v", at, err)
		}
		if completed && from != 2 {
			t.Errorf("call %d: checkpoint 2 is complete, and the other run has gone on from %d", at, from)
		}
		latest, skipped, err := other.Latest(0)
		for _, info := range skipped {
			if !errors.Is(info.Err, ErrUnfinished) {
				t.Errorf("call %d: skipped %v", at, info.Err)
			}
		}
		checkWhole(t, own, KindCheckpoint)(latest, err)
	}
}

// deaf is a storage that is sent a manifest, and whose next answer does not arrive.
type deaf struct {
	storage
	sent bool
}

func (d *deaf) publish(name string, data []byte) error {
	d.sent = strings.HasSuffix(name, manifestName)
	return d.storage.publish(name, data)
}

func (d *deaf) list(dir string) ([]fileInfo, error) {
	if d.sent {
		d.sent = false
		return nil, errUnreachable
	}
	return d.storage.list(dir)
}

func (d *deaf) lock() (owner, error) { return takeOver(d) }

// TestMayHaveBeenPublished: a checkpoint that counts as failed, because it is not known whether
// another run had come before it was published, stays, because such a run may go on from it.
func TestMayHaveBeenPublished(t *testing.T) {
	backing := openMem(fmt.Sprint(t.Name(), rand.Uint64()), "")
	s := openOn(t, &deaf{storage: backing})
	if _, err := take(s, 1, KindCheckpoint, ""); !errors.Is(err, errUnreachable) {
		t.Fatal(err)
	}
	latest, _, err := s.Latest(0)
	checkWhole(t, 1, KindCheckpoint)(latest, err)
	latest, _, err = openOn(t, backing).Latest(0)
	checkWhole(t, 1, KindCheckpoint)(latest, err)
}

func openOn(t *testing.T, s storage) *Store {
	t.Helper()
	store, err := openStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// unconditional is an object store that does not know conditional writes.
type unconditional struct{ storage }

func (u unconditional) publish(name string, data []byte) error { return writeFile(u, name, data) }

func (u unconditional) lock() (owner, error) { return takeOver(u) }

func TestUnconditionalStore(t *testing.T) {
	_, err := openStore(t.Context(), unconditional{openMem(t.Name(), "")})
	if err == nil || !strings.Contains(err.Error(), "mem://"+t.Name()+"/: the object store ignores conditional writes") {
		t.Errorf("got %v", err)
	}
}
