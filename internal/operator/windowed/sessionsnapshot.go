package windowed

import (
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// Snapshot implements operator.Stateful.
func (o *sessions[K, T, A]) Snapshot(w snapshot.Writer) error {
	s, err := o.beginSnapshot(w, kindSessions)
	if err != nil {
		return err
	}
	defer s.Start()
	entries, err := o.windowsWriter(s)
	if err != nil {
		return err
	}
	s.Table(o.keys, func(to *keyed.Encoder, e *keyed.Entry[K, *session[K, A]]) error {
		for s := e.Value; s != nil; s = s.next {
			if err := entries.window(to, s.window, s.flags(), e.Hash, &e.Key, &s.acc); err != nil {
				return err
			}
		}
		return nil
	})
	o.snapshot = s
	if o.spilled == nil {
		return nil
	}
	return o.spilled.keys.SnapshotDisk(s, o.groups(), entries.part, sessionEntries)
}

// flags returns what is stored of a session besides its window and its contents.
func (s *session[K, A]) flags() byte {
	if s.fired {
		return flagFired
	}
	return 0
}

// keep has a snapshot that is not yet written take the sessions of a key before one of
// them is changed that was not reached through the table.
func (o *sessions[K, T, A]) keep(s *session[K, A]) {
	if o.snapshot == nil {
		return
	}
	if o.snapshot.Over() {
		o.snapshot = nil
		return
	}
	o.keys.Get(s.hash, s.key)
}

func (o *sessions[K, T, A]) restore() error {
	if _, err := o.restoreTimes(kindSessions); err != nil {
		return err
	}
	visit := visitWindows(o.restoreEntry)
	err := o.restoreCells(sessionEntries, visit)
	if err == nil {
		err = o.storage.read(o.rt.Restored, windowsPart, visit)
	}
	if err == nil && o.spilled != nil {
		err = o.spilled.keys.Settle()
	}
	if err == nil && o.live > 0 {
		o.silence.heard()
		o.setAlarm()
	}
	return err
}

// restoreEntry adds a session of an earlier run.
func (o *sessions[K, T, A]) restoreEntry(e *entry[K, A]) error {
	at, err := o.upsert(e.hash, e.key)
	if err != nil {
		return err
	}
	for *at != nil && (*at).window.Start < e.window.Start {
		at = &(*at).next
	}
	s := o.newSession(e.hash, e.key, e.window)
	s.acc, s.fired = e.acc, e.flags&flagFired != 0
	s.next, *at = *at, s
	o.queue(s, o.nextTime(s))
	return nil
}

// upsert returns where the list of a key's sessions begins.
func (o *sessions[K, T, A]) upsert(hash uint64, key K) (**session[K, A], error) {
	if o.spilled != nil {
		return o.spilled.keys.Upsert(hash, key)
	}
	head, _ := o.keys.Upsert(hash, key)
	return head, nil
}
