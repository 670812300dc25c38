package exchange

import (
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/keyed"
)

// Writer is one output edge of a subtask.
type Writer interface {
	// Write takes ownership of p and sends its records on, each to the
	// channels the partitioner picks. It may keep a partial batch.
	Write(p Payload) error
	// Broadcast sends what is kept, then m, to every channel. A barrier, and what is kept
	// ahead of it, does not wait for credit.
	Broadcast(m Message) error
	// Flush sends what is kept where a credit is at hand.
	Flush() error
	// Pending reports whether records are kept.
	Pending() bool
}

// WriterFactory builds the writer of one sending subtask over the channels to
// all receiving subtasks it is connected to, in their order.
type WriterFactory func(out *Outbox, channels []*Channel, subtask int) Writer

// lane is one channel with the partial batch kept for it.
type lane[P any] struct {
	channel *Channel
	pending P
}

// lanes implements what all writers share. B is the batch type, never nil in a
// lane while it has pending records.
type lanes[B batch] struct {
	out   *Outbox
	lanes []lane[B]
}

// batch is a Payload that a writer can fill.
type batch interface {
	Payload
	comparable
	Full() bool
}

func newLanes[B batch](out *Outbox, channels []*Channel) lanes[B] {
	l := lanes[B]{out: out, lanes: make([]lane[B], len(channels))}
	for i, c := range channels {
		l.lanes[i].channel = c
	}
	return l
}

func (l *lanes[B]) sendPending(i int) error { return l.sendPendingBy(l.out.send, i) }

func (l *lanes[B]) sendPendingBy(send func(*Channel, Message) error, i int) error {
	var none B
	ln := &l.lanes[i]
	if ln.pending == none {
		return nil
	}
	p := ln.pending
	ln.pending = none
	return send(ln.channel, Message{Kind: Records, Payload: p})
}

func (l *lanes[B]) Broadcast(m Message) error {
	send := l.out.send
	if m.Kind == BarrierKind {
		send = l.out.sendNow
	}
	for i := range l.lanes {
		if err := l.sendPendingBy(send, i); err != nil {
			return err
		}
		if err := send(l.lanes[i].channel, m); err != nil {
			return err
		}
	}
	return nil
}

