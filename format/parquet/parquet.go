// Package parquet is the format of Apache Parquet files, on parquet-go.
//
// The schema is that of the Go type, by parquet-go's tags (`parquet:"name,zstd"`). A file is
// read by the columns that it shares with the type; a field without a column is left zero.
// Records of a file that are wrong cannot be told from the file being wrong, so that all
// errors are the file's.
//
// It does not push filters down, and knows no files: package files does.
package parquet

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/lowwater/lowwater/format"
)

// Option is a setting of the format.
type Option func(*settings)

type settings struct {
	rowGroup int64
}

// defaultRowGroup bounds what an open file holds in memory.
const defaultRowGroup = 100_000

// rowsAtOnce is how many rows are handed to or asked from the library.
const rowsAtOnce = 128

// RowGroup sets how many rows a row group has at most. A file that is being written holds
// one in memory, so this, the size of a row and the number of files that are written at a
// time say how much memory a sink takes. Default 100,000.
func RowGroup(rows int64) Option { return func(s *settings) { s.rowGroup = rows } }

// Format reads and writes Parquet files of T.
type Format[T any] struct {
	settings
	err error
}

var _ format.File[struct{ A int }] = (*Format[struct{ A int }])(nil)

// File returns the format of Parquet files whose rows are a T, which is a struct.
func File[T any](options ...Option) *Format[T] {
	f := &Format[T]{settings: settings{rowGroup: defaultRowGroup}}
	for _, o := range options {
		o(&f.settings)
	}
	f.err = guard("the schema of the type", func() error {
		if len(parquet.SchemaOf(new(T)).Fields()) == 0 {
			return fmt.Errorf("parquet: %T has no field that could be a column", *new(T))
		}
		return nil
	})
	return f
}

// guard turns panics of the library, which it has for types without a schema and for
// broken files, into errors.
func guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("parquet: %s: %v", what, r)
		}
	}()
	return f()
}

// Validate reports wrong options, and a T without a schema.
func (f *Format[T]) Validate() error {
	if f.rowGroup < 1 {
		return errors.Join(f.err, fmt.Errorf("parquet: RowGroup(%d): want at least 1", f.rowGroup))
	}
	return f.err
}

// Extension implements format.File.
func (f *Format[T]) Extension() string { return ".parquet" }

// Compressible implements format.File: columns are compressed, as their tags say.
func (f *Format[T]) Compressible() bool { return false }

// NewWriter implements format.File.
func (f *Format[T]) NewWriter(w io.Writer) (format.RecordWriter[T], error) {
	out := &writer[T]{rows: make([]T, 0, rowsAtOnce)}
	return out, guard("beginning a file", func() error {
		out.out = parquet.NewGenericWriter[T](w, parquet.MaxRowsPerRowGroup(f.rowGroup))
		return nil
	})
}

type writer[T any] struct {
	out  *parquet.GenericWriter[T]
	rows []T
}

func (w *writer[T]) Write(v T) error {
	w.rows = append(w.rows, v)
	if len(w.rows) < cap(w.rows) {
		return nil
	}
	return w.flush()
}

func (w *writer[T]) flush() error {
	err := guard("writing rows", func() error {
		_, err := w.out.Write(w.rows)
		return err
	})
	clear(w.rows)
	w.rows = w.rows[:0]
	return err
}

func (w *writer[T]) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return guard("ending a file", w.out.Close)
}

// NewReader implements format.File. A position is the number of a row.
func (f *Format[T]) NewReader(in format.FileInput, position int64) (format.RecordReader[T], error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	r := &reader[T]{rows: make([]T, rowsAtOnce), next: position}
	err := guard("opening it", func() error {
		file, err := parquet.OpenFile(in, in.Size())
		if err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
		r.in, r.total = parquet.NewGenericReader[T](file), file.NumRows()
		if position > r.total {
			return fmt.Errorf("parquet: it has %d rows, row %d is to be read next", r.total, position)
		}
		return r.in.SeekToRow(position)
	})
	return r, err
}

type reader[T any] struct {
	in          *parquet.GenericReader[T]
	rows        []T // room for rows; those from used to read are not passed on yet
	used, read  int
	next, total int64
}

func (r *reader[T]) Start() int64    { return r.next - 1 }
func (r *reader[T]) Position() int64 { return r.next }

func (r *reader[T]) Next(into *T) error {
	if r.next == r.total {
		return io.EOF
	}
	if r.used == r.read {
		if err := r.fill(); err != nil {
			return err
		}
	}
	*into = r.rows[r.used]
	r.used++
	r.next++
	return nil
}

// fill reads the next rows. What rows hold has been passed on and must not be written to
// again.
func (r *reader[T]) fill() error {
	clear(r.rows)
	r.used, r.read = 0, 0
	err := guard("reading rows", func() (err error) {
		r.read, err = r.in.Read(r.rows)
		return err
	})
	switch {
	case r.read > 0 && (err == nil || errors.Is(err, io.EOF)):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("parquet: it ends after %d of %d rows", r.next, r.total)
	default:
		return fmt.Errorf("parquet: row %d or one of those behind it: %w", r.next, err)
	}
}
