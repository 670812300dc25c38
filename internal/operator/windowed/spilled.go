package windowed

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/spill"
	"github.com/lowwater/lowwater/window"
)

// spilling moves contents of panes to disk when they take more memory than the operator
// may use.
//
// It is an aggregation by runs. An entry of a pane that is moved is written as it is, and
// records of its key that come later begin a new entry in the pane's table. So a key may
// have several runs on disk and one entry in memory, each with the records that arrived
// after those of the one before, and no record ever waits for the disk to be read. When
// the window fires, the runs are walked in the order of their keys and merged, those of a
// key in their order, then its entry in the table.
//
//	key on disk   number of the pane, 4 bytes, hash, 8 bytes; encoded key; number of the
//	              run, 4 bytes; numbers are big-endian
//	value         the contents as in a snapshot
//
// No stored key is the beginning of another, so the runs of a key stand together. A run is
// written sorted, which the hashes make cheap.
type spilling[K comparable, T, A any] struct {
	*storage[K, A]
	fold    fold[T, A]
	pool    *panePool[K, A]
	budget  int64
	options spill.Options
	groups  keyed.GroupRange
	logger  *slog.Logger
	numbers *metric.State

	// store is opened when something is spilled for the first time.
	store  *spill.Store
	batch  *spill.Batch
	runs   runReader[K, A]
	panes  uint32 // the number of the last pane that was given one
	onDisk int    // runs of all panes
	// inMemory is about what the tables take.
	inMemory int64
	// restoring counts the entries that are restored.
	restoring int
	moved     []movedEntry         // scratch space of spillSome
	largest   endHeap[*pane[K, A]] // scratch space of relieve
	// marked has a bit for each entry of the tables of the panes that fire.
	marked [][]uint64
	key    []byte
	value  []byte

	sizes sizes
}

// spilledPane is what a pane with a budget has besides its table.
type spilledPane struct {
	// number stands at the head of the pane's keys on disk; 0 if none was given.
	number uint32
	// run is the number of the latest run, and onDisk how many entries there are in runs.
	run    uint32
	onDisk int
	// records is how many elements the lists in the table hold, for contents that are lists.
	records int
	// outside is the average of what contents, or an element of them, take in memory
	// outside the table; probed says that there is one.
	outside average
	probed  bool
	// hand is the number behind the entry that is moved next.
	hand int
}

// Spills reports whether an operator moves contents of its windows to disk if it has a
// budget for memory (operator.Runtime.StateMemory).
func Spills(op operator.Operator) bool {
	s, ok := op.(interface{ spills() bool })
	return ok && s.spills()
}

// spills implements Spills. Aggregations that depend on the order of arrival need not have a
// Merge that means anything here, where nothing else calls it.
func (o *panes[K, T, A]) spills() bool {
	_, ordered := o.fold.(window.ArrivalOrdered)
	return !ordered
}

// openSpilling prepares for a budget, if there is one.
func (o *panes[K, T, A]) openSpilling() (err error) {
	if o.spills() {
		o.spilled, err = o.newSpilling(&o.pool)
	}
	return err
}

// newSpilling returns nil without a budget.
func (c *core[K, T, A]) newSpilling(pool *panePool[K, A]) (*spilling[K, T, A], error) {
	if c.rt.StateMemory == 0 {
		return nil, nil
	}
	s := &spilling[K, T, A]{
		storage: c.storage, fold: c.fold, pool: pool, budget: c.rt.StateMemory, groups: c.groups(),
		options: spill.Options{Dir: c.rt.StateDir, Logger: c.rt.Logger, Context: c.rt.Context, Runs: true},
		logger:  c.rt.Logger, numbers: &c.rt.Metrics.State,
	}
	s.numbers.BudgetBytes.Set(s.budget)
	s.sizes.fixed = keyed.EntryBytes[K, A]()
	s.sizes.flatKeys = keyed.IsFlat[K]()
	var err error
	if s.runs.decodeKey, err = s.keys.Decoder(s.keys.Schema()); err != nil {
		return nil, err
	}
	if s.runs.decode, err = s.contents.decoder(s.contents.schema()); err != nil {
		return nil, err
	}
	return s, nil
}

// stateBudget is the budget of an operator that spills by key.
func (c *core[K, T, A]) stateBudget() keyed.Budget {
	return keyed.Budget{
		Bytes: c.rt.StateMemory, Dir: c.rt.StateDir, Context: c.rt.Context, Logger: c.rt.Logger, Numbers: &c.rt.Metrics.State,
	}
}

// close removes what is on disk.
func (s *spilling[K, T, A]) close() error {
	if s == nil || s.store == nil {
		return nil
	}
	return errors.Join(s.batch.Close(), s.store.Close())
}

// spillAtATime is about how many bytes are moved together: enough for a run that is a file
// of its own, few enough for input and checkpoints to wait for them.
const spillAtATime = 8 * spill.RunBytes

// settle moves contents to disk until the rest fits into the budget: some of the pane with
// the most bytes, over and over.
func (s *spilling[K, T, A]) settle(live []*pane[K, A]) error {
	if err := s.probe(live); err != nil {
		return err
	}
	s.inMemory = 0
	for _, p := range live {
		s.inMemory += s.bytes(p)
	}
	var err error
	if s.inMemory > s.budget {
		err = s.relieve(live)
	}
	s.numbers.MemoryBytes.Set(s.inMemory)
	return err
}

