package windowed

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/lowwater/lowwater/internal/keyed"
)

// spilledGeneral is what the general operator has with a budget for memory: all windows of a
// key, with the key's own state, are in memory or on disk. They come back when a record of
// the key arrives or one of its timers fires. Timers stay in memory.
//
//	value on disk   what follows the key in an entry of a snapshot
type spilledGeneral[K comparable, T, A any] struct {
	o      *general[K, T, A]
	keys   *keyed.SpillTable[K, *keyWindows[A]]
	decode func(data []byte, acc *A) ([]byte, error)
	// states writes the states of triggers and functions, and told is what the fingerprints
	// mean that it has used. What is on disk is read as what was restored is.
	states *stateWriter
	told   []toldKind
}

// spills implements Spills.
func (o *general[K, T, A]) spills() bool { return true }

// openSpilling prepares for a budget, if there is one.
func (o *general[K, T, A]) openSpilling() error {
	if o.rt.StateMemory == 0 {
		return nil
	}
	s := &spilledGeneral[K, T, A]{o: o, states: newStateWriter(0)}
	o.restored = newRestoredStates()
	var err error
	if s.decode, err = o.storage.contents.decoder(o.storage.contents.schema()); err != nil {
		return err
	}
	s.keys, err = keyed.NewSpillTable(o.storage.keys, "windows", o.stateBudget(), keyed.Spillable[K, *keyWindows[A]]{
		Append: s.encode, Decode: s.parse, Outside: s.outside,
	})
	if err != nil {
		return err
	}
	o.spilled, o.keys = s, s.keys.Table()
	return nil
}

// encode appends what there is of a key.
func (s *spilledGeneral[K, T, A]) encode(dst []byte, k **keyWindows[A]) ([]byte, error) {
	dst, err := s.o.storage.appendWindows(dst, *k, s.states)
	for _, t := range s.states.untold {
		s.o.restored.kinds[t.fingerprint] = t.kind
	}
	s.told = append(s.told, s.states.untold...)
	s.states.untold = s.states.untold[:0]
	return dst, err
}

// parse is the opposite of encode.
func (s *spilledGeneral[K, T, A]) parse(data []byte, k **keyWindows[A]) (err error) {
	*k, err = s.o.restored.parseWindows[A](data, s.decode)
	return err
}

func (s *spilledGeneral[K, T, A]) outside(k **keyWindows[A], encoded int) int {
	n := int(unsafe.Sizeof(**k)) + encoded
	for _, w := range (*k).windows {
		n += int(unsafe.Sizeof(w)+unsafe.Sizeof(*w)) + s.o.storage.contents.memory(&w.acc)
	}
	return n
}

// eachOnDisk calls visit for the windows that are on disk.
func (s *spilledGeneral[K, T, A]) eachOnDisk(visit func(*windowState[A])) error {
	return s.keys.EachOnDisk(func(value []byte) error {
		var k *keyWindows[A]
		if err := s.parse(value, &k); err != nil {
			return err
		}
		for _, w := range k.windows {
			visit(w)
		}
		return nil
	})
}

// keyEntry adds the entry of a snapshot for a key that is on disk.
func keyEntry(c keyed.DiskCell, add func(entry []byte) error) error {
	return add(slices.Concat(c.Key, c.Value))
}

// snapshot adds what is on disk, to the part with the windows if the snapshot stands alone, and
// to that with the states what their fingerprints mean.
func (s *spilledGeneral[K, T, A]) snapshot(to *keyed.Snapshot, windows, states keyed.PartNumber) error {
	told := s.told
	to.Add(func(to *keyed.Encoder) (more bool, err error) {
		for _, t := range told {
			t.write(to, states)
		}
		return false, nil
	})
	return s.keys.SnapshotDisk(to, s.o.groups(), windows, keyEntry)
}

// upsert returns what there is of a key, nil if it is new.
func (o *general[K, T, A]) upsert(hash uint64, key K) (**keyWindows[A], error) {
	if o.spilled != nil {
		return o.spilled.keys.Upsert(hash, key)
	}
	k, _ := o.keys.Upsert(hash, key)
	return k, nil
}

// remove forgets a key.
func (o *general[K, T, A]) remove(hash uint64, key K) error {
	if o.spilled != nil {
		return o.spilled.keys.Delete(hash, key)
	}
	o.keys.Delete(hash, key)
	return nil
}

// settle keeps to the budget, if there is one.
func (o *general[K, T, A]) settle() error {
	if o.spilled == nil {
		return nil
	}
	return o.spilled.keys.Settle()
}

// eachWindow calls visit for all windows of all keys.
func (o *general[K, T, A]) eachWindow(visit func(*windowState[A])) error {
	for e := range o.keys.All() {
		for _, w := range e.Value.windows {
			visit(w)
		}
	}
	if o.spilled == nil {
		return nil
	}
	return o.spilled.eachOnDisk(visit)
}

// Close implements operator.Operator.
func (o *general[K, T, A]) Close() error {
	err := o.core.Close()
	if o.spilled != nil {
		err = errors.Join(err, o.spilled.keys.Close())
	}
	return err
}
