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
	entries, err := o.windowsWriter(s)
	if err != nil {
		return err
	}
	s.Table(o.keys, func(to *keyed.Encoder, e *keyed.Entry[K, *session[K, A]]) error {
		for s := e.Value; s != nil; s = s.next {
			var flags byte
			if s.fired {
				flags = flagFired
			}
			if err := entries.window(to, s.window, flags, e.Hash, &e.Key, &s.acc); err != nil {
				return err
			}
		}
		return nil
	})
	s.Start()
	o.snapshot = s
	return nil
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
	err := o.restoreWindows(windowsPart, func(e *entry[K, A]) error {
		at, _ := o.keys.Upsert(e.hash, e.key)
		for *at != nil && (*at).window.Start < e.window.Start {
			at = &(*at).next
		}
		s := o.newSession(e.hash, e.key, e.window)
		s.acc, s.fired = e.acc, e.flags&flagFired != 0
		s.next, *at = *at, s
		o.queue(s, o.nextTime(s))
		return nil
	})
	if err == nil && o.live > 0 {
		o.silence.heard()
		o.setAlarm()
	}
	return err
}
