package windowed

import (
	"encoding/binary"
	"fmt"

	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/window"
)

const (
	eventTimersPart = "timers-event"
	clockTimersPart = "timers-clock"
)

// Marks of a window in an entry of the general operator.
const (
	flagFilled = 1 << iota
	flagLive
)

// Snapshot implements operator.Stateful.
func (o *general[K, T, A]) Snapshot(w snapshot.Writer) error {
	s, err := o.beginSnapshot(w, kindGeneral)
	if err != nil {
		return err
	}
	defer s.Start()
	entries, err := o.windowsWriter(s)
	if err != nil {
		return err
	}
	part, err := s.Part(snapshot.Part{Name: statesPart, Kind: snapshot.Union, Version: partVersion})
	if err != nil {
		return err
	}
	keys := keyWriter[K, A]{entries, [2]*stateWriter{newStateWriter(part), newStateWriter(part)}}
	s.Table(o.keys, func(to *keyed.Encoder, e *keyed.Entry[K, *keyWindows[A]]) error {
		return keys.write(to, e.Hash, &e.Key, e.Value)
	})
	if o.spilled != nil {
		if err := o.spilled.snapshot(s, entries.part, part); err != nil {
			return err
		}
	}
	if err := o.snapshotTimers(s, eventTimersPart, o.service.Event); err != nil {
		return err
	}
	return o.snapshotTimers(s, clockTimersPart, o.service.Processing)
}

func (o *general[K, T, A]) snapshotTimers(s *keyed.Snapshot, name string, q *keyed.TimerQueue[K, window.TimeWindow]) error {
	part, err := s.Part(snapshot.Part{
		Name: name, Kind: snapshot.Keyed, Version: partVersion, Schemas: map[string]string{"key": o.storage.keys.Schema()},
	})
	if err != nil {
		return err
	}
	w := entryWriter[K, A]{o.storage, part}
	s.Timers(q, func(to *keyed.Encoder, t *keyed.Timer[K, window.TimeWindow]) error {
		var err error
		to.Data = binary.AppendVarint(appendWindow(to.Data, t.Namespace), t.At)
		if to.Data, err = w.keys.Append(to.Data, &t.Key); err != nil {
			return fmt.Errorf("key of a timer: %w", err)
		}
		w.end(to, t.Hash)
		return nil
	})
	return nil
}

// keyWriter writes what the general operator keeps of a key.
type keyWriter[K comparable, A any] struct {
	*entryWriter[K, A]
	// states are those of the sides of a snapshot.
	states [2]*stateWriter
}

func (w *keyWriter[K, A]) write(to *keyed.Encoder, hash uint64, key *K, k *keyWindows[A]) error {
	states := w.states[to.Side()]
	var err error
	if to.Data, err = w.keys.Append(to.Data, key); err != nil {
		return fmt.Errorf("key of windows: %w", err)
	}
	if to.Data, err = w.appendWindows(to.Data, k, states); err != nil {
		return fmt.Errorf("key %v: %w", *key, err)
	}
	w.end(to, hash)
	states.tell(to)
	return nil
}

// appendWindows appends what there is of a key.
func (w *storage[K, A]) appendWindows(dst []byte, k *keyWindows[A], states *stateWriter) (_ []byte, err error) {
	if dst, err = states.append(dst, &k.global); err != nil {
		return nil, err
	}
	dst = binary.AppendUvarint(dst, uint64(len(k.windows)))
	for _, s := range k.windows {
		if dst, err = w.appendState(dst, s, states); err != nil {
			return nil, fmt.Errorf("window %v: %w", s.window, err)
		}
	}
	return dst, nil
}

func (w *storage[K, A]) appendState(dst []byte, s *windowState[A], states *stateWriter) ([]byte, error) {
	var flags byte
	if s.filled {
		flags |= flagFilled
	}
	if s.live {
		flags |= flagLive
	}
	dst = append(appendWindow(dst, s.window), flags)
	var err error
	if s.filled {
		if dst, err = w.contents.append(dst, &s.acc); err != nil {
			return nil, err
		}
	}
	if dst, err = states.append(dst, &s.trigger); err != nil {
		return nil, err
	}
	return states.append(dst, &s.user)
}

func (o *general[K, T, A]) restore() error {
	times, err := o.restoreTimes(kindGeneral)
	if err != nil {
		return err
	}
	o.resumed = len(times) > 0
	o.usePinned()
	if o.restored, err = readStates(o.rt.Restored); err != nil {
		return err
	}
	if err := o.restoreCells(keyEntry, o.restoreKey); err != nil {
		return err
	}
	if err := o.storage.read(o.rt.Restored, windowsPart, o.restoreKey); err != nil {
		return err
	}
	if err := o.restoreTimers(eventTimersPart, o.service.Event); err != nil {
		return err
	}
	if err := o.restoreTimers(clockTimersPart, o.service.Processing); err != nil {
		return err
	}
	if err := o.settle(); err != nil {
		return err
	}
	if o.keys.Len() > 0 || o.spilled != nil && o.spilled.keys.Len() > 0 {
		o.silence.heard()
	}
	return nil
}

func (o *general[K, T, A]) restoreKey(p *partReader[K, A], group int, data []byte) error {
	key, hash, data := p.key(group, data)
	if p.err != nil {
		return p.err
	}
	k, err := o.restored.parseWindows[A](data, p.contents)
	if err != nil {
		return err
	}
	v, err := o.upsert(hash, key)
	if err == nil {
		*v = k
	}
	return err
}

// parseWindows is the opposite of appendWindows.
func (r *restoredStates) parseWindows[A any](data []byte, contents decodeContents[A]) (*keyWindows[A], error) {
	k := &keyWindows[A]{}
	var err error
	if data, err = r.scope(data, &k.global); err != nil {
		return nil, err
	}
	count, data := uvarint(data)
	for range count {
		s := &windowState[A]{}
		if data, err = r.parseState(data, s, contents); err != nil {
			return nil, err
		}
		k.windows = append(k.windows, s)
	}
	if data == nil {
		return nil, errCutShort
	}
	return k, nil
}

// decodeContents reads contents of a window and returns the bytes behind them.
type decodeContents[A any] = func(data []byte, acc *A) (rest []byte, err error)

func (r *restoredStates) parseState[A any](data []byte, s *windowState[A], contents decodeContents[A]) (rest []byte, err error) {
	if s.window, data = parseWindow(data); len(data) == 0 {
		return nil, errCutShort
	}
	s.filled, s.live = data[0]&flagFilled != 0, data[0]&flagLive != 0
	data = data[1:]
	if s.filled {
		if data, err = contents(data, &s.acc); err != nil {
			return nil, err
		}
	}
	if data, err = r.scope(data, &s.trigger); err != nil {
		return nil, err
	}
	return r.scope(data, &s.user)
}

func (o *general[K, T, A]) restoreTimers(name string, q *keyed.TimerQueue[K, window.TimeWindow]) error {
	return o.storage.read(o.rt.Restored, name, func(p *partReader[K, A], group int, data []byte) error {
		var t keyed.Timer[K, window.TimeWindow]
		t.Namespace, data = parseWindow(data)
		if t.At, data = varint(data); data == nil {
			return errCutShort
		}
		if t.Key, t.Hash, _ = p.key(group, data); p.err != nil {
			return p.err
		}
		q.Register(t)
		return nil
	})
}
