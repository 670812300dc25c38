package checkpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/lowwater/lowwater/internal/snapshot"
)

// openSegment is a segment that is read. The file is opened when it is needed.
type openSegment struct {
	storage    storage
	name       string
	checkpoint int64
	info       SegmentInfo
	decompress decompressor // of the checkpoint

	mu    sync.Mutex
	file  fileReader
	index *segmentIndex
}

// damage says where in the file something is wrong.
func (s *openSegment) damage(offset int64, err error) error {
	return fmt.Errorf("checkpoint: %s at offset %d: %w", s.storage.path(s.name), offset, err)
}

// check looks at the header and the trailer.
func (s *openSegment) check() error {
	f, err := s.storage.open(s.name)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close() // only read from
	_, err = s.trailer(f)
	return err
}

// trailer returns the offset of the index.
func (s *openSegment) trailer(f fileReader) (index int64, err error) {
	if f.size() != s.info.Size {
		return 0, s.damage(0, fmt.Errorf("it has %d bytes instead of %d: it is damaged", f.size(), s.info.Size))
	}
	var head [headerSize]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return 0, s.damage(0, err)
	}
	if string(head[:]) != string(header()) {
		if v := binary.LittleEndian.Uint32(head[8:]); string(head[:8]) == segmentMagic && v != formatVersion {
			return 0, s.damage(8, versionError(v))
		}
		return 0, s.damage(0, errors.New("the header is damaged"))
	}
	var tail [trailerSize]byte
	at := s.info.Size - trailerSize
	if _, err := f.ReadAt(tail[:], at); err != nil {
		return 0, s.damage(at, err)
	}
	index = int64(binary.LittleEndian.Uint64(tail[:]))
	want := appendTrailer(nil, index, s.checkpoint, s.info.Index)
	if string(tail[:]) != string(want) || xxh3.Hash(tail[:24]) != binary.LittleEndian.Uint64(tail[24:]) {
		return 0, s.damage(at, errors.New("the trailer is damaged, or the file belongs to another checkpoint"))
	}
	if index < headerSize || index > at-frameSize {
		return 0, s.damage(at, fmt.Errorf("the index cannot begin at %d", index))
	}
	return index, nil
}

