package format

import "io"

// File is a format of whole files: it says how records lie in one. It is used by all
// subtasks at once and must be safe for concurrent use; its readers and writers need not
// be.
type File[T any] interface {
	// Validate tells before the first file that the format will not work, for example
	// because T has a field that it has no value for.
	Validator
	// Extension is what the names of such files end in, such as ".csv".
	Extension() string
	// Compressible reports whether a file may be compressed as a whole. A format that
	// is read at random places, or compresses by itself, is not.
	Compressible() bool
	// NewWriter begins a file.
	NewWriter(w io.Writer) (RecordWriter[T], error)
	// NewReader begins to read a file at a position that a RecordReader told for one with
	// the same contents; 0 is the beginning.
	NewReader(in FileInput, position int64) (RecordReader[T], error)
}

// FileInput is the contents of a file, decompressed. The reader may move it as it likes.
// ReadAt and Size are for formats that are not Compressible only.
type FileInput interface {
	io.ReadSeeker
	io.ReaderAt
	Size() int64
}

// RecordWriter writes the records of one file.
type RecordWriter[T any] interface {
	// Write appends a record. It may keep the value until Close.
	Write(v T) error
	// Close writes what is missing of the file. It does not close what is below.
	Close() error
}

// RecordReader reads the records of one file.
type RecordReader[T any] interface {
	// Next reads the next record into *into, which holds the zero value of T. It returns
	// io.EOF at the end of the file, and a *RecordError if this record alone is wrong: the
	// next call reads the one behind it.
	Next(into *T) error
	// Start returns where the record of the last Next begins: its byte in the
	// decompressed file, or its row.
	Start() int64
	// Position returns where the record behind it does, for NewReader.
	Position() int64
}

// RecordError says that one record of a file cannot be decoded. Reading it again gives
// the same error.
type RecordError struct {
	// Data is what the file holds of the record. It is valid until the next call of the
	// reader.
	Data []byte
	Err  error
}

func (e *RecordError) Error() string { return e.Err.Error() }
func (e *RecordError) Unwrap() error { return e.Err }
