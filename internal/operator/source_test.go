package operator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/status"
)

// polled is a source whose reader does at each Poll what the test says.
type polled struct {
	connector.Source[int]
	openErr, closeErr error

	polls  []func(out connector.ReaderOutput[int]) (connector.PollStatus, error)
	closed int
	runs   connector.ReaderRuntime
	added  []string
	noMore bool
}

func (p *polled) NewReader(_ context.Context, rt connector.ReaderRuntime) (connector.Reader[int], error) {
	p.runs = rt
	if p.openErr != nil {
		return nil, p.openErr
	}
	return p, nil
}

func (p *polled) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		p.added = append(p.added, s.ID())
	}
	return nil
}

func (p *polled) NoMoreSplits()              { p.noMore = true }
func (p *polled) Available() <-chan struct{} { return nil }
func (p *polled) Close() error               { p.closed++; return p.closeErr }

func (p *polled) Poll(out connector.ReaderOutput[int]) (connector.PollStatus, error) {
	next := p.polls[0]
	p.polls = p.polls[1:]
	return next(out)
}

// positioned is a reader that knows how far it is.
type positioned struct {
	polled
	next, end int64
}

func (c *positioned) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[int], error) {
	return c, nil
}

func (c *positioned) Positions(yield func(string, int64, int64)) { yield("a", c.next, c.end) }

type named string

func (n named) ID() string { return string(n) }

// records emits numbers of a split, each with itself as offset and ten times itself as its
// record timestamp.
func records(split string, values ...int) func(connector.ReaderOutput[int]) (connector.PollStatus, error) {
	return func(out connector.ReaderOutput[int]) (connector.PollStatus, error) {
		b := out.Batch()
		var offsets []int64
		for _, v := range values {
			b.Append(v, int64(10*v), 0)
			offsets = append(offsets, int64(v))
		}
		return connector.MoreAvailable, out.Emit(split, b, offsets, connector.LogAppendTime)
	}
}

func openSource(t *testing.T, source connector.Source[int], strategy eventtime.WatermarkStrategy[int]) (Source, *logged, *Runtime, *handClock) {
	t.Helper()
	op := NewSource(source, strategy, "dead")
	out := &logged{}
	rt, clock := testRuntime(t)
	must(t, op.Open(rt, out))
	must(t, op.AddSplits([]connector.Split{named("a"), named("b")}))
	return op, out, rt, clock
}

func poll(t *testing.T, op Source, want connector.PollStatus) {
	t.Helper()
	status, err := op.Poll()
	must(t, err)
	if status != want {
		t.Errorf("the poll's status is %v, want %v", status, want)
	}
}

func TestSourceStampsRecords(t *testing.T) {
	source := &polled{polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){
		records("a", 1, 2), records("b", 7), records("a"),
	}}
	var types []connector.TimestampType
	op, out, rt, clock := openSource(t, source, eventtime.ForBoundedOutOfOrderness[int](5*time.Millisecond).
		WithRecordTimestampAssigner(func(v int, rt eventtime.RecordTime) int64 {
			types = append(types, rt.Type)
			return rt.Millis + 1
		}))
	if fmt.Sprint(source.added) != "[a b]" {
		t.Errorf("the reader got splits %v", source.added)
	}
	poll(t, op, connector.MoreAvailable)
	out.expect(t, "[1@11#1 2@21#2]")
	clock.advance(t, 1200) // split b has no watermark yet
	out.expect(t)
	poll(t, op, connector.MoreAvailable)
	poll(t, op, connector.MoreAvailable) // an empty batch is none
	clock.advance(t, 1400)
	out.expect(t, "[7@71#7]", "watermark 15") // the smaller of 21-5-1 and 71-5-1
	if fmt.Sprint(types) != "[LogAppendTime LogAppendTime LogAppendTime]" {
		t.Errorf("the assigner saw types %v", types)
	}
	splits := rt.Metrics.Splits.All()
	if a := splits[0]; a.ID != "a" || a.NumRecordsIn.Value() != 2 || a.LastEventTime.Value() != 21 || a.CurrentWatermark.Value() != 15 || a.LastRecordAt.Value() != 1000 {
		t.Errorf("numbers of split a: %d records, last %d at %d, watermark %d", a.NumRecordsIn.Value(), a.LastEventTime.Value(), a.LastRecordAt.Value(), a.CurrentWatermark.Value())
	}
	if b := splits[1]; b.CurrentWatermark.Value() != 65 {
		t.Errorf("the watermark of split b is %d", b.CurrentWatermark.Value())
	}
	if rt.Metrics.NumRecordsIn.Value() != 3 {
		t.Errorf("%d records in, want 3", rt.Metrics.NumRecordsIn.Value())
	}
}

