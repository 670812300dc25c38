package keyed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/spill"
)

// Budget says how much memory the states of a backend may take, and where what is more
// goes.
type Budget struct {
	// Bytes is the budget; it is compared with an estimate.
	Bytes int64
	// Dir is the directory for what is spilled, the system's for temporary files if empty.
	Dir string
	// Context ends when the subtask is to end, which does not wait for a stuck disk then.
	Context context.Context
	// Logger is told when a state begins to spill.
	Logger *slog.Logger
	// Numbers are kept up to date.
	Numbers *metric.State
}

// overflow is the part of a backend with a budget that all states share.
type overflow struct {
	Budget
	// store is opened when something is spilled for the first time.
	store *spill.Store
	batch *spill.Batch
	key   []byte
	value []byte
	// spills is how many times something was spilled.
	spills int

	prefetch prefetch
}

// settleEvery is how many times the current key is set between two looks at the budget,
// a power of 2.
const settleEvery = 256

// Limit sets a budget. It comes after Store and before the states are opened.
func (b *Backend[K]) Limit(budget Budget) {
	if budget.Numbers == nil {
		budget.Numbers = &metric.State{}
	}
	budget.Numbers.BudgetBytes.Set(budget.Bytes)
	b.overflow = &overflow{Budget: budget}
}

// Close removes what is spilled. States are not used any more.
func (b *Backend[K]) Close() error {
	o := b.overflow
	if o == nil || o.store == nil {
		return nil
	}
	err := errors.Join(o.batch.Close(), o.store.Close())
	o.store = nil
	return err
}

// watch sees now and then that the states fit into the budget.
func (b *Backend[K]) watch() {
	if b.uses%settleEvery == 0 {
		b.settle()
	}
}

// settle spills until the states fit into the budget. There is no current key, or it is
// about to change.
func (b *Backend[K]) settle() {
	o := b.overflow
	if b.err != nil {
		return
	}
	spilled := false
	for {
		var largest keyedState[K]
		tables, filters, most, entries := 0, 0, 0, 0
		for _, s := range b.states {
			inTable, filter := s.bytes()
			tables, filters = tables+inTable, filters+filter
			entries += s.spilledLen()
			if inTable > most && s != b.walked {
				largest, most = s, inTable
			}
		}
		o.Numbers.MemoryBytes.Set(int64(tables + filters))
		o.Numbers.SpilledEntries.Set(int64(entries))
		excess := int64(tables) - max(o.Bytes-int64(filters), o.Bytes/4)
		if excess <= 0 || largest == nil {
			break
		}
		spilled = true
		if err := largest.spillSome(int(min(excess+o.Bytes/64, spillAtATime))); err != nil {
			b.Fail(err)
			return
		}
	}
	if spilled && o.spills%looksAtDisk == 0 {
		o.Numbers.DiskBytes.Set(o.store.DiskBytes())
	}
	if spilled { // states remember where their values are
		o.spills++
		b.uses++
		b.use = 0
	}
}

// looksAtDisk is how many times something is spilled between two looks at what the disk has.
const looksAtDisk = 16

// spillAtATime is about how many bytes one batch takes out of memory.
const spillAtATime = 256 << 10

// open opens the store.
func (o *overflow) open() (err error) {
	if o.store != nil {
		return nil
	}
	if o.store, err = spill.Open(spill.Options{Dir: o.Dir, Logger: o.Logger, Context: o.Context}); err != nil {
		return err
	}
	o.batch = o.store.NewBatch()
	return nil
}

// spilled is the part of a store that is on disk.
//
// A cell is either in the table or on disk. It comes into the table when it is looked up
// and leaves it when the clock hand passes it twice without a use in between.
//
//	key on disk   number of the state, key group, both 2 bytes big-endian; encoded key
//	value         what follows the key in the entries of a snapshot
type spilled[K comparable, C any] struct {
	shared *overflow
	number int
	filter spill.Filter
	cells  *cells[K, C]
	decode func(data []byte, c *C) error
	// decodeKey reads a key, and flatKeys says that keys take no memory outside the table.
	decodeKey func(data []byte, key *K) (rest []byte, err error)
	flatKeys  bool
	// used has a bit for each entry of the table, set when it was looked up.
	used []uint64
	// recent says whether it pays to bring in what a batch may use.
	recent usage
	// hand is the number behind the entry that is looked at next.
	hand int
	// young is the number from which on entries came with the batch at hand. The clock
	// hand begins its rounds below them, or a table of which all was used would lose
	// first what was brought in for the batch.
	young int
	// average is the bytes of a cell outside its table, over the latest ones.
	average float64
	// told says that the log has the state.
	told bool
	// probe is the entry whose size is looked at next.
	probe int
	sweep diskSweep
	// arrived and left, if they are set, are called when a cell has come into the table from
	// disk, and when it has left it.
	arrived func(hash uint64, key K, c *C)
	left    func(c C)
}

