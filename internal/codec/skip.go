package codec

import (
	"fmt"
	"math"

	"github.com/twmb/avro"
)

// skipFunc returns what is behind a stored value that nobody wants any more.
type skipFunc func(data []byte, depth int) (rest []byte, err error)

func skipBytes(n int) skipFunc {
	return func(data []byte, _ int) ([]byte, error) {
		if len(data) < n {
			return nil, errShort
		}
		return data[n:], nil
	}
}

func skipLong(data []byte, _ int) ([]byte, error) {
	_, rest, err := readLong(data)
	return rest, err
}

func skipRaw(data []byte, _ int) ([]byte, error) {
	_, rest, err := readRaw(data)
	return rest, err
}

func (r *resolver) skip(stored *avro.SchemaNode) skipFunc {
	stored = r.definition(stored)
	switch stored.Type {
	case "null":
		return skipBytes(0)
	case "boolean":
		return skipBytes(1)
	case "int", "long", "enum":
		return skipLong
	case "float":
		return skipBytes(4)
	case "double":
		return skipBytes(8)
	case "string", "bytes":
		return skipRaw
	case "fixed":
		return skipBytes(stored.Size)
	case "array":
		return skipBlocks(r.skip(stored.Items), r.minSize(stored.Items))
	case "map":
		elem := r.skip(stored.Values)
		return skipBlocks(func(data []byte, depth int) ([]byte, error) {
			data, err := skipRaw(data, depth)
			if err != nil {
				return nil, err
			}
			return elem(data, depth)
		}, 1)
	case "union":
		return r.skipUnion(stored)
	default:
		return r.skipRecord(stored)
	}
}

func skipBlocks(elem skipFunc, minSize int) skipFunc {
	return func(data []byte, depth int) ([]byte, error) {
		for {
			n, rest, err := readBlock(data, minSize)
			if err != nil || n == 0 {
				return rest, err
			}
			for range n {
				if rest, err = elem(rest, depth); err != nil {
					return nil, err
				}
			}
			data = rest
		}
	}
}

func (r *resolver) skipUnion(stored *avro.SchemaNode) skipFunc {
	branches := make([]skipFunc, len(stored.Branches))
	for i := range stored.Branches {
		branches[i] = r.skip(&stored.Branches[i])
	}
	return func(data []byte, depth int) ([]byte, error) {
		n, data, err := readLong(data)
		if err != nil {
			return nil, err
		}
		if n < 0 || n >= int64(len(branches)) {
			return nil, fmt.Errorf("branch %d of a union of %d is stored", n, len(branches))
		}
		return branches[n](data, depth)
	}
}

func (r *resolver) skipRecord(stored *avro.SchemaNode) skipFunc {
	if known, ok := r.skips[stored]; ok {
		return func(data []byte, depth int) ([]byte, error) {
			if depth >= maxDepth {
				return nil, errTooDeep
			}
			return (*known)(data, depth+1)
		}
	}
	made := new(skipFunc)
	r.skips[stored] = made
	fields := make([]skipFunc, len(stored.Fields))
	for i := range stored.Fields {
		fields[i] = r.skip(&stored.Fields[i].Type)
	}
	*made = func(data []byte, depth int) ([]byte, error) {
		var err error
		for _, skip := range fields {
			if data, err = skip(data, depth); err != nil {
				return nil, err
			}
		}
		return data, nil
	}
	return *made
}

// minSize returns how many bytes a stored value has at least, so that the number of
// elements of an array can be checked before they are read.
func (r *resolver) minSize(stored *avro.SchemaNode) int {
	stored = r.definition(stored)
	switch stored.Type {
	case "null":
		return 0
	case "float":
		return 4
	case "double":
		return 8
	case "fixed":
		return stored.Size
	case "record":
		if size, ok := r.sizes[stored]; ok {
			return size
		}
		r.sizes[stored] = 0 // what a record within itself counts for
		size := 0
		for i := range stored.Fields {
			size += r.minSize(&stored.Fields[i].Type)
		}
		r.sizes[stored] = min(size, math.MaxInt32)
		return r.sizes[stored]
	}
	return 1
}
