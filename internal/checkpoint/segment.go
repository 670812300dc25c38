package checkpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/snapshot"
)

const (
	segmentSuffix = ".seg"
	segmentMagic  = "LWSEGMT\n"
	trailerMagic  = "LWSEGEND"
	headerSize    = 16
	trailerSize   = 40
)

// segmentIndex says where in a segment what is.
type segmentIndex struct {
	Checkpoint int64
	Vertex     string
	Subtask    int
	Operators  []operatorIndex
	Shared     []SharedRef
}

type operatorIndex struct {
	Operator OperatorInfo
	Parts    []*partIndex
	// Shared has the names of the shared files that the operator refers to.
	Shared []string
}

type partIndex struct {
	Part    snapshot.Part
	Entries int64
	Raw     int64
	Runs    []runIndex
}

type runIndex struct{ Blocks []blockIndex }

type blockIndex struct {
	Offset, Length int64
	First, Last    int // key groups
	Entries        int64
	Checksum       uint64
}

// header returns what a segment begins with.
func header() []byte {
	return binary.LittleEndian.AppendUint64([]byte(segmentMagic), formatVersion)
}

// Segment is the file that one subtask writes at a checkpoint. A goroutine of its own
// compresses and writes; all methods are safe for concurrent use.
type Segment struct {
	pending *Pending
	info    SegmentInfo
	file    fileWriter
	ended   chan struct{} // closed when the goroutine has ended

	mu sync.Mutex
	// changed tells of every change below.
	changed sync.Cond
	index   segmentIndex
	parts   []*partWriter
	queue   []*batch
	// queued is the number of bytes in the queue and in the batch being written.
	queued int
	closed bool // no more batches will come
	err    error
	free   []*batch
}

// maxQueued is how many bytes wait for the disk before Append does.
const maxQueued = 8 << 20

func (p *Pending) newSegment(file, vertex string, subtask int) (*Segment, error) {
	s := &Segment{
		pending: p,
		info:    SegmentInfo{File: file, Vertex: vertex, Subtask: subtask},
		ended:   make(chan struct{}),
		index:   segmentIndex{Checkpoint: p.id, Vertex: vertex, Subtask: subtask},
	}
	s.changed.L = &s.mu
	var err error
	if s.file, err = p.storage.create(p.dir + "/" + s.info.File); err != nil {
		return nil, s.failed(err)
	}
	if _, err = s.file.Write(header()); err != nil {
		return nil, errors.Join(s.failed(err), s.file.abort())
	}
	s.info.Size = headerSize
	go s.write()
	return s, nil
}

// failed adds to an error where it happened.
func (s *Segment) failed(err error) error {
	return fmt.Errorf("checkpoint %d: writing %s: %w", s.pending.id,
		s.pending.storage.path(s.pending.dir+"/"+s.info.File), withFree(s.pending.storage, err))
}

// Operator returns the writer for an operator of the subtask's chain. later gets what
// the operator leaves for later; the caller runs it.
func (s *Segment) Operator(info OperatorInfo, later func(func(context.Context) error)) snapshot.Writer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.Operators = append(s.index.Operators, operatorIndex{Operator: info})
	return &operatorWriter{segment: s, info: info, at: len(s.index.Operators) - 1, later: later}
}

// operatorWriter implements snapshot.Writer.
type operatorWriter struct {
	segment *Segment
	info    OperatorInfo
	at      int // in the index
	later   func(func(context.Context) error)
}

func (w *operatorWriter) Checkpoint() int64 { return w.segment.pending.id }

func (w *operatorWriter) Later(f func(context.Context) error) { w.later(f) }

// Incremental implements snapshot.Writer: checkpoints have files in common, a savepoint stands
// alone and can be read without what made it.
func (w *operatorWriter) Incremental() bool { return w.segment.pending.kind == KindCheckpoint }

// Share implements snapshot.Writer.
func (w *operatorWriter) Share(name string, size int64, open func() (io.ReadCloser, error)) error {
	s := w.segment
	ref, err := s.Shared(name, size, open)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	op := &s.index.Operators[w.at]
	if !slices.Contains(op.Shared, ref.Name) {
		op.Shared = append(op.Shared, ref.Name)
	}
	return nil
}

func (w *operatorWriter) Part(part snapshot.Part) (snapshot.PartWriter, error) {
	s := w.segment
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return nil, s.over()
	}
	op := &s.index.Operators[w.at]
	for _, other := range op.Parts {
		if other.Part.Name == part.Name {
			return nil, fmt.Errorf("checkpoint: %v has two parts %q", w.info, part.Name)
		}
	}
	index := &partIndex{Part: part}
	op.Parts = append(op.Parts, index)
	p := &partWriter{segment: s, operator: w.info, index: index}
	s.parts = append(s.parts, p)
	return p, nil
}

