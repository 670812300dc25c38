package exchange

import (
	"errors"
	"sync/atomic"
)

// ErrCancelled is what a blocked send returns when its job is cancelled. It is
// never the first error of a job.
var ErrCancelled = errors.New("job cancelled")

// DefaultCredits is the number of messages that may be under way on one
// channel: one being processed, one ready behind it, and room for the signals
// between them.
const DefaultCredits = 4

// overdraft is how many messages a sender may send on one channel without a credit: a
// barrier, and the records kept ahead of it. They are paid for by the next credits that
// come back.
const overdraft = 2

// Channel connects one sending subtask with one receiving subtask.
type Channel struct {
	credits atomic.Int32
	index   int32
	queue   chan Message
	inbox   *Inbox
	// wake is the sender's, shared by all its channels.
	wake chan<- struct{}
}

// trySend sends m if a credit is at hand.
func (c *Channel) trySend(m Message) bool {
	if !c.hasCredit() {
		return false
	}
	c.put(m)
	return true
}

// overdraw sends m also without a credit, if the overdraft is not used up.
func (c *Channel) overdraw(m Message) bool {
	if c.credits.Load() <= -overdraft {
		return false
	}
	c.put(m)
	return true
}

func (c *Channel) put(m Message) {
	c.credits.Add(-1)
	m.Channel = c.index
	c.queue <- m // has room: the queue holds all credits of all its channels
}

// hasCredit is stable for the sender: only the sender takes credits.
func (c *Channel) hasCredit() bool { return c.credits.Load() > 0 }

// Inbox is the receiving end of all channels of one subtask.
type Inbox struct {
	queue    chan Message
	channels []*Channel
	// announced is the latest barrier that a sender has put into the queue.
	announced atomic.Pointer[Barrier]
	barrier   chan struct{}
}

// NewInbox returns an inbox with one channel per sender, each with the given
// number of credits.
func NewInbox(senders, credits int) *Inbox {
	in := &Inbox{queue: make(chan Message, senders*(credits+overdraft)), barrier: make(chan struct{}, 1)}
	for i := range senders {
		c := &Channel{index: int32(i), queue: in.queue, inbox: in}
		c.credits.Store(int32(credits))
		in.channels = append(in.channels, c)
	}
	return in
}

// Channel returns the i-th channel, for its sender to connect to.
func (in *Inbox) Channel(i int) *Channel { return in.channels[i] }

// Channels returns the number of channels.
func (in *Inbox) Channels() int { return len(in.channels) }

// Announced returns the latest barrier that has been sent to this inbox, which may still
// be behind other messages in it; nil before the first.
func (in *Inbox) Announced() *Barrier { return in.announced.Load() }

// Barrier delivers when Announced may have changed.
func (in *Inbox) Barrier() <-chan struct{} { return in.barrier }

func (in *Inbox) announce(b *Barrier) {
	in.announced.Store(b)
	select {
	case in.barrier <- struct{}{}:
	default:
	}
}

// C delivers the messages of all channels, each channel's in order.
func (in *Inbox) C() <-chan Message { return in.queue }

// Done gives the credit of a processed message back to its sender.
func (in *Inbox) Done(channel int32) {
	c := in.channels[channel]
	if c.credits.Add(1) == 1 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// BlockObserver is told when a sender starts and stops waiting for credit in the
// middle of emitting (hard back pressure).
type BlockObserver interface {
	Blocked()
	Unblocked()
}

// Outbox is the sending end of all channels of one subtask. Its methods are
// called by the subtask's goroutine only.
type Outbox struct {
	channels []*Channel
	wake     chan struct{}
	done     <-chan struct{}
	observer BlockObserver
}

// NewOutbox returns an outbox whose blocked sends end with ErrCancelled when
// done is closed.
func NewOutbox(done <-chan struct{}, observer BlockObserver) *Outbox {
	return &Outbox{wake: make(chan struct{}, 1), done: done, observer: observer}
}

// Connect makes the outbox the sender of c. Call before any message is sent.
func (o *Outbox) Connect(c *Channel) {
	c.wake = o.wake
	o.channels = append(o.channels, c)
}

// Available reports whether every channel has a credit, so that the next
// batch can be processed without blocking in the middle.
func (o *Outbox) Available() bool {
	for _, c := range o.channels {
		if !c.hasCredit() {
			return false
		}
	}
	return true
}

// Wake delivers when a channel without credit got one.
func (o *Outbox) Wake() <-chan struct{} { return o.wake }

// sendNow sends m without waiting for a credit, unless earlier ones that did so are still
// on the channel.
func (o *Outbox) sendNow(c *Channel, m Message) error {
	if m.Barrier != nil {
		c.inbox.announce(m.Barrier)
	}
	if c.overdraw(m) {
		return nil
	}
	return o.send(c, m)
}

// send blocks until m is sent or the job is cancelled.
func (o *Outbox) send(c *Channel, m Message) error {
	if c.trySend(m) {
		return nil
	}
	o.observer.Blocked()
	defer o.observer.Unblocked()
	for {
		select {
		case <-o.wake:
			if c.trySend(m) {
				return nil
			}
		case <-o.done:
			return ErrCancelled
		}
	}
}
