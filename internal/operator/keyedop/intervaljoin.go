package keyedop

import (
	"fmt"
	"math"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// Interval says which records an interval join pairs: those with
// left + Lower <= right <= left + Upper, in milliseconds. An interval with Lower above
// Upper pairs nothing.
type Interval struct {
	Lower, Upper int64
	// LateLeft and LateRight are the ids of the side outputs for late records; empty if
	// they are dropped.
	LateLeft, LateRight string
}

// Pair is the context of a join function. Its Timestamp is the later of both records'.
type Pair struct {
	*operator.Element
	LeftTimestamp, RightTimestamp int64
}

// intervalJoin pairs the records of two inputs with equal keys and nearby timestamps (spec
// windows 6.1). A record is paired when it arrives with what has arrived before it, and
// kept until the watermark says that no partner can come any more.
//
// There is one timer per key, for the record that is to go first.
type intervalJoin[K comparable, T, U, R any] struct {
	operator.Pass
	Interval
	open    func(*Pair, *operator.Emitter[R]) func(T, U) error
	f       func(T, U) error
	rt      *operator.Runtime
	pair    *Pair
	emitter *operator.Emitter[R]
	late    operator.LateRecords

	keys   *keyed.Table[K, buffers[T, U]]
	timers *keyed.TimerService[K, struct{}]
	// storedLeft and storedRight are how records are stored, nil if they are not.
	storedLeft  *records[K, T]
	storedRight *records[K, U]
}

// buffers is what is kept for one key. A key has at least one record.
type buffers[T, U any] struct {
	left  buffer[T]
	right buffer[U]
	// wake is the time of the key's timer.
	wake int64
}

// NewIntervalJoin returns the operator of an interval join. open makes the function of one
// subtask.
func NewIntervalJoin[K comparable, T, U, R any](i Interval, open func(*Pair, *operator.Emitter[R]) func(T, U) error) operator.Operator {
	return &intervalJoin[K, T, U, R]{
		Interval: i, open: open,
		keys:   keyed.NewTable[K, buffers[T, U]](),
		timers: keyed.NewTimerService[K, struct{}](),
	}
}

func (o *intervalJoin[K, T, U, R]) Open(rt *operator.Runtime, out operator.Output) error {
	o.rt = rt
	o.pair = &Pair{Element: operator.NewElement(rt, out)}
	o.emitter = operator.NewEmitter[R](out, "")
	o.f = o.open(o.pair, o.emitter)
	o.LateLeft, o.LateRight = operator.ConsumedSide(out, o.LateLeft), operator.ConsumedSide(out, o.LateRight)
	if err := o.Pass.Open(rt, out); err != nil || !isStored(rt) {
		return err
	}
	return o.store(rt)
}

// store makes records storable, and takes up those of a snapshot.
func (o *intervalJoin[K, T, U, R]) store(rt *operator.Runtime) error {
	keys, err := keyed.NewKeyCodec[K](rt.MaxParallelism)
	if err != nil {
		return err
	}
	if o.storedLeft, err = newRecords[K, T](keys, leftPart); err != nil {
		return fmt.Errorf("left input: %w", err)
	}
	if o.storedRight, err = newRecords[K, U](keys, rightPart); err != nil {
		return fmt.Errorf("right input: %w", err)
	}
	if rt.Restored == nil {
		return nil
	}
	err = o.storedLeft.restore(rt.Restored, func(hash uint64, key K, t int64, v T) {
		o.enter(hash, key, later(t, o.keepLeft())).left.add(t, v)
	})
	if err != nil {
		return err
	}
	return o.storedRight.restore(rt.Restored, func(hash uint64, key K, t int64, v U) {
		o.enter(hash, key, later(t, o.keepRight())).right.add(t, v)
	})
}

// Snapshot implements operator.Stateful. Timers follow from the records.
func (o *intervalJoin[K, T, U, R]) Snapshot(w snapshot.Writer) error {
	s := keyed.NewSnapshot(w)
	left, err := o.storedLeft.part(s)
	if err != nil {
		return err
	}
	right, err := o.storedRight.part(s)
	if err != nil {
		return err
	}
	s.Table(o.keys, func(to *keyed.Encoder, e *keyed.Entry[K, buffers[T, U]]) error {
		if err := writeBuffer(o.storedLeft, left, to, e.Hash, &e.Key, &e.Value.left, func(v *T) *T { return v }); err != nil {
			return err
		}
		return writeBuffer(o.storedRight, right, to, e.Hash, &e.Key, &e.Value.right, func(v *U) *U { return v })
	})
	s.Start()
	return nil
}

func (o *intervalJoin[K, T, U, R]) Process(input int, p exchange.Payload) error {
	var err error
	if input == 0 {
		err = o.processLeft(p.(*exchange.KeyedBatch[K, T]))
	} else {
		err = o.processRight(p.(*exchange.KeyedBatch[K, U]))
	}
	if err != nil {
		return err
	}
	return o.flush()
}

func (o *intervalJoin[K, T, U, R]) flush() error {
	o.rt.Metrics.EventTimers.Tell(o.timers.Event.Next())
	o.late.MoveTo(o.rt.Metrics)
	if err := o.emitter.Flush(); err != nil {
		return err
	}
	return o.pair.Flush()
}

func (o *intervalJoin[K, T, U, R]) processLeft(b *exchange.KeyedBatch[K, T]) error {
	o.keys.Touch(b.Hashes)
	for i, v := range b.Values {
		t := b.Timestamps[i]
		if ok, err := accepts(o, b, i, o.LateLeft); !ok {
			if err != nil {
				return err
			}
			continue
		}
		k := o.enter(b.Hashes[i], b.Keys[i], later(t, o.keepLeft()))
		k.left.add(t, v)
		from, to := k.right.within(later(t, o.Lower), later(t, o.Upper))
		for j := from; j < to; j++ {
			if err := o.emit(v, k.right.values[j], t, k.right.times[j], b.Origins[i]); err != nil {
				return err
			}
		}
	}
	b.Release()
	return nil
}

func (o *intervalJoin[K, T, U, R]) processRight(b *exchange.KeyedBatch[K, U]) error {
	o.keys.Touch(b.Hashes)
	for i, v := range b.Values {
		t := b.Timestamps[i]
		if ok, err := accepts(o, b, i, o.LateRight); !ok {
			if err != nil {
				return err
			}
			continue
		}
		k := o.enter(b.Hashes[i], b.Keys[i], later(t, o.keepRight()))
		k.right.add(t, v)
		from, to := k.left.within(later(t, -o.Upper), later(t, -o.Lower))
		for j := from; j < to; j++ {
			if err := o.emit(k.left.values[j], v, k.left.times[j], t, b.Origins[i]); err != nil {
				return err
			}
		}
	}
	b.Release()
	return nil
}

// keepLeft and keepRight are how long after their timestamps records may find partners.
func (o *intervalJoin[K, T, U, R]) keepLeft() int64  { return max(o.Upper, 0) }
func (o *intervalJoin[K, T, U, R]) keepRight() int64 { return max(-o.Lower, 0) }

// accepts reports whether record i takes part in the join. If it is late it goes to the
// side output with that id.
func accepts[K comparable, T, U, R, V any](o *intervalJoin[K, T, U, R], b *exchange.KeyedBatch[K, V], i int, lateOutput string) (bool, error) {
	t := b.Timestamps[i]
	if t == eventtime.MinTimestamp {
		return false, fmt.Errorf("interval join: %s, key %v: the record has no timestamp: give its stream a WatermarkStrategy", o.rt.Describe(b.Origins[i]), b.Keys[i])
	}
	watermark := o.timers.Watermark()
	if t >= watermark {
		return true, nil
	}
	o.late.Add(b.Keys[i], t, watermark, b.Origins[i], lateOutput == "")
	if lateOutput != "" {
		operator.Side[V](o.pair.Element, lateOutput).Append(b.Values[i], t, b.Origins[i])
	}
	return false, nil
}

// enter returns the buffers of a key for a record that is to go at a time.
func (o *intervalJoin[K, T, U, R]) enter(hash uint64, key K, goes int64) *buffers[T, U] {
	k, created := o.keys.Upsert(hash, key)
	if !created && k.wake <= goes {
		return k
	}
	timer := keyed.Timer[K, struct{}]{At: k.wake, Hash: hash, Key: key}
	if !created {
		o.timers.Event.Delete(timer)
	}
	k.wake, timer.At = goes, goes
	o.timers.Event.Register(timer)
	return k
}

func (o *intervalJoin[K, T, U, R]) emit(left T, right U, leftAt, rightAt int64, origin connector.Origin) error {
	o.pair.LeftTimestamp, o.pair.RightTimestamp = leftAt, rightAt
	o.pair.Timestamp, o.pair.Origin = max(leftAt, rightAt), origin
	return o.f(left, right)
}

// Watermark forgets what can find no partner any more, then forwards t.
func (o *intervalJoin[K, T, U, R]) Watermark(t int64) error {
	o.pair.Watermark = t
	if o.rt.Resuming {
		// What came behind its time is kept until the next watermark, also over a restart.
		o.timers.Resume(t)
		return o.Out.Watermark(t)
	}
	if err := o.timers.AdvanceWatermark(t, o.forget); err != nil {
		return err
	}
	return o.Out.Watermark(t)
}

// forget removes a key's records whose time has come, and sets a timer for the next.
func (o *intervalJoin[K, T, U, R]) forget(timer keyed.Timer[K, struct{}]) error {
	k := o.keys.Get(timer.Hash, timer.Key)
	watermark := o.timers.Watermark()
	k.left.dropExpired(o.keepLeft(), watermark)
	k.right.dropExpired(o.keepRight(), watermark)
	if k.left.len() == 0 && k.right.len() == 0 {
		o.keys.Delete(timer.Hash, timer.Key)
		return nil
	}
	k.wake = math.MaxInt64
	if k.left.len() > 0 {
		k.wake = later(k.left.first(), o.keepLeft())
	}
	if k.right.len() > 0 {
		k.wake = min(k.wake, later(k.right.first(), o.keepRight()))
	}
	timer.At = k.wake
	o.timers.Event.Register(timer)
	return nil
}
