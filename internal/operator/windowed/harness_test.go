package windowed

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"slices"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
)

// record is one record that an operator emitted.
type record struct {
	Value     any
	Timestamp int64
	Origin    connector.Origin
}

// recorder is an Output that keeps everything.
type recorder struct {
	main       []record
	sides      map[string][]record
	watermarks []int64
	batches    int
}

func (r *recorder) Emit(p exchange.Payload) error {
	r.batches++
	r.main = append(r.main, records(p)...)
	p.Release()
	return nil
}

func (r *recorder) EmitSide(id string, p exchange.Payload) error {
	if r.sides == nil {
		r.sides = map[string][]record{}
	}
	r.sides[id] = append(r.sides[id], records(p)...)
	p.Release()
	return nil
}

func (r *recorder) Watermark(t int64) error { r.watermarks = append(r.watermarks, t); return nil }
func (r *recorder) Status(bool) error       { return nil }

// lister is a batch whose records a test can read without knowing their type.
type lister interface{ list() []record }

func records(p exchange.Payload) []record {
	switch b := p.(type) {
	case *connector.Batch[string]:
		return list(b)
	case *connector.Batch[element]:
		return list(b)
	case *connector.Batch[firing]:
		return list(b)
	case *connector.Batch[int64]:
		return list(b)
	default:
		return p.(lister).list()
	}
}

func list[T any](b *connector.Batch[T]) []record {
	var out []record
	for i, v := range b.Values {
		out = append(out, record{v, b.Timestamps[i], b.Origins[i]})
	}
	return out
}

// testClock is a clock that stands until it is set.
type testClock struct {
	now    int64
	seq    int
	timers []*testTimer
}

type testTimer struct {
	at  int64
	seq int
	f   func(now int64) error
}

func (c *testClock) Now() int64 { return c.now }

func (c *testClock) At(at int64, f func(now int64) error) (cancel func()) {
	c.seq++
	timer := &testTimer{at, c.seq, f}
	c.timers = append(c.timers, timer)
	return func() {
		c.timers = slices.DeleteFunc(c.timers, func(t *testTimer) bool { return t == timer })
	}
}

func (c *testClock) set(now int64) error {
	c.now = now
	for len(c.timers) > 0 {
		next := slices.MinFunc(c.timers, func(a, b *testTimer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		if next.at > now {
			break
		}
		c.timers = slices.DeleteFunc(c.timers, func(t *testTimer) bool { return t == next })
		if err := next.f(now); err != nil {
			return err
		}
	}
	return nil
}

// element is what the operators in tests work on.
type element struct {
	Key   string
	Value int32
}

// harness drives one operator.
type harness struct {
	op      operator.Operator
	out     *recorder
	clock   *testClock
	metrics *metric.Operator
	hash    func(string) uint64
	pool    *exchange.KeyedPool[string, element]
	// adjust changes the runtime before it is used, if it is set.
	adjust func(*operator.Runtime)
}

func hasher(t testing.TB) func(string) uint64 {
	t.Helper()
	hash, err := keyed.HasherFor[string]()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func openHarness(t testing.TB, op operator.Operator) *harness {
	t.Helper()
	h := &harness{
		op: op, out: &recorder{}, clock: &testClock{}, metrics: metric.NewOperator("windows", ""),
		hash: hasher(t), pool: exchange.NewKeyedPool[string, element](),
	}
	h.open(t)
	t.Cleanup(func() { h.close(t) })
	return h
}

func (h *harness) open(t testing.TB) {
	t.Helper()
	if err := h.op.Open(h.runtime(), h.out); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) close(t testing.TB) {
	t.Helper()
	if err := h.op.Close(); err != nil {
		t.Error(err)
	}
	if len(h.clock.timers) > 0 {
		t.Errorf("%d timers of the clock left after Close", len(h.clock.timers))
	}
}

func (h *harness) runtime() *operator.Runtime {
	rt := &operator.Runtime{
		Name: "windows", Parallelism: 1, MaxParallelism: 128, Context: context.Background(),
		Logger: slog.New(slog.DiscardHandler), Metrics: h.metrics, Timers: h.clock,
		Splits: &operator.SplitRegistry{},
	}
	if h.adjust != nil {
		h.adjust(rt)
	}
	return rt
}

type timed struct {
	element
	Timestamp int64
	Origin    connector.Origin
}

// process sends one batch.
func (h *harness) process(records ...timed) error {
	b := h.pool.Get()
	for _, r := range records {
		b.Append(r.element, r.Timestamp, r.Origin)
		b.Keys = append(b.Keys, r.Key)
		b.Hashes = append(b.Hashes, h.hash(r.Key))
	}
	return h.op.Process(0, b)
}

// take returns what was emitted since the last call.
func (h *harness) take() *recorder {
	out := *h.out
	*h.out = recorder{}
	return &out
}

const noTimestamp = math.MinInt64
