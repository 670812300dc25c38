package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/lowwater/lowwater/internal/snapshot"
)

const (
	// runSize is how many bytes of a part are gathered and sorted by key group.
	runSize = 2 << 20
	// blockSize is how many bytes of entries go into a block.
	blockSize = 128 << 10
	// grain is after how many bytes Append looks whether the disk keeps up.
	grain = 64 << 10
	// entryCost is what an entry takes besides its bytes.
	entryCost = 8
)

// partWriter implements snapshot.PartWriter. Entries are gathered in memory, as they
// come, and go to the segment's goroutine by batches.
//
// Append may be called by a subtask that must not be held up, or that waits for the lock
// of a goroutine in Append. So it waits for the disk in small steps.
type partWriter struct {
	segment  *Segment
	operator OperatorInfo
	index    *partIndex
	batch    *batch
	// checked is the size of the batch when the queue was last looked at.
	checked int
	closed  bool
}

// batch is a number of entries of one part.
type batch struct {
	part    *partIndex
	data    []byte
	entries []entryRef
	sorted  bool
	// held is how many bytes count as queued.
	held int
}

// entryRef is an entry in a batch: its key group, and where it ends in data. It begins
// where the one before ends.
type entryRef struct{ group, end uint32 }

func (b *batch) size() int { return len(b.data) + entryCost*len(b.entries) }

func (b *batch) reset() { *b = batch{data: b.data[:0], entries: b.entries[:0], sorted: true} }

func (p *partWriter) Append(group int, entry []byte) error {
	if p.closed || len(entry) > maxEntry || group < 0 || group > 0 && (p.index.Part.Kind != snapshot.Keyed || group >= p.operator.MaxParallelism) {
		return p.refusal(group, entry)
	}
	if p.batch == nil {
		p.batch = p.segment.newBatch(p.index)
	}
	b := p.batch
	if len(b.data)+len(entry) > maxRaw { // offsets are of 32 bits
		if err := p.handOver(); err != nil {
			return err
		}
		return p.Append(group, entry)
	}
	if n := len(b.entries); n > 0 && b.entries[n-1].group > uint32(group) {
		b.sorted = false
	}
	b.data = append(b.data, entry...)
	b.entries = append(b.entries, entryRef{uint32(group), uint32(len(b.data))})
	size := b.size()
	if size-p.checked < grain {
		return nil
	}
	p.checked = size
	if err := p.segment.wait(size); err != nil {
		return err
	}
	if size >= runSize {
		return p.handOver()
	}
	return nil
}

func (p *partWriter) refusal(group int, entry []byte) error {
	what := fmt.Sprintf("checkpoint %d: part %q of %v", p.segment.pending.id, p.index.Part.Name, p.operator)
	switch {
	case p.closed:
		return fmt.Errorf("%s is closed", what)
	case len(entry) > maxEntry:
		return fmt.Errorf("%s has an entry of %d bytes, more than the %d that a checkpoint can hold: keep less in one value", what, len(entry), maxEntry)
	case p.index.Part.Kind != snapshot.Keyed:
		return fmt.Errorf("%s is %v and gets an entry for key group %d", what, p.index.Part.Kind, group)
	}
	return fmt.Errorf("%s gets an entry for key group %d, of %d", what, group, p.operator.MaxParallelism)
}

func (p *partWriter) Close() error {
	if p.closed {
		return fmt.Errorf("checkpoint %d: part %q of %v is closed twice", p.segment.pending.id, p.index.Part.Name, p.operator)
	}
	if p.batch != nil {
		if err := p.handOver(); err != nil {
			return err
		}
	}
	p.closed = true
	return nil
}

// handOver gives the batch to the segment's goroutine.
func (p *partWriter) handOver() error {
	s, b := p.segment, p.batch
	p.batch, p.checked = nil, 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return s.over()
	}
	b.held = b.size()
	s.queued += b.held
	s.queue = append(s.queue, b)
	s.changed.Broadcast()
	return nil
}

func (s *Segment) newBatch(part *partIndex) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &batch{sorted: true}
	if n := len(s.free); n > 0 {
		b, s.free = s.free[n-1], s.free[:n-1]
	}
	b.part = part
	return b
}

// wait returns when there is room for a batch of that size. What is queued is written
// sooner or later, so that this ends.
func (s *Segment) wait(size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.queued > 0 && s.queued+size > maxQueued && s.err == nil {
		s.changed.Wait()
	}
	if s.closed || s.err != nil {
		return s.over()
	}
	return nil
}

// blockWriter makes blocks of batches.
type blockWriter struct {
	raw   []byte
	block []byte
	order []uint32
}

// writeBatch writes a batch as one run.
func (w *blockWriter) writeBatch(s *Segment, b *batch) error {
	w.sort(b)
	var run runIndex
	var block blockIndex
	w.raw = w.raw[:0]
	for i := range b.entries {
		group, data := w.entry(b, i)
		if block.Entries > 0 && len(w.raw)+len(data) > blockSize {
			if err := w.flush(s, b, &block); err != nil {
				return err
			}
			run.Blocks = append(run.Blocks, block)
			block = blockIndex{}
		}
		if block.Entries == 0 {
			block.First, block.Last = int(group), int(group)
		}
		w.raw = binary.AppendUvarint(w.raw, uint64(int(group)-block.Last))
		w.raw = binary.AppendUvarint(w.raw, uint64(len(data)))
		w.raw = append(w.raw, data...)
		block.Last = int(group)
		block.Entries++
	}
	if err := w.flush(s, b, &block); err != nil {
		return err
	}
	b.part.Entries += int64(len(b.entries))
	b.part.Raw += int64(len(b.data))
	b.part.Runs = append(b.part.Runs, runIndex{append(run.Blocks, block)})
	return nil
}

// flush writes the entries in w.raw as a block and says where it is.
func (w *blockWriter) flush(s *Segment, b *batch, block *blockIndex) error {
	var err error
	if w.block, block.Checksum, err = s.pending.store.compress.appendBlock(w.block[:0], w.raw, s.info.Size); err != nil {
		return err
	}
	if _, err := s.file.Write(w.block); err != nil {
		return err
	}
	block.Offset, block.Length = s.info.Size, int64(len(w.block))
	s.info.Size += block.Length
	s.written(b, len(w.raw)+entryCost*int(block.Entries))
	w.raw = w.raw[:0]
	return nil
}

// entry returns the i-th entry in the order of key groups.
func (w *blockWriter) entry(b *batch, i int) (group uint32, data []byte) {
	if !b.sorted {
		i = int(w.order[i])
	}
	start := uint32(0)
	if i > 0 {
		start = b.entries[i-1].end
	}
	return b.entries[i].group, b.data[start:b.entries[i].end]
}

// sort finds the order of the entries of a batch by key group, by counting: groups are
// few.
func (w *blockWriter) sort(b *batch) {
	if b.sorted {
		return
	}
	highest := uint32(0)
	for _, e := range b.entries {
		highest = max(highest, e.group)
	}
	next := make([]uint32, highest+2)
	for _, e := range b.entries {
		next[e.group+1]++
	}
	for g := range highest {
		next[g+1] += next[g]
	}
	w.order = append(w.order[:0], make([]uint32, len(b.entries))...)
	for i, e := range b.entries {
		w.order[next[e.group]] = uint32(i)
		next[e.group]++
	}
}
