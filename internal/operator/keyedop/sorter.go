package keyedop

import (
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// sorter holds records back until the watermark reaches their timestamps, and passes them
// on in the order of these. Records of one key and timestamp stay in the order of their
// arrival.
type sorter[K comparable, T any] struct {
	operator.Pass
	// lateOutput is the id of the side output for late records; empty if they are
	// dropped.
	lateOutput string
	rt         *operator.Runtime
	element    *operator.Element
	emitter    *operator.Emitter[T]
	late       operator.LateRecords

	keys   *keyed.Table[K, buffer[held[T]]]
	timers *keyed.TimerService[K, struct{}]
	// stored is how records are stored, nil if they are not.
	stored *records[K, T]
}

// held is a record that is held back.
type held[T any] struct {
	value  T
	origin connector.Origin
}

// NewSorter returns the operator that sorts each key's records by event time.
func NewSorter[K comparable, T any](lateOutput string) operator.Operator {
	return &sorter[K, T]{
		lateOutput: lateOutput,
		keys:       keyed.NewTable[K, buffer[held[T]]](),
		timers:     keyed.NewTimerService[K, struct{}](),
	}
}

func (o *sorter[K, T]) Open(rt *operator.Runtime, out operator.Output) error {
	o.rt = rt
	o.element = operator.NewElement(rt, out)
	o.emitter = operator.NewEmitter[T](out, "")
	o.lateOutput = operator.ConsumedSide(out, o.lateOutput)
	if err := o.Pass.Open(rt, out); err != nil || !isStored(rt) {
		return err
	}
	keys, err := keyed.NewKeyCodec[K](rt.MaxParallelism)
	if err != nil {
		return err
	}
	if o.stored, err = newRecords[K, T](keys, recordsPart); err != nil || rt.Restored == nil {
		return err
	}
	return o.stored.restore(rt.Restored, func(hash uint64, key K, t int64, v T) {
		o.hold(hash, key, t, held[T]{value: v})
	})
}

// Snapshot implements operator.Stateful. Timers follow from the records. Origins are not
// stored: what they number is this run's.
func (o *sorter[K, T]) Snapshot(w snapshot.Writer) error {
	s := keyed.NewSnapshot(w)
	part, err := o.stored.part(s)
	if err != nil {
		return err
	}
	s.Table(o.keys, func(to *keyed.Encoder, e *keyed.Entry[K, buffer[held[T]]]) error {
		return writeBuffer(o.stored, part, to, e.Hash, &e.Key, &e.Value, func(h *held[T]) *T { return &h.value })
	})
	s.Start()
	return nil
}

// hold keeps a record until its time has come.
func (o *sorter[K, T]) hold(hash uint64, key K, t int64, h held[T]) {
	records, _ := o.keys.Upsert(hash, key)
	records.add(t, h)
	o.timers.Event.Register(keyed.Timer[K, struct{}]{At: t, Hash: hash, Key: key})
}

func (o *sorter[K, T]) Process(_ int, p exchange.Payload) error {
	b := p.(*exchange.KeyedBatch[K, T])
	o.keys.Touch(b.Hashes)
	watermark := o.timers.Watermark()
	for i, v := range b.Values {
		key, t := b.Keys[i], b.Timestamps[i]
		switch {
		case t == eventtime.MinTimestamp:
			return fmt.Errorf("sort by event time: %s, key %v: the record has no timestamp: give its stream a WatermarkStrategy", o.rt.Describe(b.Origins[i]), key)
		case t <= watermark:
			o.tooLate(b, i)
			continue
		}
		o.hold(b.Hashes[i], key, t, held[T]{v, b.Origins[i]})
	}
	b.Release()
	o.late.MoveTo(o.rt.Metrics)
	return o.element.Flush()
}

// tooLate handles a record whose turn has passed.
func (o *sorter[K, T]) tooLate(b *exchange.KeyedBatch[K, T], i int) {
	o.late.Add(b.Keys[i], b.Timestamps[i], o.timers.Watermark(), b.Origins[i], o.lateOutput == "")
	if o.lateOutput != "" {
		operator.Side[T](o.element, o.lateOutput).Append(b.Values[i], b.Timestamps[i], b.Origins[i])
	}
}

// Watermark passes on all records at or before t, then t.
func (o *sorter[K, T]) Watermark(t int64) error {
	if err := o.timers.AdvanceWatermark(t, o.release); err != nil {
		return err
	}
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.Out.Watermark(t)
}

// release passes on the records of one key and timestamp.
func (o *sorter[K, T]) release(t keyed.Timer[K, struct{}]) error {
	records := o.keys.Get(t.Hash, t.Key)
	end := records.after(t.At)
	for i := records.start; i < end; i++ {
		r := &records.values[i]
		o.emitter.Append(r.value, t.At, r.origin)
	}
	if records.dropBefore(end); records.len() == 0 {
		o.keys.Delete(t.Hash, t.Key)
	}
	return nil
}
