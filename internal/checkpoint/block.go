package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"
)

const (
	// maxRaw is the largest block before compression.
	maxRaw = 256 << 20
	// maxEntry leaves room in it for lengths.
	maxEntry = maxRaw - 64
	// frameSize is what a block has around its payload.
	frameSize = 16
)

// compressor and decompressor are safe for concurrent use, and what they keep is worth
// keeping. Each store and each open checkpoint has its own, made when it is needed: they
// have channels inside, which must not be carried from one bubble of testing/synctest to
// another.
type (
	compressor   func() (*zstd.Encoder, error)
	decompressor func() (*zstd.Decoder, error)
)

func newCompressor() compressor {
	return sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	})
}

func newDecompressor() decompressor {
	return sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRaw), zstd.WithDecodeAllCapLimit(true))
	})
}

// appendBlock appends raw as a block that will be at that offset of a file.
func (c compressor) appendBlock(dst, raw []byte, offset int64) (block []byte, checksum uint64, err error) {
	enc, err := c()
	if err != nil {
		return nil, 0, err
	}
	start := len(dst)
	dst = enc.EncodeAll(raw, append(dst, make([]byte, 8)...))
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-8))
	binary.LittleEndian.PutUint32(dst[start+4:], uint32(len(raw)))
	checksum = xxh3.HashSeed(dst[start:], uint64(offset))
	return binary.LittleEndian.AppendUint64(dst, checksum), checksum, nil
}

// blockReader reads blocks one after the other into the same memory. Readers that do not
// read at the same time can share the memory for what is still compressed.
type blockReader struct {
	decompress decompressor
	frame      *[]byte
	raw        []byte
}

var errDamaged = errors.New("the checksum is wrong: the file is damaged")

// read returns the payload of the block at offset, which has length bytes in the file
// and that checksum. The payload is valid until the next call.
func (r *blockReader) read(f io.ReaderAt, offset, length int64, checksum uint64) ([]byte, error) {
	if length < frameSize || length > maxRaw+maxRaw/64 {
		return nil, fmt.Errorf("a block of %d bytes is impossible", length)
	}
	*r.frame = sized(*r.frame, int(length))
	frame := *r.frame
	if _, err := f.ReadAt(frame, offset); err != nil {
		return nil, fmt.Errorf("reading %d bytes: %w", length, err)
	}
	body, sum := frame[:length-8], binary.LittleEndian.Uint64(frame[length-8:])
	if sum != checksum || xxh3.HashSeed(body, uint64(offset)) != sum {
		return nil, errDamaged
	}
	stored, raw := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])
	if int64(stored) != length-frameSize || raw > maxRaw {
		return nil, fmt.Errorf("the lengths %d and %d do not fit a block of %d bytes", stored, raw, length)
	}
	d, err := r.decompress()
	if err != nil {
		return nil, err
	}
	r.raw = sized(r.raw, int(raw))
	out, err := d.DecodeAll(body[8:], r.raw[:0])
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	if len(out) != int(raw) {
		return nil, fmt.Errorf("it has %d bytes instead of %d when decompressed", len(out), raw)
	}
	return out, nil
}

// sized returns a slice of length n, in buf's memory if there is room.
func sized(buf []byte, n int) []byte {
	if cap(buf) < n {
		return make([]byte, n)
	}
	return buf[:n]
}
