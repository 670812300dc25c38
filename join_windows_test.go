package lowwater_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/lowwatertest"
	"github.com/lowwater/lowwater/window"
)

// order and payment are the two sides of the joins here: of different types, so that
// neither can be taken for the other.
type (
	order   struct{ ID, Item string }
	payment struct {
		Order string
		Cents int
	}
	paidOrder = lowwater.Either[order, payment]
	shop      struct {
		orders   *lowwatertest.Input[order]
		payments *lowwatertest.Input[payment]
	}
)

func newShop(h *lowwatertest.Harness) shop {
	return shop{h.Input[order]("orders"), h.Input[payment]("payments")}
}

func orderID(o order) string { return o.ID }

func (s shop) keyed() (*lowwater.KeyedStream[string, order], *lowwater.KeyedStream[string, payment]) {
	return s.orders.Stream().KeyBy(orderID), s.payments.Stream().KeyBy(func(p payment) string { return p.Order })
}

func (s shop) join() *lowwater.JoinedStreams[string, order, payment] {
	orders, payments := s.keyed()
	return orders.Join(payments)
}

func (s shop) group() *lowwater.CoGroupedStreams[string, order, payment] {
	orders, payments := s.keyed()
	return orders.CoGroup(payments)
}

func (s shop) watermark(t int64) {
	s.orders.Watermark(t)
	s.payments.Watermark(t)
}

func pairText(o order, p payment) string { return fmt.Sprint(o.Item, " ", p.Cents) }

// groupText writes both sides in the order in which the function sees them.
func groupText(ctx *lowwater.WindowContext[string], orders []order, payments []payment, out *lowwater.Collector[string]) error {
	text := ctx.Key()
	for _, o := range orders {
		text += " " + o.Item
	}
	for _, p := range payments {
		text += fmt.Sprint(" ", p.Cents)
	}
	if ctx.Timing() != window.OnTime {
		text += fmt.Sprint(" ", ctx.Timing())
	}
	out.Emit(text)
	return nil
}

func wantTaken[T any](t *testing.T, out *lowwatertest.Output[T], want ...T) {
	t.Helper()
	if diff := cmp.Diff(want, out.TakeValues()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var (
	joinSecond = window.Tumbling(time.Second)
	lateEither = lowwater.NewOutputTag[paidOrder]("late")
)

// TestJoinedWindowsLateOutput: records of both sides that no window takes come out as they
// are, with their timestamps, and none of them counts as dropped.
func TestJoinedWindowsLateOutput(t *testing.T) {
	for name, build := range map[string]func(shop) *lowwater.DataStream[string]{
		"Join": func(s shop) *lowwater.DataStream[string] {
			return s.join().Window(joinSecond).AllowedLateness(500 * time.Millisecond).SideOutputLate(lateEither).Apply(pairText)
		},
		"CoGroup": func(s shop) *lowwater.DataStream[string] {
			return s.group().Window(joinSecond).AllowedLateness(500 * time.Millisecond).SideOutputLate(lateEither).Apply(
				func(_ *lowwater.WindowContext[string], orders []order, payments []payment, out *lowwater.Collector[string]) error {
					for _, o := range orders {
						for _, p := range payments {
							out.Emit(pairText(o, p))
						}
					}
					return nil
				})
		},
	} {
		t.Run(name, func(t *testing.T) {
			lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
				s := newShop(h)
				results := build(s)
				out, late := h.Output(results), h.Output(results.SideOutput(lateEither))
				s.orders.Push(order{"a", "cup"}, 100)
				s.payments.Push(payment{"a", 7}, 200)
				s.watermark(999)
				wantTaken(t, out, "cup 7")
				s.payments.Push(payment{"a", 8}, 300) // within the allowed lateness: all pairs again
				wantTaken(t, out, "cup 7", "cup 8")
				s.orders.Watermark(5000) // the payments hold event time
				s.orders.Push(order{"a", "jug"}, 400)
				wantTaken(t, out, "cup 7", "cup 8", "jug 7", "jug 8")
				s.payments.Watermark(1499)
				s.orders.Push(order{"a", "pan"}, 101)
				s.payments.Push(payment{"a", 9}, 102)
				wantTaken(t, out)
				want := []lowwatertest.Element[paidOrder]{
					{Value: paidOrder{Left: order{"a", "pan"}}, Timestamp: 101},
					{Value: paidOrder{Right: payment{"a", 9}, IsRight: true}, Timestamp: 102},
				}
				if diff := cmp.Diff(want, late.Take()); diff != "" {
					t.Errorf("late (-want +got):\n%s", diff)
				}
				counts := lateCounts(h.Status())
				if counts != [2]int64{2, 0} {
					t.Errorf("%v records are late and dropped, want 2 and 0", counts)
				}
			})
		})
	}
}

