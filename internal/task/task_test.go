package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
)

// recorder is an operator that notes what reaches it and passes it on.
type recorder struct {
	operator.Pass
	rt      *operator.Runtime
	events  []string
	failOn  string
	panicOn string
	slow    time.Duration
}

func (r *recorder) note(format string, args ...any) error {
	e := fmt.Sprintf(format, args...)
	r.events = append(r.events, e)
	switch e {
	case r.panicOn:
		panic("kaboom on " + e)
	case r.failOn:
		return errors.New("broken on " + e)
	}
	return nil
}

func (r *recorder) Open(rt *operator.Runtime, out operator.Output) error {
	r.rt = rt
	if err := r.Pass.Open(rt, out); err != nil {
		return err
	}
	return r.note("open")
}

func (r *recorder) Process(input int, p exchange.Payload) error {
	if r.slow > 0 {
		<-time.After(r.slow)
	}
	if err := r.note("%d:%v", input, p.(*connector.Batch[int]).Values); err != nil {
		return err
	}
	return r.Out.Emit(p)
}

func (r *recorder) Watermark(t int64) error {
	if err := r.note("watermark %d", t); err != nil {
		return err
	}
	return r.Pass.Watermark(t)
}

func (r *recorder) Status(idle bool) error {
	if err := r.note("idle %v", idle); err != nil {
		return err
	}
	return r.Pass.Status(idle)
}

func (r *recorder) Finish() error { return r.note("finish") }
func (r *recorder) Flush() error  { return r.note("flush") }
func (r *recorder) Close() error  { return r.note("close") }

func runtimeOf(name string) operator.Runtime {
	return operator.Runtime{
		Name:    name,
		Logger:  slog.New(slog.NewTextHandler(io.Discard, nil)),
		Metrics: metric.NewOperator(name, ""),
	}
}

func copyInts(p exchange.Payload) exchange.Payload {
	b := p.(*connector.Batch[int])
	c := connector.NewPool[int]().Get()
	c.AppendRange(b, 0, b.Len())
	return c
}

func ints(values ...int) *connector.Batch[int] {
	b := connector.NewPool[int]().Get()
	for _, v := range values {
		b.Append(v, int64(v), 0)
	}
	return b
}

// upstream writes into a task's inbox as another task would.
type upstream struct{ w exchange.Writer }

func newUpstream(c *exchange.Channel, done <-chan struct{}) *upstream {
	out := exchange.NewOutbox(done, nopObserver{})
	out.Connect(c)
	return &upstream{exchange.Forward[int]()(out, []*exchange.Channel{c}, 0)}
}

type nopObserver struct{}

func (nopObserver) Blocked()   {}
func (nopObserver) Unblocked() {}

func (u *upstream) send(t *testing.T, messages ...any) {
	t.Helper()
	for _, m := range messages {
		var err error
		switch m := m.(type) {
		case *connector.Batch[int]:
			err = u.w.Write(m)
		case exchange.Message:
			err = u.w.Broadcast(m)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func watermark(t int64) exchange.Message {
	return exchange.Message{Kind: exchange.Watermark, Time: t}
}

func idleStatus(on bool) exchange.Message { return exchange.Message{Kind: exchange.Status, Idle: on} }

func end(drained bool) exchange.Message {
	return exchange.Message{Kind: exchange.EndOfData, Drained: drained}
}

// chainOf returns nodes that are chained one behind the other.
func chainOf(ops ...*recorder) []Node {
	nodes := make([]Node, len(ops))
	for i, op := range ops {
		nodes[i] = Node{Operator: op, Runtime: runtimeOf(fmt.Sprintf("op%d", i))}
		if i+1 < len(ops) {
			nodes[i].Outputs = []Output{{Copy: copyInts, Node: i + 1}}
		}
	}
	return nodes
}

func TestTaskRunsChainAndInputsToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &recorder{}, &recorder{}
		inbox := exchange.NewInbox(3, 4)
		task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
			return Config{Nodes: chainOf(first, second), Inbox: inbox, Logical: []int{0, 0, 1}}
		})
		left0, left1 := newUpstream(inbox.Channel(0), nil), newUpstream(inbox.Channel(1), nil)
		right := newUpstream(inbox.Channel(2), nil)
		result := make(chan error, 1)
		go func() { result <- task.Run() }()

		left0.send(t, ints(1, 2), watermark(10))
		synctest.Wait()
		left1.send(t, watermark(20)) // min of the left input is 10, the right has none
		synctest.Wait()
		right.send(t, ints(7), watermark(15)) // combined: 10
		synctest.Wait()
		left0.send(t, idleStatus(true)) // left: 20, so combined: 15
		synctest.Wait()
		left1.send(t, end(true))
		left0.send(t, end(true))
		right.send(t, watermark(30), end(true)) // combined: 20
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		want := []string{"open", "0:[1 2]", "1:[7]", "watermark 10", "watermark 15", "watermark 20", "finish", "flush", "close"}
		if !slices.Equal(first.events, want) {
			t.Errorf("the head saw\n%q, want\n%q", first.events, want)
		}
		want[2] = "0:[7]" // the second operator has one input
		if !slices.Equal(second.events, want) {
			t.Errorf("the chained operator saw\n%q, want\n%q", second.events, want)
		}
		m := second.rt.Metrics
		if m.NumRecordsIn.Value() != 3 || m.CurrentInputWatermark.Value() != 20 {
			t.Errorf("counted %d records in and watermark %d", m.NumRecordsIn.Value(), m.CurrentInputWatermark.Value())
		}
	})
}

