package keyed

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// prefetch brings what a batch will use from disk into memory together, before it is used
// key by key. It changes no result: what it leaves out comes when it is looked up.
type prefetch struct {
	// room is how many bytes may still be brought in for the batch.
	room int
	// keys holds the keys on disk one after the other.
	keys   []byte
	wanted []wantedCell
}

// wantedCell is a cell that may be on disk.
type wantedCell struct {
	// record is the number of a record of the batch that has the key.
	record int
	// end is where the key on disk ends in keys, key is that key; it is set when keys does
	// not grow any more.
	end int
	key []byte
}

// prefetchPart is the part of the budget that is brought in at once, at most.
const prefetchPart = 8

// bringAll brings the cells of a batch into the states that spill. There is no current key.
func (b *Backend[K]) bringAll(hashes []uint64, keys []K) {
	o := b.overflow
	if b.err != nil || o.store == nil {
		return
	}
	o.prefetch.room = int(o.Bytes / prefetchPart)
	for _, s := range b.states {
		if err := s.bringAll(hashes, keys); err != nil {
			b.Fail(err)
			return
		}
	}
	b.settle()
}

// bringAll moves the cells of a batch that are on disk into the table, as far as there is
// room: in the order of the keys on disk, and with one write for all. It leaves out a state
// that fewer than half of the records of the last batch used.
func (s *store[K, C]) bringAll(hashes []uint64, keys []K) error {
	sp := s.spilled
	sp.young = s.table.Len()
	wanted := 2*sp.recent.lookups >= sp.recent.records
	sp.recent = usage{records: len(hashes)}
	if !wanted || sp.filter.Len() == 0 {
		return nil
	}
	if err := s.want(hashes, keys); err != nil {
		return err
	}
	if len(sp.shared.prefetch.wanted) == 0 {
		return nil
	}
	err := s.bringWanted(hashes, keys)
	if err == nil {
		err = sp.shared.batch.Commit()
	}
	if err != nil {
		return fmt.Errorf("state %q: %w", s.name, err)
	}
	return nil
}

// usage is how often a state was looked up since a batch began that has so many records.
// Timers count, too, so it may be overestimated.
type usage struct{ records, lookups int }

// want notes which keys of a batch the filter has, each once and in the order of the keys
// on disk. By mistake of the filter there may be keys among them that are not on disk.
func (s *store[K, C]) want(hashes []uint64, keys []K) error {
	p := &s.spilled.shared.prefetch
	p.keys, p.wanted = p.keys[:0], p.wanted[:0]
	for i, hash := range hashes {
		if !s.spilled.filter.Has(hash) {
			continue
		}
		key, err := s.diskKey(hash, &keys[i])
		if err != nil {
			return err
		}
		p.keys = append(p.keys, key...)
		p.wanted = append(p.wanted, wantedCell{record: i, end: len(p.keys)})
	}
	begin := 0
	for i := range p.wanted {
		w := &p.wanted[i]
		w.key, begin = p.keys[begin:w.end], w.end
	}
	slices.SortFunc(p.wanted, func(a, b wantedCell) int { return bytes.Compare(a.key, b.key) })
	p.wanted = slices.CompactFunc(p.wanted, func(a, b wantedCell) bool { return bytes.Equal(a.key, b.key) })
	return nil
}

// bringWanted moves the cells that are wanted. Their removal from disk is in the batch then.
func (s *store[K, C]) bringWanted(hashes []uint64, keys []K) (err error) {
	sp := s.spilled
	o := sp.shared
	from, err := o.store.Cursor()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	fixed := EntryBytes[K, C]()
	reads := 0
	defer func() { o.Numbers.SpillReads.Add(int64(reads)) }()
	for _, w := range o.prefetch.wanted {
		if o.prefetch.room <= 0 {
			break
		}
		reads++
		value, found, err := from.Get(w.key)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		hash, key := hashes[w.record], keys[w.record]
		var cell C
		if err := sp.decode(value, &cell); err != nil {
			return fmt.Errorf("key %v: %w", key, err)
		}
		if err := o.batch.Delete(w.key); err != nil {
			return err
		}
		sp.filter.Remove(hash)
		s.arrive(hash, key, cell)
		outside := s.outside(&cell, len(w.key)-diskKeyHead, len(value))
		sp.sized(outside)
		o.prefetch.room -= fixed + outside
	}
	return nil
}
