package task

import (
	"container/heap"
	"time"
)

// clock is a subtask's processing-time service. Callbacks run in the subtask's
// goroutine, when it calls fire; no goroutine waits for them.
type clock struct {
	due   dueHeap
	timer *time.Timer
	seq   uint64
	now   int64
	// quiet says that nothing is called any more.
	quiet bool
}

// due is one callback; cancelled ones stay in the heap until their time.
type due struct {
	at  int64
	seq uint64
	f   func(now int64) error
}

func newClock() *clock {
	c := &clock{timer: time.NewTimer(time.Hour)}
	c.timer.Stop()
	return c
}

// Now returns milliseconds since the epoch. It never falls: while the wall clock is
// set back, it stands still.
func (c *clock) Now() int64 {
	c.now = max(c.now, time.Now().UnixMilli())
	return c.now
}

// At implements operator.ProcessingTime.
func (c *clock) At(t int64, f func(now int64) error) (cancel func()) {
	d := &due{at: t, seq: c.seq, f: f}
	c.seq++
	if c.quiet {
		return func() {}
	}
	heap.Push(&c.due, d)
	if c.due[0] == d {
		c.arm()
	}
	return func() { d.f = nil }
}

// arm sets the one physical timer to the earliest callback.
func (c *clock) arm() {
	if len(c.due) == 0 {
		c.timer.Stop()
		return
	}
	c.timer.Reset(time.Until(time.UnixMilli(c.due[0].at)))
}

// C delivers when fire has something to do.
func (c *clock) C() <-chan time.Time { return c.timer.C }

// fire calls what is due, in order of time and then of registration.
func (c *clock) fire() error {
	defer c.arm()
	now := c.Now()
	for len(c.due) > 0 && c.due[0].at <= now {
		d := heap.Pop(&c.due).(*due)
		if d.f == nil {
			continue
		}
		if err := d.f(now); err != nil {
			return err
		}
	}
	return nil
}

// quiesce drops all callbacks, now and later: the task has nothing more to emit.
func (c *clock) quiesce() {
	c.quiet, c.due = true, nil
	c.stop()
}

func (c *clock) stop() { c.timer.Stop() }

type dueHeap []*due

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].seq < h[j].seq
}
func (h dueHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)   { *h = append(*h, x.(*due)) }
func (h *dueHeap) Pop() any {
	old := *h
	last := len(old) - 1
	d := old[last]
	old[last] = nil
	*h = old[:last]
	return d
}