func (l *lanes[B]) Flush() error {
	for i := range l.lanes {
		if l.lanes[i].channel.hasCredit() {
			if err := l.sendPending(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lanes[B]) Pending() bool {
	var none B
	for i := range l.lanes {
		if l.lanes[i].pending != none {
			return true
		}
	}
	return false
}

// plainWriter is shared by the partitioners of unkeyed edges.
type plainWriter[T any] struct {
	lanes[*connector.Batch[T]]
	pool *connector.Pool[T]
}

func newPlainWriter[T any](out *Outbox, channels []*Channel) plainWriter[T] {
	return plainWriter[T]{newLanes[*connector.Batch[T]](out, channels), connector.NewPool[T]()}
}

// lane returns the batch to append to on lane i.
func (w *plainWriter[T]) lane(i int) *connector.Batch[T] {
	ln := &w.lanes.lanes[i]
	if ln.pending == nil {
		ln.pending = w.pool.Get()
	}
	return ln.pending
}

// appendAll adds all of b to lane i, in pieces that fit.
func (w *plainWriter[T]) appendAll(i int, b *connector.Batch[T]) error {
	for from := 0; from < b.Len(); {
		dst := w.lane(i)
		n := min(b.Len()-from, connector.BatchSize-dst.Len())
		dst.AppendRange(b, from, from+n)
		from += n
		if dst.Full() {
			if err := w.sendPending(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// handOver gives b itself to lane i if nothing is kept there and b is worth a
// message of its own; otherwise it copies and releases b.
func (w *plainWriter[T]) handOver(i int, b *connector.Batch[T]) error {
	if w.lanes.lanes[i].pending == nil && b.Len() >= connector.BatchSize/2 {
		return w.out.send(w.lanes.lanes[i].channel, Message{Kind: Records, Payload: b})
	}
	err := w.appendAll(i, b)
	b.Release()
	return err
}

// forward sends everything to the one channel it is given.
type forward[T any] struct{ plainWriter[T] }

// Forward connects each sender with the receiver of the same number.
func Forward[T any]() WriterFactory {
	return func(out *Outbox, channels []*Channel, _ int) Writer {
		return &forward[T]{newPlainWriter[T](out, channels)}
	}
}

func (w *forward[T]) Write(p Payload) error { return w.handOver(0, p.(*connector.Batch[T])) }

// rebalance deals records out in turn.
type rebalance[T any] struct {
	plainWriter[T]
	next int
}

// Rebalance deals records to all receivers in turn, starting at the sender's
// own number so that several senders do not all favour the first receiver.
func Rebalance[T any]() WriterFactory {
	return func(out *Outbox, channels []*Channel, subtask int) Writer {
		return &rebalance[T]{newPlainWriter[T](out, channels), subtask % len(channels)}
	}
}

func (w *rebalance[T]) Write(p Payload) error {
	b := p.(*connector.Batch[T])
	if len(w.lanes.lanes) == 1 {
		return w.handOver(0, b)
	}
	for i, v := range b.Values {
		dst := w.lane(w.next)
		dst.Append(v, b.Timestamps[i], b.Origins[i])
		if dst.Full() {
			if err := w.sendPending(w.next); err != nil {
				return err
			}
		}
		if w.next++; w.next == len(w.lanes.lanes) {
			w.next = 0
		}
	}
	b.Release()
	return nil
}

// broadcast sends every record to every channel.
type broadcast[T any] struct{ plainWriter[T] }

// Broadcast sends every record to all receivers, which share its value.
func Broadcast[T any]() WriterFactory {
	return func(out *Outbox, channels []*Channel, _ int) Writer {
		return &broadcast[T]{newPlainWriter[T](out, channels)}
	}
}

func (w *broadcast[T]) Write(p Payload) error {
	b := p.(*connector.Batch[T])
	last := len(w.lanes.lanes) - 1
	for i := range last {
		if err := w.appendAll(i, b); err != nil {
			return err
		}
	}
	return w.handOver(last, b)
}

// hash sends each record to the owner of its key group.
type hash[K comparable, T any] struct {
	lanes[*KeyedBatch[K, T]]
	pool   *KeyedPool[K, T]
	key    func(T) K
	hash   func(K) uint64
	owners keyed.Assignment
}

// Hash sends records to the receiver that owns their key group. The key is
// computed and hashed here, once, and both travel with the record. hasher is
// keyed.HasherFor[K]'s.
func Hash[K comparable, T any](key func(T) K, hasher func(K) uint64, maxParallelism int) WriterFactory {
	return func(out *Outbox, channels []*Channel, _ int) Writer {
		return &hash[K, T]{
			lanes:  newLanes[*KeyedBatch[K, T]](out, channels),
			pool:   NewKeyedPool[K, T](),
			key:    key,
			hash:   hasher,
			owners: keyed.NewAssignment(len(channels), maxParallelism),
		}
	}
}

func (w *hash[K, T]) Write(p Payload) error {
	b := p.(*connector.Batch[T])
	for i, v := range b.Values {
		k := w.key(v)
		h := w.hash(k)
		lane := w.owners.Subtask(h)
		ln := &w.lanes.lanes[lane]
		if ln.pending == nil {
			ln.pending = w.pool.Get()
		}
		dst := ln.pending
		dst.Append(v, b.Timestamps[i], b.Origins[i])
		dst.Keys = append(dst.Keys, k)
		dst.Hashes = append(dst.Hashes, h)
		if dst.Full() {
			if err := w.sendPending(lane); err != nil {
				return err
			}
		}
	}
	b.Release()
	return nil
}