// lateCounts returns how many records of a job were late and how many of them dropped.
func lateCounts(s lowwater.JobStatus) (counts [2]int64) {
	for _, v := range s.Vertices {
		for _, subtask := range v.Subtasks {
			for _, o := range subtask.Operators {
				counts[0] += o.LateRecords
				counts[1] += o.LateRecordsDropped
			}
		}
	}
	return counts
}

// onPayment fires for every payment, and not at the end of windows.
type onPayment struct {
	window.ElementTrigger[paidOrder]
}

func (onPayment) OnElement(_ window.TriggerContext, e paidOrder, _ int64, _ window.TimeWindow) window.TriggerResult {
	if e.IsRight {
		return window.Fire
	}
	return window.Continue
}

// TestJoinedWindowsTriggers: a trigger sees the records of both sides as those of one stream.
func TestJoinedWindowsTriggers(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		s := newShop(h)
		joined := h.Output(s.join().Window(joinSecond).Trigger(window.CountTrigger(2)).Apply(pairText))
		counted := h.Output(s.group().Window(joinSecond).Trigger(window.PurgingTrigger(window.CountTrigger(2))).Apply(groupText))
		asked := h.Output(s.group().Window(joinSecond).
			ElementTrigger(onPayment{window.ForElements[paidOrder](window.NeverTrigger())}).Apply(groupText))

		s.orders.Push(order{"a", "cup"}, 100)
		s.orders.Push(order{"a", "jug"}, 101)
		wantTaken(t, joined) // it fires, without a pair
		wantTaken(t, counted, "a cup jug early")
		wantTaken(t, asked)

		s.payments.Push(payment{"a", 7}, 102)
		wantTaken(t, joined)
		wantTaken(t, asked, "a cup jug 7 early")

		s.payments.Push(payment{"a", 8}, 103)
		wantTaken(t, joined, "cup 7", "cup 8", "jug 7", "jug 8")
		wantTaken(t, counted, "a 7 8 early")
		wantTaken(t, asked, "a cup jug 7 8 early")

		s.watermark(5000)
		wantTaken(t, joined)
		wantTaken(t, counted)
		wantTaken(t, asked)
	})
}

// TestJoinedWindowsEvictor: an evictor chooses among the records of both sides, in the order
// of their arrival.
func TestJoinedWindowsEvictor(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		s := newShop(h)
		last3 := window.CountEvictor[paidOrder](3)
		joined := h.Output(s.join().Window(joinSecond).Evictor(last3).Apply(pairText))
		grouped := h.Output(s.group().Window(joinSecond).AllowedLateness(time.Hour).Evictor(last3).Apply(groupText))
		s.orders.Push(order{"a", "cup"}, 100)
		s.payments.Push(payment{"a", 7}, 101)
		s.orders.Push(order{"a", "jug"}, 102)
		s.payments.Push(payment{"a", 8}, 103)
		s.watermark(999)
		wantTaken(t, joined, "jug 7", "jug 8")
		wantTaken(t, grouped, "a jug 7 8")
		s.payments.Push(payment{"a", 9}, 104)
		wantTaken(t, grouped, "a jug 8 9 late")
	})
}

