package windowed

import (
	"encoding/binary"
	"errors"
	"math"
	"unsafe"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/window"
)

// spilledSessions is what the operator for merging windows has with a budget for memory: the
// sessions of a key, all of them, are in memory or on disk. They come back when a record of
// the key arrives, which may concern any of them, or when the time of one has come.
//
// A session that is on disk is still in the order of times, with its key in place of a
// pointer.
//
//	value on disk   for each session: window, flags; seq, due, length of the contents,
//	                all variable-length; contents as in a snapshot
type spilledSessions[K comparable, T, A any] struct {
	o    *sessions[K, T, A]
	keys *keyed.SpillTable[K, *session[K, A]]
	ends endHeap[keyOf[K]]
	// next are entries of ends that were taken out together, in their order, and taken is how
	// many of them have had their turn.
	next  []due[keyOf[K]]
	taken int
	// hashes and dueKeys are those of next, for takeNext.
	hashes  []uint64
	dueKeys []K
	decode  func(data []byte, acc *A) ([]byte, error)
	acc     []byte // scratch space of encode
}

// keyOf is a key and its hash.
type keyOf[K comparable] struct {
	hash uint64
	key  K
}

// spills implements Spills.
func (o *sessions[K, T, A]) spills() bool { return true }

// openSpilling prepares for a budget, if there is one.
func (o *sessions[K, T, A]) openSpilling() error {
	if o.rt.StateMemory == 0 {
		return nil
	}
	s := &spilledSessions[K, T, A]{o: o}
	var err error
	if s.decode, err = o.storage.contents.decoder(o.storage.contents.schema()); err != nil {
		return err
	}
	s.keys, err = keyed.NewSpillTable(o.storage.keys, "sessions", o.stateBudget(), keyed.Spillable[K, *session[K, A]]{
		Append: s.encode, Decode: s.decodeList, Arrived: s.arrived, Left: s.left, Outside: s.outside,
	})
	if err != nil {
		return err
	}
	o.spilled, o.keys = s, s.keys.Table()
	return nil
}

// encode appends the sessions of a key.
func (s *spilledSessions[K, T, A]) encode(dst []byte, head **session[K, A]) ([]byte, error) {
	for x := *head; x != nil; x = x.next {
		var err error
		if s.acc, err = s.o.storage.contents.append(s.acc[:0], &x.acc); err != nil {
			return nil, err
		}
		dst = append(appendWindow(dst, x.window), x.flags())
		dst = binary.AppendVarint(binary.AppendUvarint(dst, x.seq), x.due)
		dst = binary.AppendUvarint(dst, uint64(len(s.acc)))
		dst = append(dst, s.acc...)
	}
	return dst, nil
}

// parsedSession is a session on disk whose contents have not been decoded.
type parsedSession struct {
	window window.TimeWindow
	flags  byte
	seq    uint64
	due    int64
	acc    []byte
}

// parse reads the next session of a value on disk.
func (p *parsedSession) parse(data []byte) (rest []byte, err error) {
	if p.window, data = parseWindow(data); len(data) == 0 {
		return nil, errCutShort
	}
	p.flags = data[0]
	p.seq, data = uvarint(data[1:])
	p.due, data = varint(data)
	n, data := uvarint(data)
	if data == nil || uint64(len(data)) < n {
		return nil, errCutShort
	}
	p.acc = data[:n]
	return data[n:], nil
}

func (s *spilledSessions[K, T, A]) decodeList(data []byte, head **session[K, A]) error {
	var p parsedSession
	for at := head; len(data) > 0; at = &(*at).next {
		var err error
		if data, err = p.parse(data); err != nil {
			return err
		}
		x := s.o.freeSession()
		*x = session[K, A]{window: p.window, seq: p.seq, due: p.due, fired: p.flags&flagFired != 0, queued: true}
		if _, pooled := s.o.fold.(releaser[A]); pooled {
			x.acc = s.o.fold.New() // which decoding fills
		}
		if _, err := s.decode(p.acc, &x.acc); err != nil {
			return err
		}
		*at = x
	}
	return nil
}

func (s *spilledSessions[K, T, A]) arrived(hash uint64, key K, head **session[K, A]) {
	for x := *head; x != nil; x = x.next {
		x.hash, x.key = hash, key
	}
}

func (s *spilledSessions[K, T, A]) left(head *session[K, A]) {
	for x := head; x != nil; {
		next := x.next
		s.o.discard(x)
		x = next
	}
}

