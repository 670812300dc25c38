package metric

import (
	"slices"
	"sync"

	"github.com/lowwater/lowwater/connector"
)

// LateRecord describes one record that came after its windows had ended.
type LateRecord struct {
	// Timestamp is the record's and Watermark the operator's, in milliseconds.
	Timestamp int64
	Watermark int64
	Key       string
	Origin    connector.Origin
}

// LateLog counts the late records of one operator by split, and keeps the latest. It
// is written in batches, only when there are late records.
type LateLog struct {
	mu      sync.Mutex
	bySplit map[uint32]int64
	latest  []LateRecord
	// oldest is the position of the oldest once all places are taken.
	oldest int
}

// MaxLateSamples is how many late records are kept, the latest.
const MaxLateSamples = 100

// Add notes records by the number of their split, 0 for unknown, and samples of
// them. It keeps neither argument.
func (l *LateLog) Add(bySplit map[uint32]int64, samples []LateRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bySplit == nil {
		l.bySplit = map[uint32]int64{}
	}
	for split, n := range bySplit {
		l.bySplit[split] += n
	}
	for _, s := range samples {
		if len(l.latest) < MaxLateSamples {
			l.latest = append(l.latest, s)
			continue
		}
		l.latest[l.oldest] = s
		l.oldest = (l.oldest + 1) % MaxLateSamples
	}
}

// BySplit returns the number of late records per split number.
func (l *LateLog) BySplit() map[uint32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[uint32]int64, len(l.bySplit))
	for split, n := range l.bySplit {
		out[split] = n
	}
	return out
}

// Latest returns up to 100 samples, oldest first.
func (l *LateLog) Latest() []LateRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.latest[l.oldest:], l.latest[:l.oldest])
}
