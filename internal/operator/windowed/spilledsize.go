package windowed

import "github.com/lowwater/lowwater/internal/keyed"

// sizes estimates what panes take in memory.
type sizes struct {
	// fixed is what an entry takes in its table, whatever is in it.
	fixed int
	// flatKeys says that keys take no memory outside the table. If they do, keys is the
	// average, which is their encoding's.
	flatKeys bool
	keys     average
	// turn chooses the entry that is looked at, skip is for how many looks none is.
	turn, skip int
	buf        []byte
}

// average is that over the latest values.
type average float64

// add takes the value of one of so many entries into the average.
func (a *average) add(v float64, entries int) {
	if *a == 0 {
		*a = average(v)
		return
	}
	*a += (average(v) - *a) / average(min(entries, 32))
}

// bytes returns about how many bytes a pane takes.
func (s *spilling[K, T, A]) bytes(p *pane[K, A]) int64 {
	n, x := p.keys.Len(), &p.spilled
	if n == 0 {
		return 0
	}
	units := n
	if s.contents.perElement() {
		units = x.records
	}
	return int64(n*s.sizes.fixed) + int64(float64(n)*float64(s.sizes.keys)+float64(units)*float64(x.outside))
}

// bytesPerLook is how many bytes of encoding one look at the sizes is worth. What takes more
// is looked at more rarely.
const bytesPerLook = 4 << 10

// probe looks at the size of one more entry, or of one in each pane that is new.
func (s *spilling[K, T, A]) probe(live []*pane[K, A]) error {
	if len(live) == 0 {
		return nil
	}
	z := &s.sizes
	z.turn++
	for i, p := range live {
		n := p.keys.Len()
		due := i == z.turn%len(live) && z.skip == 0
		if n == 0 || !due && p.spilled.probed {
			continue
		}
		encoded, err := s.weigh(p, p.keys.At(z.turn*61%n))
		if err != nil {
			return err
		}
		z.skip += encoded / bytesPerLook
	}
	z.skip = max(z.skip-1, 0)
	return nil
}

// weigh takes the size of an entry into the averages, and returns how many bytes were
// encoded for it.
func (s *spilling[K, T, A]) weigh(p *pane[K, A], e *keyed.Entry[K, A]) (encoded int, err error) {
	z, n := &s.sizes, p.keys.Len()
	p.spilled.probed = true
	if !z.flatKeys {
		if z.buf, err = s.keys.Append(z.buf[:0], &e.Key); err != nil {
			return 0, err
		}
		encoded = len(z.buf)
		z.keys.add(float64(encoded), n)
	}
	var outside float64
	if outside, z.buf, err = s.contents.outside(z.buf[:0], &e.Value); err != nil {
		return 0, err
	}
	p.spilled.outside.add(outside, n)
	return encoded + len(z.buf), nil
}