// TestJoinedWindowsCloseAfterSilence: records of either side break the silence.
func TestJoinedWindowsCloseAfterSilence(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		s := newShop(h)
		joined := h.Output(s.join().Window(joinSecond).CloseAfterSilence(time.Second).Apply(pairText))
		grouped := h.Output(s.group().Window(joinSecond).CloseAfterSilence(time.Second).Apply(groupText))
		s.orders.Push(order{"a", "cup"}, 100)
		h.Advance(600 * time.Millisecond)
		s.payments.Push(payment{"a", 7}, 101)
		h.Advance(600 * time.Millisecond)
		wantTaken(t, joined)
		wantTaken(t, grouped)
		h.Advance(600 * time.Millisecond)
		wantTaken(t, joined, "cup 7")
		wantTaken(t, grouped, "a cup 7 closed by silence")
	})
}

// TestCoGroupState: the function's state goes with the window, and clear sees it go.
func TestCoGroupState(t *testing.T) {
	gone := lowwater.NewOutputTag[string]("gone")
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		s := newShop(h)
		firings := window.NewState[int]("firings")
		grouped := s.group().Window(joinSecond).AllowedLateness(500 * time.Millisecond).
			Stateful(func(ctx *lowwater.WindowContext[string]) error {
				ctx.Output(gone, ctx.Key())
				return nil
			}).
			Apply(func(ctx *lowwater.WindowContext[string], orders []order, payments []payment, out *lowwater.Collector[string]) error {
				scope, err := ctx.WindowState()
				if err != nil {
					return err
				}
				n, _ := firings.Get(scope)
				firings.Set(scope, n+1)
				out.Emit(fmt.Sprint(n+1, ": ", len(orders), " ", len(payments)))
				return nil
			})
		out, cleared := h.Output(grouped), h.Output(grouped.SideOutput(gone))
		s.orders.Push(order{"a", "cup"}, 100)
		s.watermark(999)
		s.payments.Push(payment{"a", 7}, 101)
		wantTaken(t, out, "1: 1 0", "2: 1 1")
		wantTaken(t, cleared)
		s.watermark(1499)
		wantTaken(t, cleared, "a")
	})
}

// TestJoinedWindowsRestore: what windows hold of both sides, how far their triggers have
// counted and what is late go on, with any parallelism.
func TestJoinedWindowsRestore(t *testing.T) {
	type outputs struct {
		shop
		joined, evicted, counted *lowwatertest.Output[string]
		late                     *lowwatertest.Output[paidOrder]
	}
	build := func(h *lowwatertest.Harness) outputs {
		s := newShop(h)
		joined := s.join().Window(joinSecond).SideOutputLate(lateEither).Apply(pairText)
		evicted := s.join().Window(joinSecond).Evictor(window.CountEvictor[paidOrder](2)).Apply(pairText)
		counted := s.group().Window(joinSecond).Trigger(window.CountTrigger(3)).Apply(groupText)
		return outputs{s, h.Output(joined), h.Output(evicted), h.Output(counted), h.Output(joined.SideOutput(lateEither))}
	}
	var snapshot *lowwatertest.Snapshot
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		o := build(h)
		o.watermark(2999)
		o.orders.Push(order{"a", "cup"}, 3100)
		o.payments.Push(payment{"a", 7}, 3101)
		snapshot = h.Snapshot()
	}, lowwatertest.WithSnapshots())

	for _, parallelism := range []int{1, 3} {
		lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
			o := build(h)
			o.payments.Push(payment{"a", 8}, 3102)
			wantTaken(t, o.counted, "a cup 7 8 early")
			o.orders.Push(order{"a", "jug"}, 2100)
			o.payments.Push(payment{"b", 9}, 2101)
			late := o.late.TakeValues()
			slices.SortFunc(late, func(a, b paidOrder) int { return a.Right.Cents - b.Right.Cents })
			if diff := cmp.Diff([]paidOrder{{Left: order{"a", "jug"}}, {Right: payment{"b", 9}, IsRight: true}}, late); diff != "" {
				t.Errorf("late (-want +got):\n%s", diff)
			}
			o.watermark(3999)
			wantTaken(t, o.joined, "cup 7", "cup 8")
			wantTaken(t, o.evicted) // of the cup and two payments the payments are left
		}, lowwatertest.Restore(snapshot), lowwater.WithParallelism(parallelism))
	}
}