// TestSourceFinishesSplits: a finished split no longer holds the watermark back, and at the
// end comes the end of time, also if the subtask was idle.
func TestSourceFinishesSplits(t *testing.T) {
	source := &polled{polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){
		records("a", 1), records("b", 9),
		func(out connector.ReaderOutput[int]) (connector.PollStatus, error) {
			return connector.MoreAvailable, out.FinishSplit("a")
		},
		func(connector.ReaderOutput[int]) (connector.PollStatus, error) { return connector.EndOfInput, nil },
	}}
	op, out, rt, clock := openSource(t, source, eventtime.ForMonotonousTimestamps[int]().WithIdleness(time.Second))
	op.NoMoreSplits()
	if !source.noMore {
		t.Error("the reader was not told that there are no more splits")
	}
	poll(t, op, connector.MoreAvailable)
	poll(t, op, connector.MoreAvailable)
	clock.advance(t, 1200)
	out.expect(t, "[1@10#1]", "[9@90#9]", "watermark 9")
	poll(t, op, connector.MoreAvailable)
	clock.advance(t, 1400)
	out.expect(t, "watermark 89")
	clock.advance(t, 10_000)
	out.expect(t, "idle true")
	poll(t, op, connector.EndOfInput)
	must(t, op.EndOfInput())
	out.expect(t, "idle false", fmt.Sprint("watermark ", eventtime.MaxTimestamp))
	splits := rt.Metrics.Splits.All()
	if a, b := status.SplitState(splits[0].State.Value()), status.SplitState(splits[1].State.Value()); a != status.SplitFinished || b != status.SplitIdle {
		t.Errorf("the splits are %v and %v, want finished and idle", a, b)
	}
}

// onEvent emits a watermark with every record.
type onEvent struct{}

func (onEvent) OnEvent(_ int, t int64, out eventtime.WatermarkOutput) { out.EmitWatermark(t) }
func (onEvent) OnPeriodicEmit(eventtime.WatermarkOutput)              {}

func TestWatermarksOfRecordsCutTheBatch(t *testing.T) {
	source := &polled{polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){
		records("a", 1, 2, 1, 3), records("b", 5, 6),
	}}
	op, out, _, _ := openSource(t, source, eventtime.ForGenerator(func() eventtime.WatermarkGenerator[int] { return onEvent{} }))
	poll(t, op, connector.MoreAvailable)
	out.expect(t, "[1@10#1 2@20#2 1@10#1 3@30#3]") // nothing from b yet
	poll(t, op, connector.MoreAvailable)
	out.expect(t, "[5@50#5]", "watermark 30", "[6@60#6]")
}

func TestSourceRefusesStrangeSplits(t *testing.T) {
	source := &polled{polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){records("c", 1)}}
	op, _, _, _ := openSource(t, source, eventtime.NoWatermarks[int]())
	if _, err := op.Poll(); err == nil || !strings.Contains(err.Error(), `split "c"`) {
		t.Errorf("got %v, want an error about split c", err)
	}
}

func TestSourceSendsDeadLetters(t *testing.T) {
	bad := connector.DeadLetter{SplitID: "b", Offset: 4, Timestamp: 40, Err: errors.New("not json")}
	source := &polled{polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){
		func(out connector.ReaderOutput[int]) (connector.PollStatus, error) {
			if _, err := records("a", 1)(out); err != nil {
				return 0, err
			}
			return connector.MoreAvailable, out.EmitSide(bad)
		},
	}}
	op, out, rt, _ := openSource(t, source, eventtime.NoWatermarks[int]())
	poll(t, op, connector.MoreAvailable)
	out.expect(t, "[1@10#1]", "dead: [b not json@40#4]")
	source.runs.CountDropped("malformed", "topic orders, partition 0, offset 5")
	if d := rt.Metrics.Drops()["malformed"]; d.Count != 1 || len(d.Latest) != 1 {
		t.Errorf("dropped %+v", d)
	}
}

func TestSourceErrors(t *testing.T) {
	broken := errors.New("no such topic")
	op := NewSource(&polled{openErr: broken}, eventtime.NoWatermarks[int](), "dead")
	rt, _ := testRuntime(t)
	if err := op.Open(rt, &logged{}); !errors.Is(err, broken) {
		t.Errorf("open: got %v, want %v", err, broken)
	}
	must(t, op.Close()) // there is no reader to close

	source := &polled{closeErr: broken, polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){
		func(connector.ReaderOutput[int]) (connector.PollStatus, error) { return 0, broken },
	}}
	op, _, _, _ = openSource(t, source, eventtime.NoWatermarks[int]())
	if _, err := op.Poll(); !errors.Is(err, broken) {
		t.Errorf("poll: got %v, want %v", err, broken)
	}
	if err := op.Close(); !errors.Is(err, broken) || source.closed != 1 {
		t.Errorf("close: got %v after %d calls, want %v after 1", err, source.closed, broken)
	}
}