// relieve is settle for panes that do not fit.
func (s *spilling[K, T, A]) relieve(live []*pane[K, A]) error {
	if err := s.open(); err != nil {
		return err
	}
	s.largest = s.largest[:0]
	for i, p := range live {
		if n := s.bytes(p); n > 0 {
			s.largest.push(due[*pane[K, A]]{-n, uint64(i), p})
		}
	}
	for s.inMemory > s.budget && len(s.largest) > 0 {
		next := s.largest.pop()
		p := next.v
		excess := s.inMemory - s.budget + s.budget/4 // a quarter at a time, for long runs
		if err := s.spillSome(p, min(excess, spillAtATime)); err != nil {
			return fmt.Errorf("contents of windows in %v: %w", p.window, err)
		}
		if n := s.bytes(p); n > 0 {
			next.at = -n
			s.largest.push(next)
		}
	}
	clear(s.largest)
	s.numbers.DiskBytes.Set(s.store.DiskBytes())
	return nil
}

// open opens the store, and says that it is needed.
func (s *spilling[K, T, A]) open() (err error) {
	if s.store != nil {
		return nil
	}
	if s.store, err = spill.Open(s.options); err != nil {
		return err
	}
	s.batch = s.store.NewBatch()
	s.logger.Warn("windows have state that is larger than its memory budget: what is more goes to disk until they fire, which is slower; "+
		"raise WithStateMemory or the parallelism if that is too slow",
		"bytesInMemory", s.inMemory, "budgetBytes", s.budget, "directory", s.store.Dir())
	return nil
}

// movedEntry is an entry of a table that is moved to disk: its hash and number.
type movedEntry struct {
	hash   uint64
	number int
}

// spillSome moves entries of a pane that take about so many bytes to disk, as one run.
func (s *spilling[K, T, A]) spillSome(p *pane[K, A], bytes int64) error {
	x, before := &p.spilled, s.bytes(p)
	s.beginRun(x)
	if x.hand == 0 || x.hand > p.keys.Len() {
		x.hand = p.keys.Len()
	}
	each := before/int64(p.keys.Len()) + 1
	to := x.hand
	x.hand = max(0, to-1-int(bytes/each))
	s.moved = s.moved[:0]
	for i := x.hand; i < to; i++ {
		s.moved = append(s.moved, movedEntry{p.keys.At(i).Hash, i})
	}
	slices.SortFunc(s.moved, func(a, b movedEntry) int { return cmp.Compare(a.hash, b.hash) })
	for _, m := range s.moved {
		e := p.keys.At(m.number)
		if err := s.write(p, e.Hash, &e.Key, &e.Value); err != nil {
			return err
		}
	}
	for i := to - 1; i >= x.hand; i-- {
		acc := p.keys.At(i).Value
		x.records -= s.contents.elements(&acc)
		s.pool.release(acc)
		p.keys.DeleteAt(i)
	}
	p.keys.Trim()
	s.inMemory -= before - s.bytes(p)
	return s.endRun(x, len(s.moved))
}

// beginRun begins the next run of a pane. Those who have written it end it with endRun.
func (s *spilling[K, T, A]) beginRun(x *spilledPane) {
	if x.number == 0 {
		s.panes++
		x.number = s.panes
	}
	x.run++
}

// endRun ends a run of so many entries.
func (s *spilling[K, T, A]) endRun(x *spilledPane, entries int) error {
	s.count(x, entries)
	s.numbers.SpillWrites.Add(int64(entries))
	return s.batch.Commit()
}

// count notes that a pane has so many more entries in runs.
func (s *spilling[K, T, A]) count(x *spilledPane, entries int) {
	x.onDisk += entries
	s.onDisk += entries
	s.numbers.SpilledEntries.Set(int64(s.onDisk))
}

// write adds an entry of a pane's run to the batch.
func (s *spilling[K, T, A]) write(p *pane[K, A], hash uint64, key *K, acc *A) error {
	err := s.appendKey(p, hash, key)
	if err != nil {
		return err
	}
	s.key = binary.BigEndian.AppendUint32(s.key, p.spilled.run)
	if s.value, err = s.contents.append(s.value[:0], acc); err != nil {
		return fmt.Errorf("key %v: %w", *key, err)
	}
	if err := s.batch.Set(s.key, s.value); err != nil || s.batch.Len() < spillAtATime {
		return err
	}
	return s.batch.Commit() // contents were larger than expected
}

// What stands before and behind an encoded key on disk.
const (
	diskKeyPane = 4
	diskKeyHead = diskKeyPane + 8
	diskKeyTail = 4
)

// appendKey makes s.key what a key's runs begin with on disk.
func (s *spilling[K, T, A]) appendKey(p *pane[K, A], hash uint64, key *K) (err error) {
	s.key = binary.BigEndian.AppendUint64(p.spilled.prefix(s.key[:0]), hash)
	if s.key, err = s.keys.Append(s.key, key); err != nil {
		err = fmt.Errorf("key %v: %w", *key, err)
	}
	return err
}

// hashOnDisk returns the hash in a key on disk.
func hashOnDisk(key []byte) uint64 { return binary.BigEndian.Uint64(key[diskKeyPane:]) }

// prefix appends what the pane's keys begin with on disk.
func (x *spilledPane) prefix(dst []byte) []byte { return binary.BigEndian.AppendUint32(dst, x.number) }