// TestJoinedWindowsMistakes: settings of both kinds are checked as those of a single stream.
func TestJoinedWindowsMistakes(t *testing.T) {
	type joined = lowwater.JoinedWindows[string, order, payment]
	type grouped = lowwater.CoGroupedWindows[string, order, payment]
	tests := []struct {
		says  string
		join  func(*joined) *joined
		group func(*grouped) *grouped
	}{
		{"AllowedLateness(-1s): must not be negative",
			func(w *joined) *joined { return w.AllowedLateness(-time.Second) },
			func(w *grouped) *grouped { return w.AllowedLateness(-time.Second) }},
		{"CloseAfterSilence(1µs): must be whole milliseconds",
			func(w *joined) *joined { return w.CloseAfterSilence(time.Microsecond) },
			func(w *grouped) *grouped { return w.CloseAfterSilence(time.Microsecond) }},
		{"CloseAfterSilence fires windows by itself",
			func(w *joined) *joined { return w.CloseAfterSilence(time.Second).Trigger(window.CountTrigger(1)) },
			func(w *grouped) *grouped { return w.CloseAfterSilence(time.Second).Trigger(window.CountTrigger(1)) }},
		{"trigger",
			func(w *joined) *joined { return w.Trigger(nil) },
			func(w *grouped) *grouped { return w.Trigger(nil) }},
		{"trigger",
			func(w *joined) *joined { return w.ElementTrigger(nil) },
			func(w *grouped) *grouped { return w.ElementTrigger(nil) }},
		{"evictor",
			func(w *joined) *joined { return w.Evictor(nil) },
			func(w *grouped) *grouped { return w.Evictor(nil) }},
		{"SideOutputLate: the output tag has no id",
			func(w *joined) *joined { return w.SideOutputLate(lowwater.OutputTag[paidOrder]{}) },
			func(w *grouped) *grouped { return w.SideOutputLate(lowwater.OutputTag[paidOrder]{}) }},
	}
	for _, tt := range tests {
		streams := func() (*lowwater.Environment, *lowwater.KeyedStream[string, order], *lowwater.KeyedStream[string, payment]) {
			env := lowwater.NewEnvironment()
			return env, lowwater.FromSlice(env, []order{}).KeyBy(orderID),
				lowwater.FromSlice(env, []payment{}).KeyBy(func(p payment) string { return p.Order })
		}
		env, orders, payments := streams()
		tt.join(orders.Join(payments).Window(joinSecond)).Apply(pairText)
		wantBuildError(t, env, "join_windows_test.go:", tt.says)

		env, orders, payments = streams()
		tt.group(orders.CoGroup(payments).Window(joinSecond)).Apply(groupText)
		wantBuildError(t, env, "join_windows_test.go:", tt.says)
	}
}

// TestJoinedWindowsSettingsAreCopies: a setting does not change what it was called on.
func TestJoinedWindowsSettingsAreCopies(t *testing.T) {
	lowwatertest.Drive(t, func(t *testing.T, h *lowwatertest.Harness) {
		s := newShop(h)
		plain := s.join().Window(joinSecond)
		counting := h.Output(plain.Trigger(window.CountTrigger(2)).Apply(pairText))
		out := h.Output(plain.Apply(pairText))
		s.orders.Push(order{"a", "cup"}, 100)
		s.payments.Push(payment{"a", 7}, 101)
		wantTaken(t, counting, "cup 7")
		wantTaken(t, out)
		s.watermark(999)
		wantTaken(t, counting)
		wantTaken(t, out, "cup 7")
	})
}
