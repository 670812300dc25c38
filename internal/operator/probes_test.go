package operator

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
)

// handClock is a clock that a test moves.
type handClock struct {
	now int64
	due []*alarm
}

type alarm struct {
	at int64
	f  func(now int64) error
}

func (c *handClock) Now() int64 { return c.now }

func (c *handClock) At(t int64, f func(now int64) error) (cancel func()) {
	a := &alarm{t, f}
	c.due = append(c.due, a)
	return func() { c.due = slices.DeleteFunc(c.due, func(other *alarm) bool { return other == a }) }
}

// advance moves the clock to t and calls what is due by then.
func (c *handClock) advance(tb testing.TB, t int64) {
	for len(c.due) > 0 {
		next := slices.MinFunc(c.due, func(a, b *alarm) int { return cmp.Compare(a.at, b.at) })
		if next.at > t {
			break
		}
		c.due = slices.DeleteFunc(c.due, func(a *alarm) bool { return a == next })
		c.now = max(c.now, next.at)
		if err := next.f(c.now); err != nil {
			tb.Fatal(err)
		}
	}
	c.now = t
}

func TestProbesSleepAndKeepTheirRhythm(t *testing.T) {
	clock := &handClock{now: 1000}
	var calls []int64
	settled := false
	p := newProbes(&Runtime{Timers: clock, WatermarkInterval: 200 * time.Millisecond}, func(now int64) (bool, error) {
		calls = append(calls, now)
		return settled, nil
	})
	expect := func(want ...int64) {
		t.Helper()
		if !slices.Equal(calls, want) {
			t.Errorf("calls at %v, want %v", calls, want)
		}
		calls = nil
	}
	clock.advance(t, 1450)
	expect(1200, 1400)
	settled = true
	clock.advance(t, 100_000)
	expect(1600)
	p.wake()
	p.wake()
	clock.advance(t, 100_199)
	expect()
	clock.advance(t, 200_000)
	expect(100_200)
	p.wake() // on the beat: the next one
	clock.advance(t, 200_200)
	expect(200_200)
	settled = false
	p.wake()
	clock.advance(t, 201_000)
	expect(200_400, 200_600, 200_800, 201_000)
}

func TestProbesWithoutInterval(t *testing.T) {
	clock := &handClock{}
	newProbes(&Runtime{Timers: clock}, func(int64) (bool, error) {
		t.Error("called")
		return false, nil
	}).wake()
	clock.advance(t, 100_000)
}

// single is a source whose reader passes on one record each time.
type single struct{ next int64 }

func (*single) Validate() error                    { return nil }
func (*single) Boundedness() connector.Boundedness { return connector.Unbounded }
func (*single) AddSplits([]connector.Split) error  { return nil }
func (*single) NoMoreSplits()                      {}
func (*single) Available() <-chan struct{}         { return nil }
func (*single) Close() error                       { return nil }
func (l *single) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[int], error) {
	return l, nil
}

func (*single) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return nil, nil
}

// Poll passes on one record.
func (l *single) Poll(out connector.ReaderOutput[int]) (connector.PollStatus, error) {
	b := out.Batch()
	b.Append(0, 0, 0)
	l.next++
	return connector.NothingAvailable, out.Emit("a", b, []int64{l.next - 1}, connector.NoTimestamp)
}

type splitA struct{}

func (splitA) ID() string { return "a" }

// nowhere is an Output that drops everything.
type nowhere struct{}

func (nowhere) Emit(exchange.Payload) error             { return nil }
func (nowhere) EmitSide(string, exchange.Payload) error { return nil }
func (nowhere) HasSide(string) bool                     { return false }
func (nowhere) Watermark(int64) error                   { return nil }
func (nowhere) Status(bool) error                       { return nil }

// TestSilentSourceSleeps: a source without records costs nothing, and is as attentive as
// before once there is a record.
func TestSilentSourceSleeps(t *testing.T) {
	reader, clock := &single{}, &handClock{}
	source := NewSource(reader, eventtime.ForMonotonousTimestamps[int](), "dead")
	rt := &Runtime{
		Name: "source", Timers: clock, WatermarkInterval: 200 * time.Millisecond, Context: t.Context(),
		Logger: slog.New(slog.DiscardHandler), Metrics: metric.NewOperator("source", ""), Splits: &SplitRegistry{},
	}
	if err := source.Open(rt, nowhere{}); err != nil {
		t.Fatal(err)
	}
	if err := source.AddSplits([]connector.Split{splitA{}}); err != nil {
		t.Fatal(err)
	}
	clock.advance(t, 3_600_000)
	if len(clock.due) != 0 {
		t.Errorf("%d timers run in a silence", len(clock.due))
	}
	if _, err := source.Poll(); err != nil {
		t.Fatal(err)
	}
	if len(clock.due) != 1 {
		t.Errorf("%d timers run after a record, want the one for watermarks", len(clock.due))
	}
}
