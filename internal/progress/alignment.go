package progress

import "fmt"

// Sampler remembers the last watermarks at alignment checks (spec watermarks
// 6.2). Limits are compared with the oldest of them, so that a reader may run
// ahead for a few intervals before it is stopped.
type Sampler struct {
	latest int64
	// ring holds the last samples; next is the oldest.
	ring []int64
	next int
}

// NewSampler returns a sampler that keeps n samples; with 0 the latest
// watermark takes their place.
func NewSampler(n int) Sampler {
	s := Sampler{latest: minTime, ring: make([]int64, n)}
	for i := range s.ring {
		s.ring[i] = minTime
	}
	return s
}

// SetLatest tells the current watermark.
func (s *Sampler) SetLatest(t int64) { s.latest = t }

// Latest returns the current watermark.
func (s *Sampler) Latest() int64 { return s.latest }

// Sample remembers the current watermark.
func (s *Sampler) Sample() {
	if len(s.ring) == 0 {
		return
	}
	s.ring[s.next] = s.latest
	if s.next++; s.next == len(s.ring) {
		s.next = 0
	}
}

// Oldest returns the oldest sample, MinTimestamp until enough were taken.
func (s *Sampler) Oldest() int64 {
	if len(s.ring) == 0 {
		return s.latest
	}
	return s.ring[s.next]
}

// Coordinator tells aligned sources how far they may read (spec watermarks
// 6.7-6.10). There is one in a job.
type Coordinator struct {
	groups map[string]*alignmentGroup
}

type alignmentGroup struct {
	minimum reports
	sources map[string]*AlignedSource
}

// NewCoordinator returns a coordinator without sources.
func NewCoordinator() *Coordinator {
	return &Coordinator{groups: map[string]*alignmentGroup{}}
}

// AlignedSource is one source's part in a group.
type AlignedSource struct {
	group    *alignmentGroup
	index    int
	maxDrift int64
	minimum  reports
}

// Join adds a source to a group. maxDrift is in milliseconds. A source joins a
// group once.
func (c *Coordinator) Join(source, group string, maxDriftMillis int64) (*AlignedSource, error) {
	g := c.groups[group]
	if g == nil {
		g = &alignmentGroup{minimum: newReports(), sources: map[string]*AlignedSource{}}
		c.groups[group] = g
	}
	if g.sources[source] != nil {
		return nil, fmt.Errorf("source %q is in alignment group %q already", source, group)
	}
	s := &AlignedSource{group: g, index: len(g.sources), maxDrift: maxDriftMillis, minimum: newReports()}
	g.sources[source] = s
	return s, nil
}

// Report takes a subtask's watermark; MaxTimestamp says that it is idle or has
// finished. Later reports replace earlier ones and may be smaller.
func (s *AlignedSource) Report(subtask int, watermark int64) {
	s.minimum.set(subtask, watermark)
	s.group.minimum.set(s.index, s.minimum.tree.min())
}

// Announce calls yield with each subtask that has reported, in order, and the
// largest watermark it may have: the group's minimum plus the source's drift.
func (s *AlignedSource) Announce(yield func(subtask int, maxAllowed int64)) {
	limit := s.Limit()
	for subtask, known := range s.minimum.known {
		if known {
			yield(subtask, limit)
		}
	}
}

// Limit returns the largest watermark that the source may have, MaxTimestamp
// while no source of the group has reported.
func (s *AlignedSource) Limit() int64 {
	lowest := s.group.minimum.tree.min()
	if lowest > maxTime-s.maxDrift {
		return maxTime
	}
	return lowest + s.maxDrift
}

// reports keeps the latest report of each member and their minimum.
type reports struct {
	tree  minTree
	known []bool
}

func newReports() reports { return reports{tree: newMinTree(0)} }

func (r *reports) set(member int, watermark int64) {
	if member >= len(r.known) {
		r.known = append(r.known, make([]bool, member+1-len(r.known))...)
		r.tree.grow(len(r.known))
	}
	r.known[member] = true
	r.tree.set(member, watermark)
}
