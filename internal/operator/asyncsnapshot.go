package operator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/internal/codec"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// underWayPart holds the records that had no result yet and the signals between them, in
// order. An entry begins with the subtask that wrote it and how many entries it wrote.
const (
	underWayPart    = "under-way"
	underWayVersion = 1
)

// keptRecord is a record as it came in: the function may have changed it since.
type keptRecord struct {
	data      []byte
	timestamp int64
	emitted   bool
}

// asyncStep is a record, or with another kind than Records a signal.
type asyncStep[T any] struct {
	value     T
	timestamp int64
	signal    signal
}

var errUnderWay = errors.New("an entry is cut short")

// openSnapshots prepares for checkpoints, and for what was under way at one.
func (o *async[T, R]) openSnapshots() error {
	if !o.rt.Checkpointing && o.rt.Restored == nil {
		return nil
	}
	var err error
	if o.records, err = codec.For[T](); err != nil {
		return fmt.Errorf("records on their way through an asynchronous function: %w", err)
	}
	if o.rt.Restored == nil {
		return nil
	}
	part, ok := o.rt.Restored.Part(underWayPart)
	if !ok {
		return nil
	}
	if o.restored, err = o.readUnderWay(part); err != nil {
		return fmt.Errorf("checkpoint %d cannot be restored: part %q: %w; go back to the types that the job had, "+
			"or give the operator another uid to lose the records that were on their way through it",
			o.rt.Restored.Checkpoint(), underWayPart, err)
	}
	if len(o.restored) > 0 {
		o.cancelRetry = o.rt.Timers.At(o.rt.Timers.Now(), func(int64) error {
			o.cancelRetry = nil
			if err := o.retry(); err != nil {
				return err
			}
			return o.collectAll()
		})
	}
	return nil
}

// retry begins what was under way in an earlier run anew. It comes before all input.
func (o *async[T, R]) retry() error {
	steps := o.restored
	o.restored = nil
	for _, s := range steps {
		var err error
		if s.signal.kind == exchange.Records {
			err = o.begin(s.value, s.timestamp, 0)
		} else {
			err = o.follow(s.signal)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keep encodes a record that comes in, if there are checkpoints.
func (o *async[T, R]) keep(v *T, timestamp int64) (*keptRecord, error) {
	if o.records == nil {
		return nil, nil
	}
	data, err := o.records.Append(nil, v)
	return &keptRecord{data: data, timestamp: timestamp}, err
}

// forget drops the records that were emitted, when there are enough of them. At most
// capacity others are under way.
func (s *segment[R]) forget(capacity int) {
	if len(s.kept) > 2*capacity {
		s.kept = slices.DeleteFunc(s.kept, func(k *keptRecord) bool { return k.emitted })
	}
}

// Snapshot implements Stateful. The records are encoded already and few, so that they are
// written at once.
func (o *async[T, R]) Snapshot(w snapshot.Writer) error {
	part, err := w.Part(snapshot.Part{
		Name: underWayPart, Kind: snapshot.List, Version: underWayVersion,
		Schemas: map[string]string{"record": o.records.Schema()},
	})
	if err != nil {
		return err
	}
	entries, err := o.underWayEntries()
	if err != nil {
		return err
	}
	var data []byte
	for _, e := range entries {
		data = binary.AppendUvarint(data[:0], uint64(o.rt.Subtask))
		data = binary.AppendUvarint(data, uint64(len(entries)))
		if err := part.Append(0, append(data, e...)); err != nil {
			return err
		}
	}
	return part.Close()
}

// underWayEntries returns the queue, or what is still to be put into it.
func (o *async[T, R]) underWayEntries() (entries [][]byte, err error) {
	for _, s := range o.queue {
		for _, k := range s.kept {
			if !k.emitted {
				entries = append(entries, recordEntry(k))
			}
		}
		if s.signal.kind != exchange.Records {
			entries = append(entries, signalEntry(s.signal))
		}
	}
	for _, s := range o.restored {
		if s.signal.kind != exchange.Records {
			entries = append(entries, signalEntry(s.signal))
			continue
		}
		k, err := o.keep(&s.value, s.timestamp)
		if err != nil {
			return nil, err
		}
		entries = append(entries, recordEntry(k))
	}
	return entries, nil
}

// The kinds of entries.
const (
	recordUnderWay = iota
	watermarkUnderWay
	idleUnderWay
	activeUnderWay
)

func recordEntry(k *keptRecord) []byte {
	return append(binary.AppendVarint([]byte{recordUnderWay}, k.timestamp), k.data...)
}

func signalEntry(s signal) []byte {
	switch {
	case s.kind == exchange.Watermark:
		return binary.AppendVarint([]byte{watermarkUnderWay}, s.time)
	case s.idle:
		return []byte{idleUnderWay}
	default:
		return []byte{activeUnderWay}
	}
}

// readUnderWay returns what was under way. Signals mean something only among all that one
// subtask had: otherwise they are left out, and the subtask's own watermark comes behind
// all records.
func (o *async[T, R]) readUnderWay(part snapshot.PartReader) (steps []asyncStep[T], err error) {
	if v := part.Part().Version; v != underWayVersion {
		return nil, fmt.Errorf("it has version %d, and only %d can be read here: was it written by a later release?", v, underWayVersion)
	}
	decode, err := o.records.Decoder(part.Part().Schemas["record"])
	if err != nil {
		return nil, err
	}
	writers, total := map[uint64]bool{}, uint64(0)
	for e, err := range part.Entries() {
		if err != nil {
			return nil, err
		}
		writer, n := binary.Uvarint(e.Data)
		of, m := binary.Uvarint(e.Data[max(n, 0):])
		if n <= 0 || m <= 0 {
			return nil, errUnderWay
		}
		writers[writer], total = true, of
		s, err := parseUnderWay(e.Data[n+m:], decode)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	if len(writers) > 1 || uint64(len(steps)) != total {
		steps = slices.DeleteFunc(steps, func(s asyncStep[T]) bool { return s.signal.kind != exchange.Records })
	}
	return steps, nil
}

func parseUnderWay[T any](data []byte, decode func([]byte, *T) ([]byte, error)) (s asyncStep[T], err error) {
	if len(data) == 0 {
		return s, errUnderWay
	}
	kind, data := data[0], data[1:]
	switch kind {
	case idleUnderWay, activeUnderWay:
		s.signal = signal{kind: exchange.Status, idle: kind == idleUnderWay}
		return s, nil
	case recordUnderWay, watermarkUnderWay:
	default:
		return s, fmt.Errorf("an entry of unknown kind %d", kind)
	}
	t, n := binary.Varint(data)
	if n <= 0 {
		return s, errUnderWay
	}
	if kind == watermarkUnderWay {
		s.signal = signal{kind: exchange.Watermark, time: t}
		return s, nil
	}
	s.timestamp = t
	_, err = decode(data[n:], &s.value)
	return s, err
}