// TestEventTimeEndsWhenItHasOnAllChannels: a channel that ends leaves an idle one its
// chance to deliver more, on the same input and on the other.
func TestEventTimeEndsWhenItHasOnAllChannels(t *testing.T) {
	const top = eventtime.MaxTimestamp
	end := fmt.Sprint("watermark ", top)
	type signal struct {
		channel int
		message exchange.Message
	}
	tests := []struct {
		name    string
		logical []int
		signals []signal
		want    []string
	}{
		{"all at once", []int{0, 0}, []signal{{0, watermark(top)}, {1, watermark(top)}}, []string{end}},
		{"an active channel goes on alone", []int{0, 0}, []signal{
			{0, watermark(3)}, {0, watermark(top)}, {1, watermark(5)}, {1, watermark(6)}, {1, watermark(top)},
		}, []string{"watermark 5", "watermark 6", end}},
		{"an idle channel resumes behind an ended one", []int{0, 0}, []signal{
			{0, watermark(3)}, {1, watermark(5)}, {0, idleStatus(true)}, {1, watermark(top)},
			{0, idleStatus(false)}, {0, watermark(7)}, {0, watermark(top)},
		}, []string{"watermark 3", "watermark 5", "idle true", "idle false", "watermark 7", end}},
		{"all idle at the end", []int{0, 0}, []signal{
			{0, watermark(3)}, {1, watermark(5)}, {0, idleStatus(true)}, {1, idleStatus(true)},
			{0, idleStatus(false)}, {0, watermark(top)}, {1, idleStatus(false)}, {1, watermark(top)},
		}, []string{"watermark 3", "watermark 5", "idle true", "idle false", "idle true", "idle false", end}},
		{"what follows the end of a channel does not count", []int{0, 0}, []signal{
			{0, watermark(top)}, {0, idleStatus(true)}, {0, idleStatus(false)}, {0, watermark(top)}, {1, watermark(5)},
		}, []string{"watermark 5"}},
		{"another input goes on alone", []int{0, 1}, []signal{
			{0, watermark(top)}, {1, watermark(5)}, {1, watermark(top)},
		}, []string{"watermark 5", end}},
		{"another input resumes", []int{0, 1}, []signal{
			{0, watermark(3)}, {1, watermark(2)}, {1, idleStatus(true)}, {0, watermark(top)},
			{1, idleStatus(false)}, {1, watermark(7)}, {1, watermark(top)},
		}, []string{"watermark 2", "watermark 3", "idle true", "idle false", "watermark 7", end}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			op := &recorder{}
			op.Out = nowhere{}
			in := newInput(exchange.NewInbox(len(tt.logical), 1), tt.logical, op, nil)
			for _, s := range tt.signals {
				s.message.Channel = int32(s.channel)
				if err := in.signal(s.message); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(op.events, tt.want) {
				t.Errorf("got %q, want %q", op.events, tt.want)
			}
		})
	}
}

// What is stored of the event time of a task with two inputs is that of the operator, and
// of each input; a task that is restored goes on from there, and shows it.
func TestEventTimeOfTwoInputs(t *testing.T) {
	build := func(op *recorder, shown []metric.Gauge) *input {
		op.Out = nowhere{}
		return newInput(exchange.NewInbox(2, 1), []int{0, 1}, op, shown)
	}
	signal := func(in *input, channel int32, m exchange.Message) {
		m.Channel = channel
		if err := in.signal(m); err != nil {
			t.Fatal(err)
		}
	}
	first := build(&recorder{}, nil)
	signal(first, 0, watermark(100))
	signal(first, 1, watermark(50))
	combined, inputs := first.eventTime()
	if combined != 50 || !slices.Equal(inputs, []int64{100, 50}) {
		t.Fatalf("event time %d, of the inputs %d, want 50 and [100 50]", combined, inputs)
	}
	op, shown := &recorder{}, make([]metric.Gauge, 2)
	second := build(op, shown)
	second.restore(combined, inputs)
	if shown[0].Value() != 100 || shown[1].Value() != 50 {
		t.Errorf("the restored inputs are shown at %d and %d", shown[0].Value(), shown[1].Value())
	}
	signal(second, 1, watermark(60))
	signal(second, 0, watermark(110))
	signal(second, 1, watermark(200))
	if want := []string{"watermark 60", "watermark 110"}; !slices.Equal(op.events, want) {
		t.Errorf("the restored operator gets %q, want %q", op.events, want)
	}
}