// limit makes a store one that spills, if the backend has a budget.
func (s *store[K, C]) limit(storage func() (*cells[K, C], error)) error {
	b := s.backend
	if b.overflow == nil {
		return nil
	}
	// Cells of its own: those of the store are used by the goroutine that writes snapshots.
	cells, err := storage()
	if err != nil {
		return err
	}
	sp := &spilled[K, C]{shared: b.overflow, number: len(b.states), cells: cells, flatKeys: IsFlat[K]()}
	if sp.decodeKey, err = b.keys.Decoder(b.keys.Schema()); err != nil {
		return err
	}
	sp.decode, err = cells.decoder(snapshot.Part{Version: int(cells.layout), Schemas: cells.schemas}, 0)
	s.spilled = sp
	return err
}

// prefix returns what the keys of the state begin with on disk.
func (sp *spilled[K, C]) prefix() []byte {
	return binary.BigEndian.AppendUint16(nil, uint16(sp.number))
}

// diskKey returns the key on disk, valid until the next call.
func (s *store[K, C]) diskKey(hash uint64, key *K) ([]byte, error) {
	sp, keys := s.spilled, s.backend.keys
	o := sp.shared
	o.key = binary.BigEndian.AppendUint16(o.key[:0], uint16(sp.number))
	o.key = binary.BigEndian.AppendUint16(o.key, uint16(keys.Group(hash)))
	var err error
	if o.key, err = keys.Append(o.key, key); err != nil {
		err = fmt.Errorf("state %q, key %v: %w", s.name, *key, err)
	}
	return o.key, err
}

// diskKeyHead is the length of what comes before the encoded key.
const diskKeyHead = 4

// touch notes that entry i was looked up.
func (sp *spilled[K, C]) touch(i uint32) {
	for int(i/64) >= len(sp.used) {
		sp.used = append(sp.used, 0)
	}
	sp.used[i/64] |= 1 << (i & 63)
}

func (sp *spilled[K, C]) isUsed(i int) bool {
	return i/64 < len(sp.used) && sp.used[i/64]>>(i&63)&1 != 0
}

func (sp *spilled[K, C]) forget(i int) {
	if i/64 < len(sp.used) {
		sp.used[i/64] &^= 1 << (i & 63)
	}
}

// lookup, for a store that spills, returns a cell, which is brought into the table if it is on disk, nil if there is
// none.
func (s *store[K, C]) lookup(hash uint64, key K) *C {
	s.spilled.recent.lookups++
	i, e := s.table.find(hash, key)
	if e == nil {
		if !s.spilled.filter.Has(hash) {
			return nil
		}
		return s.bring(hash, key)
	}
	s.spilled.touch(i)
	if s.table.image != nil {
		s.table.keep(i)
	}
	return &e.Value
}

// obtain, for a store that spills, returns a cell, made if need be.
func (s *store[K, C]) obtain(hash uint64, key K) (c *C, created bool) {
	if c := s.lookup(hash, key); c != nil {
		return c, false
	}
	return s.insert(hash, key), true
}

// insert adds a cell to the table of a store that spills.
func (s *store[K, C]) insert(hash uint64, key K) *C {
	s.spilled.touch(uint32(s.table.Len()))
	return &s.table.insert(hash, key).Value
}

// arrive adds a cell to the table that was on disk.
func (s *store[K, C]) arrive(hash uint64, key K, cell C) *C {
	c := s.insert(hash, key)
	*c = cell
	if s.spilled.arrived != nil {
		s.spilled.arrived(hash, key, c)
	}
	return c
}

// bring moves a cell from disk into the table.
func (s *store[K, C]) bring(hash uint64, key K) *C {
	var c *C
	at, err := s.diskKey(hash, &key)
	if err == nil {
		var cell C
		size, found := 0, false
		found, err = s.spilled.shared.store.Get(at, func(value []byte) error {
			size = len(value)
			return s.spilled.decode(value, &cell)
		})
		s.spilled.shared.Numbers.SpillReads.Add(1)
		if err == nil && found {
			err = s.dropOnDisk(hash, at)
			c = s.arrive(hash, key, cell)
			s.spilled.sized(s.outside(&cell, len(at)-diskKeyHead, size))
		}
	}
	if err != nil {
		s.backend.Fail(fmt.Errorf("state %q, key %v: %w", s.name, key, err))
	}
	return c
}

// dropOnDisk removes a key that is on disk.
func (s *store[K, C]) dropOnDisk(hash uint64, at []byte) error {
	s.spilled.filter.Remove(hash)
	return s.spilled.shared.store.Delete(at)
}

