package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/lowwater/lowwater/format"
)

// Codec is how files are compressed as a whole.
type Codec uint8

const (
	NoCompression Codec = iota
	// Gzip adds ".gz" to names.
	Gzip
	// Zstd, Zstandard, adds ".zst" to names.
	Zstd
)

// String returns the name of the constant.
func (c Codec) String() string {
	switch c {
	case NoCompression:
		return "NoCompression"
	case Gzip:
		return "Gzip"
	case Zstd:
		return "Zstd"
	default:
		return fmt.Sprintf("Codec(%d)", uint8(c))
	}
}

func (c Codec) extension() string {
	return [...]string{"", ".gz", ".zst"}[c]
}

// codecOf tells from a file's name how it is compressed.
func codecOf(name string) Codec {
	switch {
	case strings.HasSuffix(name, Gzip.extension()):
		return Gzip
	case strings.HasSuffix(name, Zstd.extension()):
		return Zstd
	default:
		return NoCompression
	}
}

// compressor is a stream that can be used again for another file.
type compressor interface {
	io.WriteCloser
	Reset(w io.Writer)
}

// maxWindow bounds what a Zstandard file may make a reader hold in memory.
const maxWindow = 64 << 20

func (c Codec) newCompressor(w io.Writer) (compressor, error) {
	if c == Zstd {
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return gzip.NewWriter(w), nil
}

// newInput returns the contents of a file of which size bytes are read. close ends what
// belongs to it, but not the file.
func (c Codec) newInput(f *os.File, size int64) (in format.FileInput, close func(), err error) {
	section := io.NewSectionReader(f, 0, size)
	d := &decompressed{section: section}
	switch c {
	case Gzip:
		r, err := gzip.NewReader(section)
		if err != nil {
			return nil, nil, err
		}
		d.Reader, d.reset = r, r.Reset
		return d, func() {}, nil
	case Zstd:
		r, err := zstd.NewReader(section, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		d.Reader, d.reset = r, r.Reset
		return d, r.Close, nil
	default:
		return section, func() {}, nil
	}
}

// decompressed is the contents of a compressed file, in which one gets anywhere by reading
// from the beginning.
type decompressed struct {
	io.Reader
	section *io.SectionReader
	reset   func(io.Reader) error
}

func (d *decompressed) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, errors.ErrUnsupported
	}
	if _, err := d.section.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	if err := d.reset(d.section); err != nil {
		return 0, err
	}
	n, err := io.CopyN(io.Discard, d.Reader, offset)
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("it has only %d bytes, byte %d is to be read next", n, offset)
	}
	return n, err
}

func (d *decompressed) ReadAt([]byte, int64) (int, error) { return 0, errors.ErrUnsupported }
func (d *decompressed) Size() int64                       { return -1 }
