package keyedop

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// row is a record of most tests.
type row struct {
	Key   string
	Value int
}

// result is what the operators in these tests emit: the fields of a line in a vector.
type result map[string]any

// recorder is an output that keeps everything in its order.
type recorder struct{ lines []result }

func (r *recorder) Emit(p exchange.Payload) error {
	switch b := p.(type) {
	case *connector.Batch[result]:
		for i, v := range b.Values {
			v["ts"] = optional(b.Timestamps[i])
			r.lines = append(r.lines, v)
		}
	case *connector.Batch[row]:
		r.add(b, "row")
	default:
		return fmt.Errorf("a batch of type %T", p)
	}
	p.Release()
	return nil
}

func (r *recorder) EmitSide(id string, p exchange.Payload) error {
	r.add(p.(*connector.Batch[row]), id)
	p.Release()
	return nil
}

// add notes rows under a name.
func (r *recorder) add(b *connector.Batch[row], name string) {
	for i, v := range b.Values {
		r.lines = append(r.lines, result{name: []any{v.Key, v.Value}, "ts": optional(b.Timestamps[i])})
	}
}

func (r *recorder) Watermark(t int64) error {
	r.lines = append(r.lines, result{"watermark": t})
	return nil
}

func (r *recorder) Status(idle bool) error {
	name := "ACTIVE"
	if idle {
		name = "IDLE"
	}
	r.lines = append(r.lines, result{"other": "WatermarkStatus(" + name + ")"})
	return nil
}

// take returns what was emitted since the last call.
func (r *recorder) take() []result {
	lines := r.lines
	r.lines = nil
	return lines
}

// optional is nil for no timestamp.
func optional(t int64) any {
	if t == math.MinInt64 {
		return nil
	}
	return t
}

// asJSON writes results as sorted lines of JSON.
func asJSON(t testing.TB, results []result) []string {
	t.Helper()
	lines := []string{}
	for _, r := range results {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	slices.Sort(lines)
	return lines
}

// testClock is a clock that stands until it is set.
type testClock struct {
	now int64
	// early makes timers fire one millisecond before the time that was asked for:
	// Flink's test harness, which the vectors come from, lacks the millisecond that
	// its real clock adds.
	early  bool
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
	return func() { c.remove(timer) }
}

func (c *testClock) remove(timer *testTimer) {
	c.timers = slices.DeleteFunc(c.timers, func(t *testTimer) bool { return t == timer })
}

func (c *testClock) set(now int64) error {
	c.now = now
	if c.early {
		now++
	}
	for len(c.timers) > 0 {
		next := slices.MinFunc(c.timers, func(a, b *testTimer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		if next.at > now {
			break
		}
		c.remove(next)
		if err := next.f(now); err != nil {
			return err
		}
	}
	return nil
}

// harness drives one operator.
type harness struct {
	op      operator.Operator
	out     recorder
	clock   testClock
	metrics *metric.Operator
	log     bytes.Buffer
	hash    func(string) uint64
	// subtask and parallelism are 0 for the only subtask.
	subtask, parallelism int
	checkpointing        bool
	restored             snapshot.Reader
}

// newHarness returns a harness without an operator.
func newHarness(t testing.TB) *harness {
	t.Helper()
	hash, err := keyed.HasherFor[string]()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{metrics: metric.NewOperator("op", ""), hash: hash}
	t.Cleanup(func() {
		if h.op != nil {
			h.close(t)
		}
	})
	return h
}

// open gives the harness its operator.
func (h *harness) open(t testing.TB, op operator.Operator) {
	t.Helper()
	if err := h.tryOpen(op); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) tryOpen(op operator.Operator) error {
	h.op = op
	return op.Open(h.runtime(), &h.out)
}

func (h *harness) runtime() *operator.Runtime {
	return &operator.Runtime{
		Name: "op", Subtask: h.subtask, Parallelism: max(h.parallelism, 1), MaxParallelism: 128,
		Checkpointing: h.checkpointing, Restored: h.restored,
		Logger: slog.New(slog.NewTextHandler(&h.log, nil)), Metrics: h.metrics, Timers: &h.clock,
		Splits: &operator.SplitRegistry{},
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

// restore goes on with another operator, which takes over the state of the one so far:
// states and timers, but neither watermark nor clock, which shows now.
func (h *harness) restore(t testing.TB, op operator.Operator, now int64) {
	t.Helper()
	h.close(t)
	h.clock = testClock{early: h.clock.early, now: now}
	op.(interface{ adopt(operator.Operator) }).adopt(h.op)
	h.open(t, op)
}

// send sends one keyed record to an input.
func (h *harness) send(input int, key string, value int, timestamp int64) error {
	return h.op.Process(input, h.batch(timestamp, row{key, value}))
}

// batch returns rows with one timestamp.
func (h *harness) batch(timestamp int64, rows ...row) *exchange.KeyedBatch[string, row] {
	b := &exchange.KeyedBatch[string, row]{}
	for _, r := range rows {
		b.Append(r, timestamp, connector.MakeOrigin(1, int64(r.Value)))
		b.Keys = append(b.Keys, r.Key)
		b.Hashes = append(b.Hashes, h.hash(r.Key))
	}
	return b
}

// adopt takes over the state of another operator of the same kind.
func (c *core[K, R]) adoptCore(old *core[K, R]) {
	c.context.backend = old.context.backend
	c.context.timers.Event, c.context.timers.Processing = old.context.timers.Event, old.context.timers.Processing
}

func (o *process[K, T, R]) adopt(old operator.Operator) {
	o.adoptCore(&old.(*process[K, T, R]).core)
}

func (o *coProcess[K, T, U, R]) adopt(old operator.Operator) {
	o.adoptCore(&old.(*coProcess[K, T, U, R]).core)
}

func (o *keyedBroadcast[K, T, U, R]) adopt(old operator.Operator) {
	from := old.(*keyedBroadcast[K, T, U, R])
	o.adoptCore(&from.core)
	o.states.backend = from.states.backend
}

// wantError fails the test unless err says all parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