// remove, for a store that spills, removes a cell wherever it is.
func (s *store[K, C]) remove(hash uint64, key K) {
	if i, e := s.table.find(hash, key); e != nil {
		s.removeAt(int(i))
		return
	}
	if !s.spilled.filter.Has(hash) {
		return
	}
	at, err := s.diskKey(hash, &key)
	found := false
	if err == nil {
		found, err = s.spilled.shared.store.Get(at, func([]byte) error { return nil })
	}
	if err == nil && found {
		err = s.dropOnDisk(hash, at)
	}
	if err != nil {
		s.backend.Fail(fmt.Errorf("state %q, key %v: %w", s.name, key, err))
	}
}

// removeAt removes entry i of the table.
func (s *store[K, C]) removeAt(i int) {
	s.table.DeleteAt(i)
	if sp := s.spilled; sp != nil {
		last := s.table.Len()
		if sp.isUsed(last) {
			sp.touch(uint32(i))
		} else {
			sp.forget(i)
		}
		sp.forget(last)
	}
}

// bytes returns about how much memory the state takes: the table, and the filter.
func (s *store[K, C]) bytes() (table, filter int) {
	s.probeSize()
	each := float64(EntryBytes[K, C]()) + s.spilled.average
	return int(each * float64(s.table.Len())), s.spilled.filter.Bytes()
}

func (s *store[K, C]) spilledLen() int { return s.spilled.filter.Len() }

func (s *store[K, C]) diskNumber() int { return s.spilled.number }

// probeSize looks at the size of one more cell.
func (s *store[K, C]) probeSize() {
	sp, n := s.spilled, s.table.Len()
	if n == 0 {
		return
	}
	sp.probe = (sp.probe + 61) % n
	e := s.table.entry(uint32(sp.probe))
	if size, err := s.encode(e); err == nil {
		sp.sized(size)
	}
}

// sized takes a size into the average.
func (sp *spilled[K, C]) sized(bytes int) {
	if sp.average == 0 {
		sp.average = float64(bytes)
		return
	}
	sp.average += (float64(bytes) - sp.average) / 32
}

// encode encodes key and cell of an entry into the buffers that all share, and returns
// what they take in memory outside the table.
func (s *store[K, C]) encode(e *Entry[K, C]) (outside int, err error) {
	o := s.spilled.shared
	key, err := s.diskKey(e.Hash, &e.Key)
	if err != nil {
		return 0, err
	}
	if o.value, err = s.spilled.cells.append(o.value[:0], &e.Value); err != nil {
		return 0, fmt.Errorf("state %q, key %v: %w", s.name, e.Key, err)
	}
	return s.outside(&e.Value, len(key)-diskKeyHead, len(o.value)), nil
}

// outside returns what a key and a cell with encodings of such lengths take in memory
// outside the table.
func (s *store[K, C]) outside(c *C, key, value int) int {
	if s.spilled.flatKeys {
		key = 0
	}
	return key + s.spilled.cells.outside(c, value)
}

// spillSome moves cells of about so many bytes from the table to disk, the ones that have
// not been looked up for longest.
func (s *store[K, C]) spillSome(bytes int) error {
	sp := s.spilled
	o := sp.shared
	if err := o.open(); err != nil {
		return fmt.Errorf("state %q: %w", s.name, err)
	}
	if !sp.told {
		sp.told = true
		inMemory, _ := s.bytes()
		o.warn(s.name, inMemory, s.table.Len())
	}
	fixed := EntryBytes[K, C]()
	written := 0
	for bytes > 0 && s.table.Len() > 0 {
		if n := s.table.Len(); sp.hand == 0 || sp.hand > n {
			sp.hand = n
			if sp.young > 0 {
				sp.hand = min(n, sp.young)
			}
		}
		sp.hand--
		if sp.isUsed(sp.hand) {
			sp.forget(sp.hand)
			continue
		}
		e := s.table.entry(uint32(sp.hand))
		outside, err := s.encode(e)
		if err != nil {
			return err
		}
		if err := o.batch.Set(o.key, o.value); err != nil {
			return fmt.Errorf("state %q: %w", s.name, err)
		}
		sp.sized(outside)
		sp.filter.Add(e.Hash)
		cell := e.Value
		s.removeAt(sp.hand)
		if sp.left != nil { // not before a snapshot has what it needs of it
			sp.left(cell)
		}
		bytes -= fixed + outside
		written++
	}
	o.Numbers.SpillWrites.Add(int64(written))
	if err := o.batch.Commit(); err != nil {
		return fmt.Errorf("state %q: %w", s.name, err)
	}
	return nil
}

// warn says that a state begins to spill.
func (o *overflow) warn(state string, inMemory, entries int) {
	if o.Logger == nil {
		return
	}
	o.Logger.Warn("state is larger than its memory budget: what has not been used for longest goes to disk, and reading it back is slower; "+
		"raise WithStateMemory or the parallelism if that is too slow (timers, interval joins, sorting and aggregators in order of arrival stay in memory)",
		"state", state, "bytesInMemory", inMemory, "entriesInMemory", entries, "budgetBytes", o.Bytes, "directory", o.store.Dir())
}
