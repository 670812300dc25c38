package keyedop

import (
	"encoding/binary"
	"fmt"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// The parts of snapshots, by name:
//
//	state/NAME, broadcast/NAME, list/NAME   the states of functions
//	timers/event, timers/clock              keyed: time, key
//	records                                 keyed: what a sorter holds back, by key
//	left, right                             keyed: what an interval join keeps, by key
const (
	eventTimersPart = "timers/event"
	clockTimersPart = "timers/clock"
	recordsPart     = "records"
	leftPart        = "left"
	rightPart       = "right"

	partVersion = 1
)

// snapshotTimers adds the timers of a service, if there are any.
func snapshotTimers[K comparable](s *keyed.Snapshot, keys *keyed.KeyCodec[K], timers *keyed.TimerService[K, struct{}]) error {
	if err := snapshotQueue(s, keys, timers.Event, eventTimersPart); err != nil {
		return err
	}
	return snapshotQueue(s, keys, timers.Processing, clockTimersPart)
}

func snapshotQueue[K comparable](s *keyed.Snapshot, keys *keyed.KeyCodec[K], q *keyed.TimerQueue[K, struct{}], name string) error {
	if q.IsEmpty() {
		return nil
	}
	part, err := keys.Part(s, snapshot.Part{Name: name, Kind: snapshot.Keyed, Version: partVersion})
	if err != nil {
		return err
	}
	s.Timers(q, func(to *keyed.Encoder, t *keyed.Timer[K, struct{}]) error {
		if err := part.Begin(to, &t.Key); err != nil {
			return err
		}
		to.Data = binary.AppendVarint(to.Data, t.At)
		part.End(to, t.Hash)
		return nil
	})
	return nil
}

// restoreTimers registers the timers of a snapshot.
func restoreTimers[K comparable](from snapshot.Reader, keys *keyed.KeyCodec[K], timers *keyed.TimerService[K, struct{}]) error {
	if from == nil {
		return nil
	}
	if err := restoreQueue(from, keys, timers.Event, eventTimersPart); err != nil {
		return err
	}
	return restoreQueue(from, keys, timers.Processing, clockTimersPart)
}

func restoreQueue[K comparable](from snapshot.Reader, keys *keyed.KeyCodec[K], q *keyed.TimerQueue[K, struct{}], name string) error {
	return readKeyed(from, keys, name, func(hash uint64, key K, rest []byte) error {
		at, n := binary.Varint(rest)
		if n <= 0 {
			return errCutShort
		}
		q.Register(keyed.Timer[K, struct{}]{At: at, Hash: hash, Key: key})
		return nil
	})
}

// readKeyed calls f for the entries of a part, if the snapshot has it.
func readKeyed[K comparable](from snapshot.Reader, keys *keyed.KeyCodec[K], name string, f func(hash uint64, key K, rest []byte) error) error {
	part, ok := from.Part(name)
	if !ok {
		return nil
	}
	if v := part.Part().Version; v != partVersion {
		return fmt.Errorf("part %q has version %d, this program knows version %d: restore with the program that wrote it, or a later one", name, v, partVersion)
	}
	if err := keys.Read(part, f); err != nil {
		return fmt.Errorf("part %q cannot be restored: %w", name, err)
	}
	return nil
}

// records stores the records that an operator keeps by key, all of one type.
type records[K comparable, T any] struct {
	keys *keyed.KeyCodec[K]
	buffersCodec[T]
	name string
}

// newRecords returns how records of type T are stored in a part.
func newRecords[K comparable, T any](keys *keyed.KeyCodec[K], name string) (*records[K, T], error) {
	c, err := codec.For[T]()
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	return &records[K, T]{keys, buffersCodec[T]{c}, name}, nil
}

func (r *records[K, T]) part(s *keyed.Snapshot) (*keyed.KeyedPart[K], error) {
	return r.keys.Part(s, snapshot.Part{
		Name: r.name, Kind: snapshot.Keyed, Version: partVersion, Schemas: map[string]string{"value": r.values.Schema()},
	})
}

// restore calls add for each record, in the order in which a key's were kept.
func (r *records[K, T]) restore(from snapshot.Reader, add func(hash uint64, key K, t int64, v T)) error {
	part, ok := from.Part(r.name)
	if !ok {
		return nil
	}
	decode, err := r.decoder(part.Part().Schemas["value"])
	if err != nil {
		return fmt.Errorf("part %q cannot be restored: %w", r.name, err)
	}
	return readKeyed(from, r.keys, r.name, func(hash uint64, key K, rest []byte) error {
		return decode(rest, func(t int64, v T) { add(hash, key, t, v) })
	})
}

// writeBuffer writes the records of a key, if there are any, into a part.
func writeBuffer[K comparable, T, E any](r *records[K, T], part *keyed.KeyedPart[K], to *keyed.Encoder, hash uint64, key *K, b *buffer[E], value func(*E) *T) (err error) {
	if b.len() == 0 {
		return nil
	}
	if err = part.Begin(to, key); err != nil {
		return err
	}
	if to.Data, err = appendBuffer(r.buffersCodec, to.Data, b, value); err != nil {
		return err
	}
	part.End(to, hash)
	return nil
}
