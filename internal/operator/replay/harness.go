package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

const (
	lateOutput     = "late"
	functionOutput = "function"
	leftOutput     = "left"
	rightOutput    = "right"
)

// recorder is an operator.Output that keeps everything, in the form of the cases.
type recorder struct {
	emitted    []Emitted
	watermarks []int64
}

// Emit implements operator.Output.
func (r *recorder) Emit(p exchange.Payload) error {
	switch b := p.(type) {
	case *connector.Batch[firing]:
		for i, f := range b.Values {
			w := Window(f.window)
			r.emitted = append(r.emitted, Emitted{Key: f.key, Value: f.value, Window: &w, Timestamp: new(b.Timestamps[i])})
		}
	case *connector.Batch[Emitted]:
		for i, e := range b.Values {
			r.add(e, b.Timestamps[i])
		}
	default:
		return fmt.Errorf("a batch of type %T", p)
	}
	p.Release()
	return nil
}

// EmitSide implements operator.Output.
func (r *recorder) EmitSide(id string, p exchange.Payload) error {
	switch b := p.(type) {
	case *connector.Batch[string]:
		for i, text := range b.Values {
			r.add(Emitted{Side: text}, b.Timestamps[i])
		}
	case *connector.Batch[Element]:
		for i, v := range b.Values {
			late := Emitted{Late: json.RawMessage(fmt.Sprintf("[%q,%d]", v.Key, v.Value))}
			if id != lateOutput {
				late = Emitted{Late: json.RawMessage(strconv.Quote(id)), Key: v.Key, Value: number(v.Value)}
			}
			r.add(late, b.Timestamps[i])
		}
	default:
		return fmt.Errorf("a batch of type %T for side output %s", p, id)
	}
	p.Release()
	return nil
}

// add adds what has a timestamp unless that is the smallest. Results of windows always have
// one, also if their window ends at the beginning of time.
func (r *recorder) add(e Emitted, timestamp int64) {
	if timestamp != None().Millis() {
		e.Timestamp = &timestamp
	}
	r.emitted = append(r.emitted, e)
}

// Watermark implements operator.Output.
func (r *recorder) Watermark(t int64) error { r.watermarks = append(r.watermarks, t); return nil }

// Status implements operator.Output.
func (r *recorder) Status(bool) error { return nil }

// take returns what has come since the last call.
func (r *recorder) take() recorder {
	taken := *r
	*r = recorder{}
	return taken
}

// clock stands until it is set. Its timers fire a millisecond early: Flink's test
// harness, which the cases come from, lacks the millisecond that its real clock adds.
type clock struct {
	now    int64
	seq    int
	timers []*clockTimer
}

type clockTimer struct {
	at  int64
	seq int
	f   func(now int64) error
}

// Now implements operator.ProcessingTime.
func (c *clock) Now() int64 { return c.now }

// At implements operator.ProcessingTime.
func (c *clock) At(at int64, f func(now int64) error) (cancel func()) {
	c.seq++
	timer := &clockTimer{at, c.seq, f}
	c.timers = append(c.timers, timer)
	return func() {
		c.timers = slices.DeleteFunc(c.timers, func(t *clockTimer) bool { return t == timer })
	}
}

func (c *clock) set(now int64) error {
	c.now = now
	for len(c.timers) > 0 {
		next := slices.MinFunc(c.timers, func(a, b *clockTimer) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		if next.at > now+1 {
			return nil
		}
		c.timers = slices.DeleteFunc(c.timers, func(t *clockTimer) bool { return t == next })
		if err := next.f(now + 1); err != nil {
			return err
		}
	}
	return nil
}

// harness drives one operator, or one after the other, each restored from the last.
type harness struct {
	recorder
	op operator.Operator
	// remake makes the operator.
	remake func() operator.Operator
	// random, if not nil, says when to go on from a checkpoint.
	random *rand.Rand
	// watermark is the last one that the operator was told, if told.
	watermark int64
	told      bool

	clock   clock
	metrics *metric.Operator
	hash    func(string) uint64
	pool    *exchange.KeyedPool[string, Element]
}

// newHarness opens an operator. random, if not nil, says when to replace it by another one
// that is restored from its snapshot.
func newHarness(remake func() operator.Operator, random *rand.Rand) (*harness, error) {
	hash, err := keyed.HasherFor[string]()
	if err != nil {
		return nil, err
	}
	h := &harness{
		metrics: metric.NewOperator("operator", ""), hash: hash, pool: exchange.NewKeyedPool[string, Element](),
		remake: remake, random: random,
	}
	return h, h.open(nil)
}

// open opens a new operator, which goes on from what restored holds.
func (h *harness) open(restored snapshot.Reader) error {
	h.op = h.remake()
	rt := &operator.Runtime{
		Name: "operator", Parallelism: 1, MaxParallelism: maxParallelism, Context: context.Background(),
		Logger: slog.New(slog.DiscardHandler), Metrics: h.metrics, Timers: &h.clock, Splits: &operator.SplitRegistry{},
		Checkpointing: h.random != nil, Restored: restored,
	}
	if err := h.op.Open(rt, h); err != nil || restored == nil || !h.told {
		return err
	}
	rt.Resuming = true
	defer func() { rt.Resuming = false }()
	return h.op.Watermark(h.watermark)
}

// failOver goes on with another operator, if that is random's will. Nothing must come out.
func (h *harness) failOver() error {
	if h.random == nil || h.random.IntN(4) > 0 {
		return nil
	}
	taken, err := snapshottest.Take(1, h.op.(operator.Stateful).Snapshot)
	if err != nil {
		return err
	}
	if err := errors.Join(taken.Finish(), h.op.Close()); err != nil {
		return err
	}
	readers, err := snapshottest.Readers([]*snapshottest.Snapshot{taken}, 1, maxParallelism)
	if err != nil {
		return err
	}
	if err := h.open(readers[0]); err != nil {
		return err
	}
	if out := h.take(); len(out.emitted) > 0 {
		return fmt.Errorf("%d results came out of a restored operator before any input", len(out.emitted))
	}
	return nil
}

// tell tells the operator a watermark.
func (h *harness) tell(t int64) error {
	h.watermark, h.told = t, true
	return h.op.Watermark(t)
}

func (h *harness) element(input int, e Element, timestamp int64) error {
	b := h.pool.Get()
	b.Append(e, timestamp, 0)
	b.Keys = append(b.Keys, e.Key)
	b.Hashes = append(b.Hashes, h.hash(e.Key))
	return h.op.Process(input, b)
}
