package windowed

import (
	"math"
	"slices"
	"sort"

	"github.com/lowwater/lowwater/window"
)

const (
	// noCleanup is the cleanup time of windows that are never dropped.
	noCleanup = math.MaxInt64
	noTime    = math.MinInt64
)

// keyWindows is what the general operator keeps of one key.
type keyWindows[A any] struct {
	// windows is sorted by MaxTimestamp, then start.
	windows []*windowState[A]
	// global is the key's own state.
	global window.Scope
}

// windowState is what it keeps of one window of one key.
type windowState[A any] struct {
	window window.TimeWindow
	acc    A
	// filled says that there are contents, in acc.
	filled bool
	// live says of a merging window that it is in flight: timers of others are
	// ignored.
	live    bool
	trigger window.Scope
	user    window.Scope
}

// drop drops the contents.
func (s *windowState[A]) drop() {
	var none A
	s.acc, s.filled = none, false
}

func (k *keyWindows[A]) empty() bool { return len(k.windows) == 0 && k.global.IsEmpty() }

func (k *keyWindows[A]) position(w window.TimeWindow) int {
	end := w.MaxTimestamp()
	return sort.Search(len(k.windows), func(i int) bool {
		o := k.windows[i].window
		return o.MaxTimestamp() > end || o.MaxTimestamp() == end && o.Start >= w.Start
	})
}

// at returns the state of a window, made if need be.
func (k *keyWindows[A]) at(w window.TimeWindow) *windowState[A] {
	i := k.position(w)
	if i < len(k.windows) && k.windows[i].window == w {
		return k.windows[i]
	}
	s := &windowState[A]{window: w}
	k.windows = slices.Insert(k.windows, i, s)
	return s
}

// prune forgets s if nothing is left of it.
func (k *keyWindows[A]) prune(s *windowState[A]) {
	if s.filled || s.live || !s.trigger.IsEmpty() || !s.user.IsEmpty() {
		return
	}
	if i := k.position(s.window); i < len(k.windows) && k.windows[i] == s {
		k.windows = slices.Delete(k.windows, i, i+1)
	}
}

// touching returns the windows in flight that touch w, by start. No two of them
// touch each other, so what touches their union touches w.
func (k *keyWindows[A]) touching(w window.TimeWindow) []*windowState[A] {
	var found []*windowState[A]
	for _, s := range k.windows {
		if s.live && s.window.Touches(w) {
			found = append(found, s)
		}
	}
	return found
}

// triggerContext is the window.TriggerContext of the general operator. There is one,
// which is about one window after the other.
type triggerContext[K comparable, T, A any] struct {
	o       *general[K, T, A]
	hash    uint64
	key     K
	windows *keyWindows[A]
	state   *windowState[A]
	merged  []*window.Scope
}

func (c *triggerContext[K, T, A]) CurrentWatermark() int64      { return c.o.watermark }
func (c *triggerContext[K, T, A]) CurrentProcessingTime() int64 { return c.o.rt.Timers.Now() }
func (c *triggerContext[K, T, A]) Scope() *window.Scope         { return &c.state.trigger }
func (c *triggerContext[K, T, A]) Merged() []*window.Scope      { return c.merged }

func (c *triggerContext[K, T, A]) RegisterEventTimeTimer(t int64) {
	c.o.service.Event.Register(c.o.timer(t, c.state.window))
}

func (c *triggerContext[K, T, A]) RegisterProcessingTimeTimer(t int64) {
	c.o.service.Processing.Register(c.o.timer(t, c.state.window))
}

func (c *triggerContext[K, T, A]) DeleteEventTimeTimer(t int64) {
	c.o.service.Event.Delete(c.o.timer(t, c.state.window))
}

func (c *triggerContext[K, T, A]) DeleteProcessingTimeTimer(t int64) {
	c.o.service.Processing.Delete(c.o.timer(t, c.state.window))
}

// contents is what the general operator keeps in a window.
type contents[T, A any] interface {
	New() A
	Add(acc A, value T, timestamp int64) A
	Merge(a, b A) A
	// empty reports whether an evictor has left nothing.
	empty(acc A) bool
	stored[A]
}

// folded keeps an accumulator.
type folded[T, A any] struct{ fold[T, A] }

func (f folded[T, A]) Add(acc A, value T, _ int64) A { return f.fold.Add(acc, value) }
func (folded[T, A]) empty(A) bool                    { return false }

// evictable keeps all elements.
type evictable[T any] struct{}

func (evictable[T]) New() []window.Timestamped[T] { return nil }

func (evictable[T]) Add(list []window.Timestamped[T], value T, timestamp int64) []window.Timestamped[T] {
	return append(list, window.Timestamped[T]{Value: value, Timestamp: timestamp})
}

func (evictable[T]) Merge(a, b []window.Timestamped[T]) []window.Timestamped[T] {
	return append(a, b...)
}

func (evictable[T]) empty(list []window.Timestamped[T]) bool { return len(list) == 0 }
