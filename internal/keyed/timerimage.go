package keyed

import "slices"

// timersImage is what a timer queue held when a snapshot of it began.
//
// Logs are shared with the queue, which appends to them beyond what the image knows
// of, and takes a copy before it changes them in another way. The tables of groups
// are images of their own.
type timersImage[K, N comparable] struct {
	write func(*Encoder, *Timer[K, N]) error
	// front is in the order of time.
	front []Timer[K, N]
	// logs are what is left to be settled and written.
	logs []logImage[K, N]
	// settled is the log that is being written, in memory of the image's own.
	settled leaf[K, N]
	scratch settling[K, N]
}

// logImage is a leaf's log, or a group's registrations that are not in its table.
type logImage[K, N comparable] struct {
	log []Timer[K, N]

	at     int64
	hashes []uint64
	keys   []groupKey[K, N]
}

// timersPerBlock is how many timers are written at a time.
const timersPerBlock = 256

// Timers adds the timers of a queue, as they are now. write is called for each, for a
// few of them twice.
func (s *Snapshot) Timers[K, N comparable](q *TimerQueue[K, N], write func(*Encoder, *Timer[K, N]) error) {
	if q.snapshot != nil {
		q.snapshot.supersede()
	}
	q.snapshot = s
	m := &timersImage[K, N]{write: write, front: slices.Clone(q.front)}
	slices.Reverse(m.front)
	m.scratch.equality = q.scratch.equality
	m.logs = make([]logImage[K, N], 0, len(q.leaves))
	for _, l := range q.leaves {
		g := l.group
		if g == nil {
			l.shared = true
			m.logs = append(m.logs, logImage[K, N]{log: l.log[l.start:]})
			continue
		}
		at := g.at
		s.task.table(g.table, g.fired, func(to *Encoder, e *Entry[groupKey[K, N], struct{}]) error {
			return write(to, &Timer[K, N]{Namespace: e.Key.namespace, At: at, Hash: e.Hash, Key: e.Key.key})
		})
		if len(g.keys) > 0 {
			g.shared = true
			m.logs = append(m.logs, logImage[K, N]{at: at, hashes: g.hashes, keys: g.keys})
		}
	}
	s.Add(m.next)
}

// next settles a log, or writes some timers of the one that was settled last.
func (m *timersImage[K, N]) next(to *Encoder) (bool, error) {
	if n := min(len(m.front), timersPerBlock); n > 0 {
		err := m.writeAll(to, m.front[:n])
		m.front = m.front[n:]
		return true, err
	}
	if n := min(len(m.settled.log)-m.settled.start, timersPerBlock); n > 0 {
		err := m.writeAll(to, m.settled.log[m.settled.start:][:n])
		m.settled.start += n
		return true, err
	}
	if len(m.logs) == 0 {
		return false, nil
	}
	next := m.logs[0]
	m.logs[0] = logImage[K, N]{}
	m.logs = m.logs[1:]
	m.settled = leaf[K, N]{log: append(withRoom(m.settled.log)[:0], next.log...)}
	for i, hash := range next.hashes {
		k := next.keys[i]
		m.settled.log = append(m.settled.log, Timer[K, N]{Namespace: k.namespace, At: next.at, Hash: hash, Key: k.key})
	}
	m.scratch.settle(&m.settled)
	return true, nil
}

func (m *timersImage[K, N]) writeAll(to *Encoder, timers []Timer[K, N]) error {
	for i := range timers {
		if err := m.write(to, &timers[i]); err != nil {
			return err
		}
	}
	return nil
}

// own gives a leaf that a snapshot shares memory of its own, before the memory is
// changed otherwise than by appending.
func (q *TimerQueue[K, N]) own(l *leaf[K, N]) {
	if !l.shared {
		return
	}
	l.shared = false
	if q.isWritten() {
		return
	}
	own := make([]Timer[K, N], len(l.log), cap(l.log))
	copy(own[l.start:], l.log[l.start:])
	l.log = own
}

// isWritten reports whether no snapshot reads the queue.
func (q *TimerQueue[K, N]) isWritten() bool {
	if q.snapshot != nil && q.snapshot.Over() {
		q.snapshot = nil
	}
	return q.snapshot == nil
}
