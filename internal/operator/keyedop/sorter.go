package keyedop

import (
	"fmt"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
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
	return o.Pass.Open(rt, out)
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
		records, _ := o.keys.Upsert(b.Hashes[i], key)
		records.add(t, held[T]{v, b.Origins[i]})
		o.timers.Event.Register(keyed.Timer[K, struct{}]{At: t, Hash: b.Hashes[i], Key: key})
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