// load returns the index.
func (s *openSegment) load() (*segmentIndex, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index != nil {
		return s.index, nil
	}
	f, err := s.storage.open(s.name)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	index, err := s.readIndex(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	s.file, s.index = f, index
	return index, nil
}

func (s *openSegment) readIndex(f fileReader) (*segmentIndex, error) {
	offset, err := s.trailer(f)
	if err != nil {
		return nil, err
	}
	r := s.reader(new([]byte))
	raw, err := r.read(f, offset, s.info.Size-trailerSize-offset, s.info.Index)
	if err != nil {
		return nil, s.damage(offset, fmt.Errorf("index: %w", err))
	}
	index, err := decodeIndex(raw)
	if err == nil {
		err = index.validate(s, offset)
	}
	if err != nil {
		return nil, s.damage(offset, fmt.Errorf("index: %w", err))
	}
	return index, nil
}

func decodeIndex(raw []byte) (*segmentIndex, error) {
	if len(raw) < 4 {
		return nil, errors.New("it is too short")
	}
	schema, raw := uint64(binary.LittleEndian.Uint32(raw)), raw[4:]
	if schema > uint64(len(raw)) {
		return nil, errors.New("its schema is longer than it")
	}
	var index segmentIndex
	if err := decodeRecord(string(raw[:schema]), raw[schema:], &index); err != nil {
		return nil, err
	}
	return &index, nil
}

// validate checks what the code relies on, and that blocks fill the file up to the
// index, so that no byte is without a checksum.
func (i *segmentIndex) validate(s *openSegment, end int64) error {
	if i.Checkpoint != s.checkpoint || i.Vertex != s.info.Vertex || i.Subtask != s.info.Subtask {
		return fmt.Errorf("it is that of subtask %d of vertex %s at checkpoint %d", i.Subtask, i.Vertex, i.Checkpoint)
	}
	var blocks []blockIndex
	for _, op := range i.Operators {
		names := map[string]bool{}
		for _, p := range op.Parts {
			if p == nil || p.Part.Kind > snapshot.Broadcast || names[p.Part.Name] {
				return fmt.Errorf("%v has a part that is impossible, or there twice", op.Operator)
			}
			names[p.Part.Name] = true
			if err := p.validate(op.Operator.MaxParallelism); err != nil {
				return fmt.Errorf("%v, part %q: %w", op.Operator, p.Part.Name, err)
			}
			blocks = slices.AppendSeq(blocks, p.blocks())
		}
	}
	slices.SortFunc(blocks, func(a, b blockIndex) int { return cmp.Compare(a.Offset, b.Offset) })
	at := int64(headerSize)
	for _, b := range blocks {
		if b.Offset != at {
			return fmt.Errorf("a block begins at %d, the one before ends at %d", b.Offset, at)
		}
		at += b.Length
	}
	if at != end {
		return fmt.Errorf("the last block ends at %d", at)
	}
	return nil
}

func (p *partIndex) validate(maxParallelism int) error {
	entries := int64(0)
	for _, run := range p.Runs {
		group := 0
		for _, b := range run.Blocks {
			keyed := p.Part.Kind == snapshot.Keyed && b.Last < maxParallelism || b.Last == 0
			if b.First < group || b.Last < b.First || !keyed || b.Entries < 1 || b.Length < frameSize {
				return fmt.Errorf("the block %+v is impossible", b)
			}
			group = b.Last
			entries += b.Entries
		}
	}
	if entries != p.Entries {
		return fmt.Errorf("blocks have %d entries, the part has %d", entries, p.Entries)
	}
	return nil
}

// blocks visits the blocks in the order in which they were written.
func (p *partIndex) blocks() iter.Seq[blockIndex] {
	return func(yield func(blockIndex) bool) {
		for _, run := range p.Runs {
			for _, b := range run.Blocks {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// reader returns a reader for blocks that uses frame for what is compressed.
func (s *openSegment) reader(frame *[]byte) blockReader {
	return blockReader{decompress: s.decompress, frame: frame}
}

// read reads a block. The index is loaded.
func (s *openSegment) read(r *blockReader, b blockIndex) ([]byte, error) {
	s.mu.Lock()
	f := s.file
	s.mu.Unlock()
	if f == nil {
		return nil, errors.New("the checkpoint is closed")
	}
	return r.read(f, b.Offset, b.Length, b.Checksum)
}

func (s *openSegment) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.index = nil, nil
	return f.Close()
}

// verify reads everything.
func (s *openSegment) verify() error {
	index, err := s.load()
	if err != nil {
		return err
	}
	var damage []error
	for _, op := range index.Operators {
		if len(op.Parts) > 0 && !slices.Contains(s.info.Operators, op.Operator.ID) {
			damage = append(damage, s.damage(0, fmt.Errorf("the manifest does not know that it has state of %v", op.Operator)))
		}
		for _, p := range op.Parts {
			part := &storedPart{segment: s, operator: op.Operator, index: p}
			for b := range p.blocks() {
				damage = append(damage, part.verify(b))
			}
		}
	}
	if !slices.Equal(index.Shared, s.info.Shared) {
		damage = append(damage, s.damage(0, errors.New("the manifest knows of other shared files")))
	}
	return errors.Join(damage...)
}

// storedPart is a part of one subtask. It implements snapshot.Written.
type storedPart struct {
	segment  *openSegment
	operator OperatorInfo
	index    *partIndex
}

func (p *storedPart) Part() snapshot.Part { return p.index.Part }

func (p *storedPart) Len() int64 { return p.index.Entries }

// Run visits entries by their number. Blocks before and after are not read.
func (p *storedPart) Run(from, to int64) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		c := cursor{part: p, reader: p.segment.reader(new([]byte))}
		for b := range p.index.blocks() {
			if from >= to {
				return
			}
			if from >= b.Entries {
				from, to = from-b.Entries, to-b.Entries
				continue
			}
			if err := c.open(b); err != nil {
				yield(snapshot.Entry{}, err)
				return
			}
			for i := int64(0); i < b.Entries && i < to; i++ {
				e, err := c.next()
				if err != nil || i >= from {
					if !yield(e, err) || err != nil {
						return
					}
				}
			}
			from, to = 0, to-b.Entries
		}
	}
}

// Groups merges the runs of the part. A run is open from its first entry in the range
// to its last, and every block is read once.
func (p *storedPart) Groups(first, last int) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		var cursors []*cursor
		frame := new([]byte)
		for _, run := range p.index.Runs {
			if c := newCursor(p, run.Blocks, first, frame); c != nil {
				cursors = append(cursors, c)
			}
		}
		for {
			group := nextGroup(cursors)
			if group < 0 || group > last {
				return
			}
			for _, c := range cursors {
				for e, err := range c.group(group) {
					if err == nil && e.Group < first {
						continue // in front of the range, in its first block
					}
					if !yield(e, err) || err != nil {
						return
					}
				}
			}
		}
	}
}

