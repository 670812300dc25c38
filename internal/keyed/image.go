package keyed

import "sync/atomic"

// Image is numbered entries as they were when a snapshot of them began.
//
// An entry belongs to the image as long as its bit of claimed is clear, and then nobody
// changes it. Who sets the bit writes the entry: the subtask before it changes it, or the
// goroutine. While the goroutine does, the place that it is reading says so.
type Image struct {
	snapshot *Snapshot
	write    func(to *Encoder, i uint32) error
	// from and to are the numbers of the first entry and the one after the last.
	from, to uint32
	claimed  []atomic.Uint64
	// number tells images apart.
	number uint64
	// word is the word of claimed that the goroutine comes to next.
	word uint32
}

// Image adds the entries with numbers from from to to. write is called once for each.
//
// Until the snapshot is over, Keep is to be called before an entry is changed.
func (e *Encoder) Image(from, to int, write func(to *Encoder, i uint32) error) *Image {
	m := &Image{
		snapshot: e.snapshot, write: write,
		from: uint32(from), to: uint32(to),
		claimed: make([]atomic.Uint64, (to+63)/64),
		number:  e.snapshot.images.Add(1),
		word:    uint32(from / 64),
	}
	e.added = append(e.added, m)
	return m
}

// next writes what is left of 64 entries, or some of it if the subtask wants to go on.
func (m *Image) next(to *Encoder) (bool, error) {
	first := m.word * 64
	for i := max(first, m.from); i < min(first+64, m.to); i++ {
		if !m.claim(i) {
			continue
		}
		if err := m.write(to, i); err != nil {
			return false, err
		}
		if m.snapshot.wanted.Load() {
			return true, nil
		}
	}
	m.word++
	return int(m.word) < len(m.claimed), nil
}

func (m *Image) place() uint64 { return m.placeOf(m.word * 64) }

// placeOf is the place of the 64 entries around entry i.
func (m *Image) placeOf(i uint32) uint64 { return m.number<<32 | uint64(i/64) }

// claim reports whether entry i is the caller's to write.
func (m *Image) claim(i uint32) bool {
	bit := uint64(1) << (i & 63)
	return !m.isClaimed(i) && m.claimed[i/64].Or(bit)&bit == 0
}

func (m *Image) isClaimed(i uint32) bool { return m.claimed[i/64].Load()>>(i&63)&1 != 0 }

// Keep has the subtask write entry i, unless that is done.
func (m *Image) Keep(i uint32) {
	if i < m.from || i >= m.to || m.isClaimed(i) && m.snapshot.reading.Load() != m.placeOf(i) {
		return
	}
	m.snapshot.keep(m, i)
}

// Supersede ends the image's snapshot, if it is not over, because the next one begins.
func (m *Image) Supersede() { m.snapshot.supersede() }