// nowhere is an output without consumers.
type nowhere struct{}

func (nowhere) Emit(p exchange.Payload) error               { p.Release(); return nil }
func (nowhere) EmitSide(_ string, p exchange.Payload) error { p.Release(); return nil }
func (nowhere) HasSide(string) bool                         { return false }
func (nowhere) Watermark(int64) error                       { return nil }
func (nowhere) Status(bool) error                           { return nil }

func TestTaskStoppedInTheMiddleFlushesButDoesNotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &recorder{}
		inbox := exchange.NewInbox(2, 4)
		task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
			return Config{Nodes: chainOf(op), Inbox: inbox, Logical: []int{0, 0}}
		})
		result := make(chan error, 1)
		go func() { result <- task.Run() }()
		newUpstream(inbox.Channel(0), nil).send(t, end(true))
		newUpstream(inbox.Channel(1), nil).send(t, end(false))
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if want := []string{"open", "flush", "close"}; !slices.Equal(op.events, want) {
			t.Errorf("got %q, want %q", op.events, want)
		}
	})
}

func TestTaskBlamesTheOperatorThatFailed(t *testing.T) {
	tests := []struct {
		name          string
		first, second recorder
		operator      string
		panics        bool
		message       string
	}{
		{"error in the head", recorder{failOn: "0:[1]"}, recorder{}, "op0", false, "broken on 0:[1]"},
		{"error behind it", recorder{}, recorder{failOn: "0:[1]"}, "op1", false, "broken on 0:[1]"},
		{"panic in the head", recorder{panicOn: "0:[1]"}, recorder{}, "op0", true, "kaboom on 0:[1]"},
		{"panic behind it", recorder{}, recorder{panicOn: "0:[1]"}, "op1", true, "kaboom on 0:[1]"},
		{"panic on a watermark", recorder{}, recorder{panicOn: "watermark 5"}, "op1", true, "kaboom"},
		{"panic in the head after a call behind it", recorder{panicOn: "watermark 5"}, recorder{}, "op0", true, "kaboom"},
		{"error on open", recorder{}, recorder{failOn: "open"}, "op1", false, "open: broken"},
		{"panic on open", recorder{panicOn: "open"}, recorder{}, "op0", true, "kaboom on open"},
		{"error on finish", recorder{failOn: "finish"}, recorder{}, "op0", false, "broken on finish"},
		{"error on flush", recorder{}, recorder{failOn: "flush"}, "op1", false, "broken on flush"},
		{"error on close", recorder{}, recorder{failOn: "close"}, "op1", false, "close: broken"},
		{"panic on close", recorder{panicOn: "close"}, recorder{}, "op0", true, "kaboom on close"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inbox := exchange.NewInbox(1, 4)
				task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
					return Config{Nodes: chainOf(&tt.first, &tt.second), Inbox: inbox, Logical: []int{0}}
				})
				newUpstream(inbox.Channel(0), nil).send(t, ints(1), watermark(5), end(true))
				err := task.Run()
				var oe *operator.Error
				if !errors.As(err, &oe) {
					t.Fatalf("got %v, want an *operator.Error", err)
				}
				if oe.Operator != tt.operator || !strings.Contains(err.Error(), tt.message) {
					t.Errorf("got %q, want operator %s and %q", err, tt.operator, tt.message)
				}
				var p *operator.Panic
				if errors.As(err, &p) != tt.panics {
					t.Errorf("panic: %v, want %v", !tt.panics, tt.panics)
				}
				if tt.panics {
					if full := fmt.Sprintf("%+v", oe); !strings.Contains(full, "recorder") {
						t.Errorf("%%+v has no stack of the user code:\n%s", full)
					}
					if strings.Contains(err.Error(), "\n") {
						t.Errorf("the message has several lines: %q", err)
					}
				}
			})
		})
	}
}

func TestTaskCopiesForSeveralConsumersAndSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		head := &splitter{}
		a, b, side := &recorder{}, &recorder{}, &recorder{}
		nodes := []Node{
			{Operator: head, Runtime: runtimeOf("head"), Outputs: []Output{
				{Copy: copyInts, Node: 1}, {Copy: copyInts, Node: 2}, {Side: "odd", Copy: copyInts, Node: 3},
			}},
			{Operator: a, Runtime: runtimeOf("a")},
			{Operator: b, Runtime: runtimeOf("b")},
			{Operator: side, Runtime: runtimeOf("side")},
		}
		inbox := exchange.NewInbox(1, 8)
		task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
			return Config{Nodes: nodes, Inbox: inbox, Logical: []int{0}}
		})
		newUpstream(inbox.Channel(0), nil).send(t, ints(1, 2), watermark(5), idleStatus(true), watermark(6), end(true))
		if err := task.Run(); err != nil {
			t.Fatal(err)
		}
		tail := []string{"watermark 5", "idle true", "finish", "flush", "close"}
		for name, op := range map[string]*recorder{"a": a, "b": b} {
			if want := append([]string{"open", "0:[1 2]"}, tail...); !slices.Equal(op.events, want) {
				t.Errorf("%s saw %q, want %q", name, op.events, want)
			}
		}
		if want := append([]string{"open", "0:[1]"}, tail...); !slices.Equal(side.events, want) {
			t.Errorf("the side output saw %q, want %q", side.events, want)
		}
	})
}

// splitter emits everything, and the odd numbers to a side output as well. Asked to
// open with a cancelled context it would fail.
type splitter struct{ operator.Pass }

func (s *splitter) Process(_ int, p exchange.Payload) error {
	odd := ints()
	for _, v := range p.(*connector.Batch[int]).Values {
		if v%2 == 1 {
			odd.Append(v, int64(v), 0)
		}
	}
	if err := s.Out.EmitSide("odd", odd); err != nil {
		return err
	}
	return s.Out.Emit(p)
}

func TestMailboxAndTimersRunUnderSoftBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &recorder{}
		in, next := exchange.NewInbox(1, 4), exchange.NewInbox(1, 1)
		m := &metric.Task{}
		task := New(t.Context(), m, func(out *exchange.Outbox) Config {
			out.Connect(next.Channel(0))
			w := exchange.Forward[int]()(out, []*exchange.Channel{next.Channel(0)}, 0)
			return Config{
				Nodes: []Node{{Operator: op, Runtime: runtimeOf("op"), Outputs: []Output{{Copy: copyInts, Writer: w}}}},
				Inbox: in, Logical: []int{0},
			}
		})
		result := make(chan error, 1)
		go func() { result <- task.Run() }()
		up := newUpstream(in.Channel(0), nil)
		up.send(t, watermark(1)) // takes the only credit behind the task
		synctest.Wait()
		up.send(t, watermark(2)) // must stay in the inbox
		synctest.Wait()
		if slices.Contains(op.events, "watermark 2") {
			t.Fatal("input was taken without a credit behind the task")
		}
		var fired time.Time
		started := time.Now()
		if !task.Post(t.Context(), func() error {
			op.rt.Timers.At(time.Now().Add(time.Minute).UnixMilli(), func(int64) error { fired = time.Now(); return nil })
			cancel := op.rt.Timers.At(time.Now().Add(time.Second).UnixMilli(), func(int64) error {
				return errors.New("a cancelled timer fired")
			})
			cancel()
			return nil
		}) {
			t.Fatal("the mailbox refused a post")
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if got := fired.Sub(started); got != time.Minute {
			t.Errorf("the timer fired after %v, want 1m", got)
		}
		next.Done((<-next.C()).Channel)
		synctest.Wait()
		if !slices.Contains(op.events, "watermark 2") {
			t.Error("the task did not go on when it got a credit")
		}
		if got := m.SoftBackPressured.Total(); got != 2*time.Minute {
			t.Errorf("measured %v of soft back pressure, want 2m", got)
		}
		next.Done((<-next.C()).Channel)
		up.send(t, end(true))
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		if task.Post(t.Context(), func() error { return nil }) {
			t.Error("an ended task accepted a post")
		}
	})
}

func TestCancelEndsABlockedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		op := &recorder{}
		in, next := exchange.NewInbox(1, 4), exchange.NewInbox(1, 1)
		task := New(ctx, &metric.Task{}, func(out *exchange.Outbox) Config {
			out.Connect(next.Channel(0))
			w := exchange.Forward[int]()(out, []*exchange.Channel{next.Channel(0)}, 0)
			return Config{
				Nodes: []Node{{Operator: op, Runtime: runtimeOf("op"), Outputs: []Output{{Copy: copyInts, Writer: w}}}},
				Inbox: in, Logical: []int{0},
			}
		})
		result := make(chan error, 1)
		go func() { result <- task.Run() }()
		newUpstream(in.Channel(0), nil).send(t, watermark(1), watermark(2))
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, exchange.ErrCancelled) {
			t.Errorf("got %v, want ErrCancelled", err)
		}
		if last := op.events[len(op.events)-1]; last != "close" {
			t.Errorf("the operator's last call was %q, want close", last)
		}
	})
}
