package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
)

// logged is an output that notes what arrives: records as value@timestamp#offset, signals by
// their names.
type logged struct {
	lines []string
	// failAfter is how many batches it takes before it fails; 0 means all.
	failAfter int
	batches   int
}

var errOutput = errors.New("output broken")

func (l *logged) Emit(p exchange.Payload) error { return l.note("", p) }

func (l *logged) EmitSide(id string, p exchange.Payload) error { return l.note(id+": ", p) }

func (l *logged) HasSide(string) bool { return true }

func (l *logged) note(prefix string, p exchange.Payload) error {
	if l.batches++; l.failAfter > 0 && l.batches > l.failAfter {
		return errOutput
	}
	switch b := p.(type) {
	case *connector.Batch[int]:
		l.lines = append(l.lines, prefix+describeBatch(b))
	case *connector.Batch[string]:
		l.lines = append(l.lines, prefix+describeBatch(b))
	case *connector.Batch[connector.DeadLetter]:
		l.lines = append(l.lines, prefix+describeBatch(b))
	default:
		return fmt.Errorf("a batch of type %T", p)
	}
	p.Release()
	return nil
}

func describeBatch[T any](b *connector.Batch[T]) string {
	if b.Len() > 9 {
		return fmt.Sprint(b.Len(), " records")
	}
	var s []string
	for i, v := range b.Values {
		text := fmt.Sprint(v)
		if d, ok := any(v).(connector.DeadLetter); ok {
			text = fmt.Sprint(d.SplitID, " ", d.Err)
		}
		s = append(s, fmt.Sprintf("%s@%d#%v", text, b.Timestamps[i], b.Origins[i].Offset()))
	}
	return fmt.Sprint(s)
}

func (l *logged) Watermark(t int64) error {
	l.lines = append(l.lines, fmt.Sprint("watermark ", t))
	return nil
}

func (l *logged) Status(idle bool) error {
	l.lines = append(l.lines, fmt.Sprint("idle ", idle))
	return nil
}

// expect compares what arrived since the last call.
func (l *logged) expect(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, slices.Clone(l.lines)); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	l.lines = nil
}

// testRuntime is where operators run in these tests, with a clock at 1000 ms.
func testRuntime(t testing.TB) (*Runtime, *handClock) {
	clock := &handClock{now: 1000}
	return &Runtime{
		Name:              "op",
		Parallelism:       1,
		Context:           t.Context(),
		Logger:            slog.New(slog.DiscardHandler),
		Metrics:           metric.NewOperator("op", ""),
		Timers:            clock,
		Splits:            &SplitRegistry{},
		WatermarkInterval: 200 * time.Millisecond,
	}, clock
}

// open opens an operator on a new output.
func open(t testing.TB, op Operator) (*logged, *Runtime, *handClock) {
	t.Helper()
	out := &logged{}
	rt, clock := testRuntime(t)
	if err := op.Open(rt, out); err != nil {
		t.Fatal(err)
	}
	return out, rt, clock
}

// batchOf returns a batch of numbers with ten times the number as timestamp and the number
// as offset.
func batchOf(values ...int) *connector.Batch[int] {
	b := &connector.Batch[int]{}
	for _, v := range values {
		b.Append(v, int64(10*v), connector.MakeOrigin(1, int64(v)))
	}
	return b
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