// over returns why nothing more can be written. The lock is held.
func (s *Segment) over() error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("checkpoint %d: the segment of %s-%d is finished", s.pending.id, s.info.Vertex, s.info.Subtask)
}

// write is the segment's goroutine: it writes batches until there will be no more.
func (s *Segment) write() {
	defer close(s.ended)
	var out blockWriter
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.queue) == 0 && !s.closed {
			s.changed.Wait()
		}
		if len(s.queue) == 0 {
			return
		}
		b := s.queue[0]
		s.queue = s.queue[1:]
		if s.err == nil {
			s.mu.Unlock()
			err := out.writeBatch(s, b)
			s.mu.Lock()
			if err != nil {
				s.fail(s.failed(err))
			}
		}
		s.queued -= b.held
		b.reset()
		s.free = append(s.free, b)
		s.changed.Broadcast()
	}
}

// fail makes err the segment's end. The lock is held.
func (s *Segment) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// written takes note of a block that is in the file.
func (s *Segment) written(b *batch, raw int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	raw = min(raw, b.held)
	b.held -= raw
	s.queued -= raw
	s.changed.Broadcast()
}

// Finish writes the index and makes the file safe. Every part must be closed. If it
// fails, the segment is aborted.
func (s *Segment) Finish() (SegmentInfo, error) {
	s.end(nil)
	if err := s.complete(); err != nil {
		s.Abort()
		return SegmentInfo{}, err
	}
	s.pending.finished(s)
	return s.info, nil
}

// end has the goroutine end, and waits for it.
func (s *Segment) end(err error) {
	s.mu.Lock()
	s.closed = true
	if err != nil {
		s.fail(err)
	}
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.ended
}

func (s *Segment) complete() error {
	s.mu.Lock()
	err := s.err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, p := range s.parts {
		if !p.closed {
			return fmt.Errorf("checkpoint %d: %v did not close its part %q", s.pending.id, p.operator, p.index.Part.Name)
		}
	}
	for _, op := range s.index.Operators {
		if len(op.Parts) > 0 {
			s.info.Operators = append(s.info.Operators, op.Operator.ID)
		}
	}
	s.info.Shared = s.index.Shared
	if err := s.writeIndex(); err != nil {
		return s.failed(err)
	}
	if err := s.file.commit(); err != nil {
		return s.failed(err)
	}
	return nil
}

func (s *Segment) writeIndex() error {
	c, err := codec.For[segmentIndex]()
	if err != nil {
		return err
	}
	schema := c.Schema()
	raw := binary.LittleEndian.AppendUint32(nil, uint32(len(schema)))
	if raw, err = c.Append(append(raw, schema...), &s.index); err != nil {
		return err
	}
	if len(raw) > maxRaw {
		return fmt.Errorf("its index would have %d bytes: use a higher parallelism", len(raw))
	}
	offset := s.info.Size
	out, checksum, err := s.pending.store.compress.appendBlock(nil, raw, offset)
	if err != nil {
		return err
	}
	out = appendTrailer(out, offset, s.index.Checkpoint, checksum)
	s.info.Index = checksum
	s.info.Size += int64(len(out))
	_, err = s.file.Write(out)
	return err
}

func appendTrailer(dst []byte, index, checkpoint int64, checksum uint64) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(index))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(checkpoint))
	dst = binary.LittleEndian.AppendUint64(dst, checksum)
	dst = binary.LittleEndian.AppendUint64(dst, xxh3.Hash(dst[start:]))
	return append(dst, trailerMagic...)
}

// errAborted is what writers of a segment get that was given up.
var errAborted = errors.New("checkpoint: the checkpoint has been given up")

// Abort gives the segment up and removes the file. It may be called at any time, also
// while others write, and more than once.
func (s *Segment) Abort() {
	s.mu.Lock()
	s.fail(errAborted)
	s.mu.Unlock()
	_ = s.file.abort() // a write that hangs ends with it; Pending.Abort removes what is left
	s.end(errAborted)
}

// sizes tells the bytes of state in parts and shared files by operator. The segment is finished.
func (s *Segment) sizes(add func(operator string, bytes int64)) {
	files := map[string]int64{}
	for _, ref := range s.index.Shared {
		files[ref.Name] = ref.Size
	}
	for _, op := range s.index.Operators {
		for _, p := range op.Parts {
			if p.Part.Name != snapshot.EventTimePart {
				add(op.Operator.ID, p.Raw)
			}
		}
		for _, name := range op.Shared {
			add(op.Operator.ID, files[name])
		}
	}
}
