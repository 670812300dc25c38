package csv

import (
	stdcsv "encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/lowwater/lowwater/format"
)

// reader reads one file. A line costs one allocation, which its strings share.
type reader[T any] struct {
	format *Format[T]
	csv    *stdcsv.Reader
	window *window
	// base is where csv began to read; start and position are those of the last record.
	base, start, position int64
	// cells are which cell of a line each column is, -1 if the file has no such column.
	cells []int
}

// NewReader implements format.File.
func (f *Format[T]) NewReader(in format.FileInput, position int64) (format.RecordReader[T], error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	r := &reader[T]{format: f}
	width := len(f.columns)
	if f.noHeader {
		for i := range f.columns {
			r.cells = append(r.cells, i)
		}
	} else {
		r.read(in, 0, 0)
		header, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			return r, nil // an empty file: the next Read says so
		}
		if err != nil {
			return nil, fmt.Errorf("csv: its header: %w", err)
		}
		if r.cells, err = f.match(header); err != nil {
			return nil, err
		}
		width = len(header)
		r.position = r.csv.InputOffset()
		r.csv.FieldsPerRecord = width
		if position <= r.position {
			return r, nil
		}
	}
	if _, err := in.Seek(position, io.SeekStart); err != nil {
		return nil, err
	}
	r.read(in, position, width)
	return r, nil
}

// read has the reader read from in, which is at offset base.
func (r *reader[T]) read(in io.Reader, base int64, width int) {
	r.window = &window{in: in, base: base}
	r.csv = stdcsv.NewReader(r.window)
	r.csv.Comma, r.csv.ReuseRecord, r.csv.FieldsPerRecord = r.format.comma, true, width
	r.base, r.position = base, base
}

// match finds the columns in the header of a file.
func (f *Format[T]) match(header []string) (cells []int, err error) {
	at := map[string]int{}
	var twice []string
	for i, name := range header {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		if _, seen := at[name]; seen {
			twice = append(twice, name)
		}
		at[name] = i
	}
	for _, c := range f.columns {
		cell, ok := at[c.name]
		if !ok && !c.optional {
			return nil, fmt.Errorf("csv: its header has no column %q for field %s, only %.300q: correct the tag, or add the option optional to it", c.name, c.field, header)
		}
		for _, name := range twice {
			if name == c.name {
				return nil, fmt.Errorf("csv: its header has column %q twice", name)
			}
		}
		if !ok {
			cell = -1
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

func (r *reader[T]) Start() int64    { return r.start }
func (r *reader[T]) Position() int64 { return r.position }

func (r *reader[T]) Next(into *T) error {
	r.start = r.position
	r.window.keep = r.start
	line, err := r.csv.Read()
	r.position = r.base + r.csv.InputOffset()
	if err != nil {
		var wrong *stdcsv.ParseError
		if errors.As(err, &wrong) {
			return r.reject(wrong.Err)
		}
		return err
	}
	root := reflect.ValueOf(into).Elem()
	for i, cell := range r.cells {
		if cell < 0 {
			continue
		}
		c := &r.format.columns[i]
		if err := c.set(root.FieldByIndex(c.index), line[cell], r.format.null); err != nil {
			return r.reject(fmt.Errorf("column %q: %w", c.name, err))
		}
	}
	return nil
}

func (r *reader[T]) reject(cause error) error {
	return &format.RecordError{Data: r.window.between(r.start, r.position), Err: fmt.Errorf("csv: %w", cause)}
}

// window passes on what it reads and remembers it from offset keep on.
type window struct {
	in     io.Reader
	recent []byte
	base   int64 // the offset of recent[0]
	keep   int64
}

func (w *window) Read(p []byte) (int, error) {
	if old := int(w.keep - w.base); old > 0 {
		w.recent = w.recent[:copy(w.recent, w.recent[old:])]
		w.base = w.keep
	}
	n, err := w.in.Read(p)
	w.recent = append(w.recent, p[:n]...)
	return n, err
}

func (w *window) between(start, end int64) []byte {
	return w.recent[start-w.base : end-w.base]
}
