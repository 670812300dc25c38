package files

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lowwater/lowwater/format"
)

// bufferSize is what is gathered in memory before it goes to the file.
const bufferSize = 64 << 10

// part is a file that is being written.
type part[T any] struct {
	bucket  string
	name    string // relative to the directory, as it will be visible
	file    *os.File
	streams *streams
	records format.RecordWriter[T]
	opened  time.Time
	// used says when it was written to last, in the order of the writer's records.
	used uint64
}

// streams are what is between a format and a file. They are used again for other files.
type streams struct {
	buffer   *bufio.Writer
	compress compressor // nil if files are not compressed
	written  int64      // bytes of the format
}

func newStreams(codec Codec) (*streams, error) {
	s := &streams{buffer: bufio.NewWriterSize(nil, bufferSize)}
	if codec == NoCompression {
		return s, nil
	}
	var err error
	s.compress, err = codec.newCompressor(s.buffer)
	return s, err
}

func (s *streams) reset(w io.Writer) {
	s.written = 0
	s.buffer.Reset(w)
	if s.compress != nil {
		s.compress.Reset(s.buffer)
	}
}

func (s *streams) Write(p []byte) (n int, err error) {
	s.written += int64(len(p))
	if s.compress != nil {
		return s.compress.Write(p)
	}
	return s.buffer.Write(p)
}

func (s *streams) finish() error {
	if s.compress != nil {
		if err := s.compress.Close(); err != nil {
			return err
		}
	}
	return s.buffer.Flush()
}

// open begins a new file in a bucket.
func (w *writer[T]) open(bucket string) (*part[T], error) {
	if err := checkBucket(bucket); err != nil {
		return nil, fmt.Errorf("files sink: bucket %q: %w", bucket, err)
	}
	if len(w.current) >= w.cfg.maxOpen {
		if err := w.endOldest(); err != nil {
			return nil, err
		}
	}
	folder := "."
	name := partName(w.cfg.prefix, w.rt.Subtask, w.run, w.parts, w.extension)
	if bucket != "" {
		folder, name = bucket, bucket+"/"+name
	}
	if err := w.dir.makeBucket(folder); err != nil {
		return nil, w.errorf("making bucket %q: %w", bucket, err)
	}
	w.parts++
	f, err := w.dir.root.OpenFile(hidden(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, w.errorf("%w", err)
	}
	p := &part[T]{bucket: bucket, name: name, file: f, opened: time.Now()}
	w.current[bucket] = p
	if p.streams, err = w.takeStreams(); err != nil {
		return nil, w.failed(p, err)
	}
	p.streams.reset(f)
	if p.records, err = w.format.NewWriter(p.streams); err != nil {
		return nil, w.failed(p, err)
	}
	return p, nil
}

func (w *writer[T]) takeStreams() (*streams, error) {
	if n := len(w.spare); n > 0 {
		s := w.spare[n-1]
		w.spare = w.spare[:n-1]
		return s, nil
	}
	return newStreams(w.cfg.codec)
}

// end writes what is missing of a file and makes it safe on disk, still hidden.
func (w *writer[T]) end(p *part[T]) error {
	if err := p.records.Close(); err != nil {
		return w.failed(p, err)
	}
	if err := p.streams.finish(); err != nil {
		return w.failed(p, err)
	}
	if err := p.file.Sync(); err != nil {
		return w.failed(p, err)
	}
	if err := p.file.Close(); err != nil {
		return w.failed(p, err)
	}
	w.spare = append(w.spare, p.streams)
	delete(w.current, p.bucket)
	if w.last == p {
		w.last = nil
	}
	w.ended = append(w.ended, p.name)
	return nil
}

// failed names the file that an error is about.
func (w *writer[T]) failed(p *part[T], err error) error {
	return w.errorf("writing %s: %w", w.dir.root.Name()+"/"+hidden(p.name), err)
}
