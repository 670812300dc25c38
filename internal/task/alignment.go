package task

import (
	"slices"
	"time"

	"github.com/lowwater/lowwater/internal/exchange"
)

// alignment waits until a barrier has arrived on all channels. A channel that has
// delivered it is blocked: what comes behind is set aside, and its credit is not
// given back, so that there is never more of it than the channel has credits.
type alignment struct {
	// barrier is the one being aligned, nil if there is none.
	barrier *exchange.Barrier
	blocked []bool
	arrived int
	started time.Time
	// over is the latest checkpoint whose barriers are no longer of interest: it has
	// been taken or given up.
	over int64

	aside []exchange.Message
}

// holds reports whether m has to wait, and then keeps it.
func (a *alignment) holds(m exchange.Message) bool {
	if a.barrier == nil || !a.blocked[m.Channel] {
		return false
	}
	a.aside = append(a.aside, m)
	return true
}

// next returns a message that was set aside and need not wait any longer.
func (a *alignment) next() (m exchange.Message, ok bool) {
	for i, m := range a.aside { // few: no more than the channels have credits
		if a.barrier == nil || !a.blocked[m.Channel] {
			a.aside = slices.Delete(a.aside, i, i+1)
			return m, true
		}
	}
	return m, false
}

// arrive takes a barrier from one of so many channels. complete is true if it was the
// last of them; took is then the time since the first.
func (a *alignment) arrive(b *exchange.Barrier, channel int32, channels int) (complete bool, took time.Duration) {
	if b.Checkpoint <= a.over {
		return false, 0
	}
	if a.barrier == nil || a.barrier.Checkpoint != b.Checkpoint {
		// An older one that is still incomplete was given up: its barriers were swallowed
		// upstream.
		a.begin(b, channels)
	}
	if !a.blocked[channel] {
		a.blocked[channel] = true
		a.arrived++
	}
	if a.arrived < channels {
		return false, 0
	}
	a.end(b.Checkpoint)
	return true, time.Since(a.started)
}

func (a *alignment) begin(b *exchange.Barrier, channels int) {
	if a.barrier != nil {
		a.end(a.barrier.Checkpoint)
	}
	if a.blocked == nil {
		a.blocked = make([]bool, channels)
	}
	a.barrier, a.started = b, time.Now()
}

// end unblocks all channels; barriers up to that checkpoint are over.
func (a *alignment) end(checkpoint int64) {
	a.over = max(a.over, checkpoint)
	if a.barrier != nil && a.barrier.Checkpoint <= checkpoint {
		clear(a.blocked)
		a.barrier, a.arrived = nil, 0
	}
}

// drain sets aside all that is in the inbox.
func (a *alignment) drain(inbox *exchange.Inbox) {
	for {
		select {
		case m := <-inbox.C():
			a.aside = append(a.aside, m)
		default:
			return
		}
	}
}
