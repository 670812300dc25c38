package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool recycles what the client decodes fetched batches into: the records
// and the decompressed bytes that they point to. Decoders keep neither.
type recordPool struct{ records, bytes sync.Pool }

var (
	_ kgo.PoolRecords         = (*recordPool)(nil)
	_ kgo.PoolDecompressBytes = (*recordPool)(nil)
)

// maxPooledBytes keeps single huge batches from staying for ever.
const maxPooledBytes = 4 << 20

func (p *recordPool) GetRecords(n int) []kgo.Record {
	if s, ok := p.records.Get().(*[]kgo.Record); ok && cap(*s) >= n {
		return (*s)[:0]
	}
	return make([]kgo.Record, 0, n)
}

func (p *recordPool) PutRecords(s []kgo.Record) { p.records.Put(&s) }

func (p *recordPool) GetDecompressBytes(compressed []byte, _ kgo.CompressionCodecType) []byte {
	if s, ok := p.bytes.Get().(*[]byte); ok {
		return (*s)[:0]
	}
	return make([]byte, 0, 4*len(compressed))
}

func (p *recordPool) PutDecompressBytes(s []byte) {
	if cap(s) <= maxPooledBytes {
		p.bytes.Put(&s)
	}
}