// TestSourceShowsPositions: what the reader says is seen at once, without the subtask.
func TestSourceShowsPositions(t *testing.T) {
	source := &positioned{next: 5, end: 9}
	op := NewSource(source, eventtime.NoWatermarks[int](), "dead")
	rt, _ := testRuntime(t)
	must(t, op.Open(rt, &logged{}))
	must(t, op.AddSplits([]connector.Split{named("a")}))
	for _, end := range []int64{9, 12, -1} {
		source.end = end
		if got, want := rt.Metrics.Splits.Positions()["a"], (metric.Position{Next: 5, End: end, Committed: -1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	must(t, op.Close())
	source.end = 15 // nobody asks a reader that is closed
	if end := rt.Metrics.Splits.Positions()["a"].End; end != -1 {
		t.Errorf("end %d after Close, want what was known then", end)
	}
}

// TestBackPressureStopsTheIdleClock: soft, hard or both, in any order.
func TestBackPressureStopsTheIdleClock(t *testing.T) {
	source := &polled{polls: []func(connector.ReaderOutput[int]) (connector.PollStatus, error){records("a", 1), records("b", 2)}}
	op, out, _, clock := openSource(t, source, eventtime.ForMonotonousTimestamps[int]().WithIdleness(time.Second))
	poll(t, op, connector.MoreAvailable)
	poll(t, op, connector.MoreAvailable)
	clock.advance(t, 1600)
	out.expect(t, "[1@10#1]", "[2@20#2]", "watermark 9")
	for _, state := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		op.BackPressure(state[0], state[1])
		clock.advance(t, clock.now+3600_000)
		op.BackPressure(false, false)
		out.expect(t)
	}
	clock.advance(t, clock.now+1200)
	out.expect(t, "watermark 19", "idle true")
}

func TestSinkPassesOn(t *testing.T) {
	sink := &written{}
	op := NewSink[int](sink)
	_, rt, _ := open(t, op)
	if sink.runtime.Operator != "op" || sink.runtime.Logger != rt.Logger || sink.runtime.Parallelism != 1 {
		t.Errorf("the writer got %+v", sink.runtime)
	}
	must(t, op.Process(0, batchOf(1, 2)))
	must(t, op.Watermark(15))
	must(t, op.Status(true))
	must(t, op.Finish())
	must(t, op.Flush())
	must(t, op.Close())
	if got, want := fmt.Sprint(sink.calls), "[[1 2] watermark 15 flush close]"; got != want {
		t.Errorf("calls %v, want %v", got, want)
	}
	failing := NewSink[int](&written{openErr: errOutput})
	rt, _ = testRuntime(t)
	if err := failing.Open(rt, nil); !errors.Is(err, errOutput) {
		t.Errorf("open: got %v, want %v", err, errOutput)
	}
	must(t, failing.Close()) // there is no writer to close
}

// written is a sink with one writer that notes its calls.
type written struct {
	openErr error
	runtime connector.WriterRuntime
	calls   []string
}

func (w *written) Validate() error { return nil }

func (w *written) NewWriter(_ context.Context, rt connector.WriterRuntime) (connector.Writer[int], error) {
	w.runtime = rt
	return w, w.openErr
}

func (w *written) Write(_ context.Context, b *connector.Batch[int]) error {
	w.calls = append(w.calls, fmt.Sprint(b.Values))
	return nil
}

func (w *written) WriteWatermark(_ context.Context, t int64) error {
	w.calls = append(w.calls, fmt.Sprint("watermark ", t))
	return nil
}

func (w *written) Flush(context.Context) error { w.calls = append(w.calls, "flush"); return nil }
func (w *written) Close() error                { w.calls = append(w.calls, "close"); return nil }

func TestTimestampsBehindTheSource(t *testing.T) {
	op := NewTimestamps(eventtime.ForBoundedOutOfOrderness[int](3 * time.Millisecond).
		WithTimestampAssigner(func(v int, recordMillis int64) int64 { return recordMillis + 100 }).WithIdleness(time.Second))
	out, _, clock := open(t, op)
	must(t, op.Watermark(5)) // ends here, like the status
	must(t, op.Status(true))
	must(t, op.Process(0, batchOf(1, 2)))
	out.expect(t, "[1@110#1 2@120#2]")
	clock.advance(t, 1200)
	out.expect(t, "watermark 116")
	clock.advance(t, 10_000)
	out.expect(t, "idle true")
	must(t, op.Process(0, batchOf(3)))
	must(t, op.Watermark(math.MaxInt64))
	must(t, op.Finish())
	must(t, op.Close())
	out.expect(t, "[3@130#3]", "idle false", fmt.Sprint("watermark ", eventtime.MaxTimestamp))
}
