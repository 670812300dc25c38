package csv

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/lowwater/lowwater/format"
)

// Option is a setting of the format.
type Option func(*settings)

type settings struct {
	comma    rune
	null     string
	noHeader bool
}

// Comma sets what separates columns, such as ';' or '\t'. Default is a comma.
func Comma(c rune) Option { return func(s *settings) { s.comma = c } }

// Null sets the text of a null, for columns whose field is a pointer. Default is the empty
// text.
func Null(text string) Option { return func(s *settings) { s.null = text } }

// NoHeader is for files whose first line is a record. Columns are the fields of the struct
// in the order of their declaration, and no other ones.
func NoHeader() Option { return func(s *settings) { s.noHeader = true } }

// Format reads and writes files of one T per line.
type Format[T any] struct {
	settings
	columns []column
	err     error
}

var _ format.File[struct{}] = (*Format[struct{}])(nil)

// File returns the format of files with one T, which is a struct, per line.
func File[T any](options ...Option) *Format[T] {
	f := &Format[T]{settings: settings{comma: ','}}
	for _, o := range options {
		o(&f.settings)
	}
	f.columns, f.err = columnsOf(reflect.TypeFor[T]())
	return f
}

// Validate reports wrong options, and fields of T that have no text.
func (f *Format[T]) Validate() error {
	errs := []error{f.err}
	if f.comma == 0 || f.comma == '"' || f.comma == '\r' || f.comma == '\n' || f.comma == utf8.RuneError || !utf8.ValidRune(f.comma) {
		errs = append(errs, fmt.Errorf("csv: Comma(%q): want a character that is no quote and no line end", f.comma))
	}
	if strings.ContainsFunc(f.null, func(r rune) bool { return r == '\r' || r == '\n' || r == '"' || r == f.comma }) {
		errs = append(errs, fmt.Errorf("csv: Null(%q): want a text that needs no quotes", f.null))
	}
	return errors.Join(errs...)
}

// Extension implements format.File.
func (f *Format[T]) Extension() string { return ".csv" }

// Compressible implements format.File.
func (f *Format[T]) Compressible() bool { return true }

// NewWriter implements format.File.
func (f *Format[T]) NewWriter(w io.Writer) (format.RecordWriter[T], error) {
	out := &writer[T]{format: f, out: w}
	out.root = reflect.ValueOf(&out.value).Elem()
	if f.noHeader {
		return out, nil
	}
	for i := range f.columns {
		out.append(i, []byte(f.columns[i].name))
	}
	return out, out.flush()
}

// writer writes one file.
type writer[T any] struct {
	format *Format[T]
	out    io.Writer
	// value is the record that is being written, root the same for reflection.
	value T
	root  reflect.Value
	text  []byte // of one column, without quotes
	line  []byte
}

func (w *writer[T]) Write(v T) error {
	w.value = v
	for i := range w.format.columns {
		c := &w.format.columns[i]
		var err error
		if w.text, err = c.appendText(w.text[:0], w.root.FieldByIndex(c.index), w.format.null); err != nil {
			return fmt.Errorf("csv: field %s: %w", c.field, err)
		}
		w.append(i, w.text)
	}
	return w.flush()
}

func (w *writer[T]) Close() error { return nil }

func (w *writer[T]) flush() error {
	w.line = append(w.line, '\n')
	_, err := w.out.Write(w.line)
	w.line = w.line[:0]
	return err
}

// append adds column i to the line, in quotes where encoding/csv would have them, and where
// a line would be empty, which readers skip.
func (w *writer[T]) append(i int, text []byte) {
	if i > 0 {
		w.line = utf8.AppendRune(w.line, w.format.comma)
	}
	if !needsQuotes(text, w.format.comma) && (len(text) > 0 || len(w.format.columns) > 1) {
		w.line = append(w.line, text...)
		return
	}
	w.line = append(w.line, '"')
	for _, c := range text {
		if c == '"' {
			w.line = append(w.line, '"')
		}
		w.line = append(w.line, c)
	}
	w.line = append(w.line, '"')
}

// needsQuotes reports whether a text would be read as something else without quotes.
func needsQuotes(text []byte, comma rune) bool {
	if len(text) == 0 {
		return false
	}
	if text[0] == ' ' || text[0] == '\t' || string(text) == `\.` {
		return true // a lone \. ends a COPY of PostgreSQL
	}
	for len(text) > 0 {
		r, n := rune(text[0]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text)
		}
		if r == comma || r == '"' || r == '\r' || r == '\n' {
			return true
		}
		text = text[n:]
	}
	return false
}
