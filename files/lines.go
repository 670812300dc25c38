package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/lowwater/lowwater/format"
	"github.com/lowwater/lowwater/format/json"
)

// maxLine bounds the bytes of a line, which must fit in memory.
const maxLine = 64 << 20

// Lines is the format of files with one record per line, each ended by a newline; that of
// the last may be missing. A decoder sees a line without its newline, but with what else
// there is, also a carriage return and an empty line. A record whose bytes contain a
// newline ends the job, as does a line of more than 64 MiB. Values that the encoder returns
// nil for are not written. extension is what the files' names end in, such as ".txt".
//
// Either dec or enc may be nil if the format is for a sink or a source only.
func Lines[T any](dec format.Decoder[T], enc format.Encoder[T], extension string) format.File[T] {
	return &lines[T]{dec: dec, enc: enc, extension: extension}
}

// JSONLines is the format of files with one JSON value per line, as package format/json
// decodes and encodes them. Empty lines are skipped.
func JSONLines[T any]() format.File[T] {
	return &lines[T]{json.Value[T](), json.Encode[T](), ".jsonl", true}
}

type lines[T any] struct {
	dec       format.Decoder[T]
	enc       format.Encoder[T]
	extension string
	skipEmpty bool
}

func (l *lines[T]) Validate() error {
	if l.dec == nil && l.enc == nil {
		return errors.New("lines: neither a decoder nor an encoder")
	}
	var errs []error
	if v, ok := l.dec.(format.Validator); ok {
		errs = append(errs, v.Validate())
	}
	if v, ok := l.enc.(format.Validator); ok {
		errs = append(errs, v.Validate())
	}
	return errors.Join(errs...)
}

func (l *lines[T]) Extension() string  { return l.extension }
func (l *lines[T]) Compressible() bool { return true }

func (l *lines[T]) NewWriter(w io.Writer) (format.RecordWriter[T], error) {
	if l.enc == nil {
		return nil, errors.New("the format has no encoder")
	}
	return &lineWriter[T]{enc: l.enc, out: w, line: make([]byte, 0, 256)}, nil
}

type lineWriter[T any] struct {
	enc  format.Encoder[T]
	out  io.Writer
	line []byte
}

func (w *lineWriter[T]) Write(v T) error {
	line, err := w.enc.Encode(w.line[:0], v)
	if err != nil || line == nil {
		return err
	}
	w.line = line
	if i := bytes.IndexByte(line, '\n'); i >= 0 {
		return fmt.Errorf("the record has a newline at byte %d, where a reader would see it end: %.100q", i, line)
	}
	w.line = append(line, '\n')
	_, err = w.out.Write(w.line)
	return err
}

func (w *lineWriter[T]) Close() error { return nil }

func (l *lines[T]) NewReader(in format.FileInput, position int64) (format.RecordReader[T], error) {
	if l.dec == nil {
		return nil, errors.New("the format has no decoder")
	}
	_, err := in.Seek(position, io.SeekStart)
	return &lineReader[T]{of: l, in: in, position: position}, err
}

type lineReader[T any] struct {
	of              *lines[T]
	in              io.Reader
	buf             []byte // what is read and not passed on
	room            []byte // buf is in it
	ended           bool
	start, position int64 // of the last record
}

func (r *lineReader[T]) Start() int64    { return r.start }
func (r *lineReader[T]) Position() int64 { return r.position }

func (r *lineReader[T]) Next(into *T) error {
	for {
		line, err := r.line()
		if err != nil {
			return err
		}
		if r.of.skipEmpty && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := r.of.dec.Decode(line, into); err != nil {
			return &format.RecordError{Data: line, Err: err}
		}
		return nil
	}
}

// line returns the next line, which is valid until the next call.
func (r *lineReader[T]) line() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buf[searched:], '\n'); i >= 0 {
			return r.take(searched+i, 1), nil
		}
		searched = len(r.buf)
		switch {
		case r.ended && searched == 0:
			return nil, io.EOF
		case r.ended:
			return r.take(searched, 0), nil
		case searched > maxLine:
			return nil, fmt.Errorf("the line at byte %d has more than %d bytes", r.position, maxLine)
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// take returns n bytes and leaves out those of the line's end.
func (r *lineReader[T]) take(n, end int) []byte {
	line := r.buf[:n]
	r.buf = r.buf[n+end:]
	r.start = r.position
	r.position += int64(n + end)
	return line
}

const readSize = 64 << 10

func (r *lineReader[T]) fill() error {
	if len(r.room)-len(r.buf) < readSize/2 {
		r.room = make([]byte, max(2*len(r.buf), readSize))
	}
	n := copy(r.room, r.buf)
	more, err := r.in.Read(r.room[n:])
	r.buf = r.room[:n+more]
	if err == io.EOF {
		r.ended, err = true, nil
	}
	return err
}
