package snapshot

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Written is one part as one subtask wrote it. Storage implements it; Deal says who
// gets what of it.
type Written interface {
	Part() Part
	// Len returns the number of entries.
	Len() int64
	// Groups visits the entries of the key groups from first to last, both included,
	// group by group, within a group in the order in which they were written.
	Groups(first, last int) iter.Seq2[Entry, error]
	// Run visits the entries numbered from, from+1, ... to-1 in the order in which they
	// were written. It is for parts that are not keyed.
	Run(from, to int64) iter.Seq2[Entry, error]
}

// Target is the subtask that is restored.
type Target struct {
	Subtask, Parallelism int
	// FirstGroup and LastGroup, both included, are the key groups it owns.
	FirstGroup, LastGroup int
}

// Share is what one subtask gets of the parts that all subtasks of an operator wrote.
// It implements Reader.
type Share struct {
	checkpoint int64
	names      []string // sorted
	parts      map[string]*sharedPart
	files      func(name string) (io.ReadCloser, error)
}

// Deal returns the share of one subtask. written has, for every subtask that took the
// snapshot, its parts by name. What different subtasks wrote of one part must have the
// same description. files opens the files that they shared.
func Deal(checkpoint int64, written []map[string]Written, files func(name string) (io.ReadCloser, error), to Target) (*Share, error) {
	s := &Share{checkpoint: checkpoint, parts: map[string]*sharedPart{}, files: files}
	for subtask, parts := range written {
		for name, w := range parts {
			p, ok := s.parts[name]
			if !ok {
				p = &sharedPart{part: w.Part(), to: to, written: make([]Written, len(written))}
				s.parts[name] = p
			}
			if !reflect.DeepEqual(p.part, w.Part()) {
				return nil, fmt.Errorf("snapshot of checkpoint %d: part %q of subtask %d is %+v, that of another subtask is %+v",
					checkpoint, name, subtask, w.Part(), p.part)
			}
			p.written[subtask] = w
		}
	}
	s.names = slices.Sorted(maps.Keys(s.parts))
	return s, nil
}

// Checkpoint implements Reader.
func (s *Share) Checkpoint() int64 { return s.checkpoint }

// Part implements Reader.
func (s *Share) Part(name string) (PartReader, bool) {
	p, ok := s.parts[name]
	if !ok {
		return nil, false
	}
	p.claimed = true
	return p, true
}

// Parts implements Reader.
func (s *Share) Parts(prefix string) iter.Seq[PartReader] {
	return func(yield func(PartReader) bool) {
		for _, name := range s.names {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			p := s.parts[name]
			p.claimed = true
			if !yield(p) {
				return
			}
		}
	}
}

// Shared implements Reader.
func (s *Share) Shared(name string) (io.ReadCloser, error) { return s.files(name) }

// Unclaimed returns the names of the parts that nobody asked for.
func (s *Share) Unclaimed() []string {
	var names []string
	for _, name := range s.names {
		if !s.parts[name].claimed {
			names = append(names, name)
		}
	}
	return names
}

type sharedPart struct {
	part    Part
	to      Target
	written []Written // by writing subtask, nil if that did not write the part
	claimed bool
}

func (p *sharedPart) Part() Part { return p.part }

func (p *sharedPart) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for subtask, r := range p.runs() {
			w := p.written[subtask]
			if w == nil {
				continue
			}
			var entries iter.Seq2[Entry, error]
			if p.part.Kind == Keyed {
				// Subtasks own groups in rising order, so this is in the order of groups.
				entries = w.Groups(p.to.FirstGroup, p.to.LastGroup)
			} else if r.from < r.to {
				entries = w.Run(r.from, r.to)
			} else {
				continue
			}
			for e, err := range entries {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// run is a range of the entries that one subtask wrote.
type run struct{ from, to int64 }

// runs returns what the target gets of each writing subtask.
func (p *sharedPart) runs() []run {
	runs := make([]run, len(p.written))
	counts := make([]int64, len(p.written))
	for i, w := range p.written {
		if w != nil {
			counts[i] = w.Len()
			runs[i] = run{0, counts[i]}
		}
	}
	switch p.part.Kind {
	case List:
		return listRuns(counts, p.to.Subtask, p.to.Parallelism)
	case Broadcast:
		return broadcastRuns(p.written, runs, p.to.Subtask)
	}
	return runs
}

// listRuns deals the elements of a list out. With as many subtasks as wrote it, each
// gets its own; with fewer, each gets those of neighbours, as with key groups. With more,
// all elements in the order of their subtasks are cut into runs of equal length.
func listRuns(counts []int64, subtask, parallelism int) []run {
	runs := make([]run, len(counts))
	if parallelism <= len(counts) {
		for w, n := range counts {
			if w*parallelism/len(counts) == subtask {
				runs[w] = run{0, n}
			}
		}
		return runs
	}
	var total int64
	for _, n := range counts {
		total += n
	}
	from, to := share(total, subtask, parallelism), share(total, subtask+1, parallelism)
	var before int64
	for w, n := range counts {
		runs[w] = run{min(max(from-before, 0), n), min(max(to-before, 0), n)}
		before += n
	}
	return runs
}

// share returns how many of total elements go to the subtasks before that one.
func share(total int64, subtask, parallelism int) int64 {
	each, more := total/int64(parallelism), total%int64(parallelism)
	return each*int64(subtask) + min(more, int64(subtask))
}

// broadcastRuns picks one of the subtasks that wrote the part, so that not all read
// the same one.
func broadcastRuns(written []Written, whole []run, subtask int) []run {
	var writers []int
	for i, w := range written {
		if w != nil {
			writers = append(writers, i)
		}
	}
	runs := make([]run, len(written))
	if len(writers) > 0 {
		one := writers[subtask%len(writers)]
		runs[one] = whole[one]
	}
	return runs
}
