package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format"
)

// chunksAhead is how many chunks are read ahead.
const chunksAhead = 2

// chunk is a run of records of one file, read ahead.
type chunk[T any] struct {
	file     *file[T]
	values   []T
	offsets  []int64 // where each record begins
	rejected []rejected
	// next is where the record behind the chunk begins, in a file that had that size and time
	// of modification when it was opened.
	next, size, modified int64
	// end is the position of the file's end, -1 if that is not known.
	end      int64
	finished bool
	err      error
}

// rejected is a record that cannot be decoded.
type rejected struct {
	offset int64
	data   []byte
	err    error
}

// file is one split of a reader.
type file[T any] struct {
	id string

	// These are the fetcher's goroutine's. from is where it began to read.
	from    split
	open    *os.File
	close   func() // of what decompresses it
	records format.RecordReader[T]
	end     int64
	ended   bool

	// These are written by the subtask, under the fetcher's mu. split says what has been
	// passed on.
	split  split
	passed int64 // the file's end, -1 if not known
	paused bool
}

// fetcher reads files in a goroutine of its own.
type fetcher[T any] struct {
	format format.File[T]
	cfg    sourceConfig

	mu    sync.Mutex
	files []*file[T] // those not read to their end, in the order in which they are to be read

	changed chan struct{} // tells the goroutine that files are added or resumed
	chunks  chan *chunk[T]
	wake    chan struct{} // tells the subtask of chunks
	stop    chan struct{}
	stopped chan struct{}
	spare   chan *chunk[T]
}

func newFetcher[T any](f format.File[T], cfg sourceConfig) *fetcher[T] {
	return &fetcher[T]{
		format: f, cfg: cfg,
		changed: make(chan struct{}, 1),
		chunks:  make(chan *chunk[T], chunksAhead),
		wake:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		spare:   make(chan *chunk[T], chunksAhead+2),
	}
}

// signal tells the receiver of c that something is new.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run reads until it is stopped, or a file is broken.
func (f *fetcher[T]) run() {
	defer close(f.stopped)
	defer f.closeFiles()
	for {
		file := f.pick()
		if file == nil {
			select {
			case <-f.changed:
				continue
			case <-f.stop:
				return
			}
		}
		c := f.takeChunk()
		c.file = file
		c.err = f.fill(c, file)
		failed := c.err != nil
		select {
		case f.chunks <- c:
			signal(f.wake)
		case <-f.stop:
			return
		}
		if failed {
			return
		}
	}
}

// pick returns the first file that is not paused.
func (f *fetcher[T]) pick() *file[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.files = slices.DeleteFunc(f.files, func(file *file[T]) bool { return file.ended })
	for _, file := range f.files {
		if !file.paused {
			return file
		}
	}
	return nil
}

// setFiles sets what is to be read, in that order. Files that are read to their end may be
// among them.
func (f *fetcher[T]) setFiles(files []*file[T]) {
	f.mu.Lock()
	f.files = files
	f.mu.Unlock()
	signal(f.changed)
}

func (f *fetcher[T]) closeFiles() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.files {
		file.finish()
	}
}

func (f *fetcher[T]) takeChunk() *chunk[T] {
	select {
	case c := <-f.spare:
		return c
	default:
		return &chunk[T]{}
	}
}

// giveBack takes a chunk that has been passed on.
func (f *fetcher[T]) giveBack(c *chunk[T]) {
	clear(c.values)
	clear(c.rejected)
	*c = chunk[T]{values: c.values[:0], offsets: c.offsets[:0], rejected: c.rejected[:0]}
	select {
	case f.spare <- c:
	default:
	}
}

// fill reads up to a batch of records of a file.
func (f *fetcher[T]) fill(c *chunk[T], file *file[T]) error {
	if file.open == nil {
		if err := file.begin(f.format); err != nil {
			return fmt.Errorf("files source: %s: %w", file.id, err)
		}
	}
	c.size, c.modified, c.end = file.from.size, file.from.modified, file.end
	for len(c.values)+len(c.rejected) < connector.BatchSize {
		n := len(c.values)
		var zero T
		c.values = append(c.values, zero)
		err := file.records.Next(&c.values[n])
		c.next = file.records.Position()
		if err == nil {
			c.offsets = append(c.offsets, file.records.Start())
			continue
		}
		c.values[n] = zero
		c.values = c.values[:n]
		if err == io.EOF { // not one that a decoder has met within a record
			c.finished = true
			return f.checkWhole(file)
		}
		if err := f.reject(c, file, err); err != nil {
			return err
		}
	}
	return nil
}

// reject notes a record that cannot be decoded, or returns why the job has to end.
func (f *fetcher[T]) reject(c *chunk[T], file *file[T], err error) error {
	var wrong *format.RecordError
	start := file.records.Start()
	if !errors.As(err, &wrong) {
		return fmt.Errorf("files source: %s, behind position %d: %w", file.id, start, err)
	}
	if f.cfg.onDecodeError == FailJob {
		return fmt.Errorf("files source: cannot decode the record at byte %d of %s: %w; correct the decoder, or set OnDecodeError to SkipRecord or ToDeadLetters",
			start, file.id, wrong.Err)
	}
	c.rejected = append(c.rejected, rejected{start, slices.Clone(wrong.Data), wrong.Err})
	return nil
}

// checkWhole reports that what was read is not the file.
func (f *fetcher[T]) checkWhole(file *file[T]) error {
	defer file.finish()
	info, err := file.open.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("files source: %s: %w", file.id, err)
	case info.Size() < file.from.size:
		return fmt.Errorf("files source: %s shrank from %d to %d bytes while it was read", file.id, file.from.size, info.Size())
	case info.Size() > file.from.size && f.cfg.watch:
		return fmt.Errorf("files source: %s grew from %d to %d bytes while it was read: hide files until they are whole, by their names, or use MinAge",
			file.id, file.from.size, info.Size())
	}
	return nil
}

// begin opens the file where it is to be read on.
func (file *file[T]) begin(f format.File[T]) (err error) {
	if file.open, err = os.Open(file.id); err != nil {
		return err
	}
	info, err := file.open.Stat()
	if err != nil {
		return err
	}
	was, size, modified := file.from, info.Size(), info.ModTime().UnixNano()
	if was.position > 0 && (size != was.size || modified != was.modified) {
		return fmt.Errorf("it has changed since the checkpoint, which has read it up to position %d: it had %d bytes and was modified at %s, now it has %d and was modified at %s: "+
			"bring back what it was, or begin anew by giving the source another UID",
			was.position, was.size, timeText(was.modified), size, timeText(modified))
	}
	file.from.size, file.from.modified = size, modified
	codec := codecOf(file.id)
	if codec != NoCompression && !f.Compressible() {
		return fmt.Errorf("files that end in %q cannot be read when they are compressed as a whole", f.Extension())
	}
	if file.end = size; codec != NoCompression || !f.Compressible() {
		file.end = -1
	}
	in, end, err := codec.newInput(file.open, size)
	if err != nil {
		return err
	}
	file.close = end
	file.records, err = f.NewReader(in, was.position)
	return err
}

func timeText(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339Nano) }

// finish closes what is open.
func (file *file[T]) finish() {
	file.ended = true
	if file.close != nil {
		file.close()
	}
	if file.open != nil {
		file.open.Close()
	}
}
