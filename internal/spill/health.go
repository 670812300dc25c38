package spill

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// health says whether a store can still be relied on. Pebble tries again for ever what fails in
// the background, and ends the process when its list of files cannot be written (see unsynced); here
// the first such error is noted, and everything that is asked of the store from then on returns it.
type health struct {
	broken atomic.Pointer[error]
	// isBroken is closed when broken is set.
	isBroken chan struct{}
	// progress has an element when the disk has caught up a little since it was last received.
	progress chan struct{}
}

func newHealth() *health {
	return &health{isBroken: make(chan struct{}), progress: make(chan struct{}, 1)}
}

// breakBy notes what has gone wrong.
func (h *health) breakBy(err error) {
	if h.broken.CompareAndSwap(nil, &err) {
		close(h.isBroken)
	}
}

// cause returns what has gone wrong first, nil if nothing has.
func (h *health) cause() error {
	if err := h.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (h *health) progressed() {
	select {
	case h.progress <- struct{}{}:
	default:
	}
}

// listener has Pebble tell what goes on in the background. It is called with Pebble's locks held.
func (h *health) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: h.breakBy,
		DataCorruption:  func(info pebble.DataCorruptionInfo) { h.breakBy(info.Details) },
		FlushEnd:        func(pebble.FlushInfo) { h.progressed() },
		CompactionEnd:   func(pebble.CompactionInfo) { h.progressed() },
	}
}

// retryPause is how long Pebble waits before it tries again to make a file on a disk that has
// failed: it does so until the store is closed.
const retryPause = 10 * time.Millisecond

// mayCreate is asked before a file is made. After an error none is: nobody would read it.
func (h *health) mayCreate() error {
	err := h.cause()
	if err != nil {
		time.Sleep(retryPause)
	}
	return err
}

// logger passes the messages that matter on.
type logger struct {
	to     *slog.Logger
	health *health
}

func (logger) Infof(string, ...any) {}

func (l logger) Errorf(format string, args ...any) {
	if l.to != nil {
		l.to.Warn("disk store of spilled state: " + fmt.Sprintf(format, args...))
	}
}

// Fatalf is called, mostly in goroutines of Pebble's own and with its locks held, when nothing
// can go on because what Pebble knows makes no sense. It must not panic, which would end the
// process, and it returns, or closing would wait for the caller for ever. What Pebble does next
// is not relied on.
func (l logger) Fatalf(format string, args ...any) {
	err := error(errors.New(fmt.Sprintf(format, args...)))
	for _, arg := range args {
		if cause, ok := arg.(error); ok {
			err = cause
		}
	}
	l.health.breakBy(err)
}

// throttle has writers wait while too much is in memory or unsorted. Pebble would do so itself,
// but goes on waiting when the disk has failed.
type throttle struct {
	// memTable is the size of a memtable, in bytes, and maxFiles how many files may wait to be
	// sorted into others.
	memTable, maxFiles int
	// written is how much was written since it was looked last.
	written int
}

// waitForRoom is called before n bytes are written.
func (s *Store) waitForRoom(n int) error {
	t := &s.throttle
	if t.written += n; t.written < t.memTable {
		return s.usable("cannot be written to")
	}
	t.written = 0
	for {
		m := s.db.Metrics()
		if m.MemTable.Size < uint64(maxMemTables*t.memTable) && int(m.Levels[0].Sublevels) < t.maxFiles {
			return s.usable("cannot be written to")
		}
		select {
		case <-s.health.progress:
		case <-s.health.isBroken:
			return s.usable("cannot be written to")
		}
	}
}