// nextGroup returns the lowest group that is next in a cursor, -1 if all have ended.
func nextGroup(cursors []*cursor) int {
	lowest := -1
	for _, c := range cursors {
		if g, ok := c.head(); ok && (lowest < 0 || g < lowest) {
			lowest = g
		}
	}
	return lowest
}

// cursor goes through a run, block by block.
type cursor struct {
	part   *storedPart
	blocks []blockIndex // not yet open
	block  blockIndex   // the open one
	reader blockReader
	data   []byte // what is left of it
	left   int64  // entries in it
	last   int    // group of the last entry
}

// newCursor returns a cursor at the first block that may have the group, nil if none
// does.
func newCursor(p *storedPart, blocks []blockIndex, first int, frame *[]byte) *cursor {
	i := slices.IndexFunc(blocks, func(b blockIndex) bool { return b.Last >= first })
	if i < 0 {
		return nil
	}
	return &cursor{part: p, blocks: blocks[i:], reader: p.segment.reader(frame)}
}

func (c *cursor) damage(err error) error {
	return c.part.segment.damage(c.block.Offset, fmt.Errorf("%v, part %q: %w", c.part.operator, c.part.index.Part.Name, err))
}

func (c *cursor) open(b blockIndex) error {
	c.block = b
	raw, err := c.part.segment.read(&c.reader, b)
	if err != nil {
		return c.damage(err)
	}
	c.data, c.left, c.last = raw, b.Entries, b.First
	return nil
}

// head returns the group of the next entry; ok is false at the end.
func (c *cursor) head() (group int, ok bool) {
	if c.left > 0 {
		delta, _ := binary.Uvarint(c.data)
		// What is beyond the block's last group is next's to refuse.
		return min(c.last+int(min(delta, maxGroupDelta)), c.block.Last), true
	}
	if len(c.blocks) > 0 {
		return c.blocks[0].First, true
	}
	return 0, false
}

// maxGroupDelta is more than there are key groups, and not near overflow.
const maxGroupDelta = 1 << 30

// group visits the entries that are next and of that group.
func (c *cursor) group(group int) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		for {
			if g, ok := c.head(); !ok || g != group {
				return
			}
			if c.left == 0 {
				b := c.blocks[0]
				c.blocks = c.blocks[1:]
				if err := c.open(b); err != nil {
					yield(snapshot.Entry{}, err)
					return
				}
			}
			e, err := c.next()
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// next returns the next entry of the open block, of which there must be one.
func (c *cursor) next() (snapshot.Entry, error) {
	delta, n := binary.Uvarint(c.data)
	if n <= 0 || delta > maxGroupDelta {
		return snapshot.Entry{}, c.damage(errors.New("an entry has an impossible key group"))
	}
	length, m := binary.Uvarint(c.data[n:])
	if m <= 0 || length > uint64(len(c.data)-n-m) {
		return snapshot.Entry{}, c.damage(errors.New("an entry has an impossible length"))
	}
	c.last += int(delta)
	e := snapshot.Entry{Group: c.last, Data: c.data[n+m:][:length:length]}
	c.data = c.data[uint64(n+m)+length:]
	c.left--
	if c.last > c.block.Last || c.left == 0 && (len(c.data) > 0 || c.last != c.block.Last) {
		return snapshot.Entry{}, c.damage(errors.New("the entries are not those that the index tells of"))
	}
	return e, nil
}

// verify reads one block.
func (p *storedPart) verify(b blockIndex) error {
	c := cursor{part: p, reader: p.segment.reader(new([]byte))}
	if err := c.open(b); err != nil {
		return err
	}
	for c.left > 0 {
		if _, err := c.next(); err != nil {
			return err
		}
	}
	return nil
}