func (s *spilledSessions[K, T, A]) outside(head **session[K, A], encoded int) int {
	n := 0
	for x := *head; x != nil; x = x.next {
		n += int(unsafe.Sizeof(*x)) + s.o.storage.contents.memory(&x.acc)
	}
	if s.o.storage.contents.flat() {
		return n
	}
	return n + encoded
}

// addAll is sessions.addAll.
func (s *spilledSessions[K, T, A]) addAll(b *keyedBatch[K, T], now int64) error {
	if err := s.keys.Prepare(b.Hashes, b.Keys); err != nil {
		return err
	}
	for i, hash := range b.Hashes {
		head, err := s.keys.Upsert(hash, b.Keys[i])
		if err != nil {
			return err
		}
		if err := s.o.add(head, b, i, now); err != nil {
			return err
		}
		if *head == nil {
			if err := s.keys.Delete(hash, b.Keys[i]); err != nil {
				return err
			}
		}
	}
	return s.keys.Settle()
}

// minEnds and maxEnds bound how many sessions whose time has come are brought into memory
// together. The more there are, the less of the disk is read for each.
const (
	minEnds = 64
	maxEnds = 1 << 13
)

// advance is sessions.advance.
func (s *spilledSessions[K, T, A]) advance(t int64) error {
	for {
		d, ok, err := s.nextEnd(t)
		if err != nil {
			return err
		}
		if !ok {
			return s.keys.Settle()
		}
		head, err := s.keys.Get(d.v.hash, d.v.key)
		if err != nil {
			return err
		}
		if head == nil {
			continue
		}
		x := *head
		for x != nil && x.seq != d.seq {
			x = x.next
		}
		if x == nil {
			continue
		}
		if err := s.o.end(x, d.at); err != nil {
			return err
		}
	}
}

// nextEnd takes the earliest entry up to time t out of the order. What ends of sessions put
// into it meanwhile may come before what was taken out together.
func (s *spilledSessions[K, T, A]) nextEnd(t int64) (d due[keyOf[K]], ok bool, err error) {
	if s.taken == len(s.next) {
		if err := s.takeNext(t); err != nil || len(s.next) == 0 {
			return d, false, err
		}
	}
	if len(s.ends) > 0 && s.ends[0].before(&s.next[s.taken]) {
		return s.ends.pop(), true, nil
	}
	d = s.next[s.taken]
	s.taken++
	return d, true, nil
}

// takeNext fills next, and brings the keys into memory.
func (s *spilledSessions[K, T, A]) takeNext(t int64) error {
	clear(s.next)
	s.next, s.taken, s.hashes, s.dueKeys = s.next[:0], 0, s.hashes[:0], s.dueKeys[:0]
	limit := min(max(s.keys.Room(), minEnds), maxEnds)
	for len(s.ends) > 0 && s.ends[0].at <= t && len(s.next) < limit {
		d := s.ends.pop()
		s.next = append(s.next, d)
		s.hashes, s.dueKeys = append(s.hashes, d.v.hash), append(s.dueKeys, d.v.key)
	}
	err := s.keys.Prepare(s.hashes, s.dueKeys)
	clear(s.dueKeys)
	return err
}

// lastBegun returns the latest end of the sessions on disk that have begun by now.
func (s *spilledSessions[K, T, A]) lastBegun(now int64) (last int64, err error) {
	last = math.MinInt64
	err = s.keys.EachOnDisk(func(value []byte) error {
		for p := (parsedSession{}); len(value) > 0; {
			var err error
			if value, err = p.parse(value); err != nil {
				return err
			}
			if p.window.Start <= now {
				last = max(last, p.window.MaxTimestamp())
			}
		}
		return nil
	})
	return last, err
}

// sessionEntries adds an entry of a snapshot for each session of a key that is on disk.
func sessionEntries(c keyed.DiskCell, add func(entry []byte) error) error {
	var entry []byte
	for p, value := (parsedSession{}), c.Value; len(value) > 0; {
		var err error
		if value, err = p.parse(value); err != nil {
			return err
		}
		entry = append(appendWindow(entry[:0], p.window), p.flags)
		entry = append(append(entry, c.Key...), p.acc...)
		if err := add(entry); err != nil {
			return err
		}
	}
	return nil
}

// Close implements operator.Operator.
func (o *sessions[K, T, A]) Close() error {
	err := o.core.Close()
	if o.spilled != nil {
		err = errors.Join(err, o.spilled.keys.Close())
	}
	return err
}
