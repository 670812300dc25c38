package keyedop

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/state"
)

type broadcastCase struct {
	caseHead
	Steps []broadcastStep `json:"steps"`
}

type broadcastStep struct {
	Do           string            `json:"do"`
	Key          string            `json:"key"`
	Value        *int              `json:"value"`
	Rule         string            `json:"rule"`
	Timestamp    int64             `json:"ts"`
	Timer        *int64            `json:"timer"`
	Mutate       bool              `json:"mutate"`
	ApplyToKeyed bool              `json:"applyToKeyed"`
	Error        string            `json:"error"`
	Emit         []json.RawMessage `json:"emit"`
}

// ruled is the function of the vectors: the keyed side shows the rules that it sees and
// keeps its values, the broadcast side puts and removes rules.
func ruled(step *broadcastStep) OpenBroadcast[string, row, string, result] {
	return func(x *Context[string], all *BroadcastStates, out *operator.Emitter[result]) (BroadcastFunction[row, string], error) {
		rules := all.Map(state.Map[string, int]("rules"))
		values := x.List(state.List[int]("values"))
		seen := func() map[string]int {
			m := map[string]int{}
			for k, v := range rules.All() {
				m[k] = v
			}
			return m
		}
		return BroadcastFunction[row, string]{
			Element: func(r row) error {
				if step.Mutate {
					rules.Remove("r1")
				}
				if step.Timer != nil {
					x.RegisterEventTimer(*step.Timer)
				}
				values.Add(r.Value)
				out.Append(result{"key": x.Key(), "value": r.Value, "rules": seen(), "watermark": x.Watermark}, x.Timestamp, 0)
				return nil
			},
			Broadcast: func(rule string) error {
				if step.Value == nil {
					rules.Remove(rule)
				} else {
					rules.Put(rule, *step.Value)
				}
				if step.ApplyToKeyed {
					err := x.EachKey(values, func(key string, values state.ListState[int]) error {
						sum := 0
						for _, v := range values.Get() {
							sum += v
						}
						out.Append(result{"applied": key, "sum": sum}, x.Timestamp, 0)
						return nil
					})
					if err != nil {
						return err
					}
				}
				out.Append(result{"broadcast": rule, "watermark": x.Watermark}, x.Timestamp, 0)
				return nil
			},
			Timer: func(at int64, _ Domain) error {
				out.Append(result{"timer": at, "key": x.Key(), "ruleCount": len(seen())}, x.Timestamp, 0)
				return nil
			},
		}, nil
	}
}

func ruleBatch(rule string, timestamp int64) *connector.Batch[string] {
	b := &connector.Batch[string]{}
	b.Append(rule, timestamp, 0)
	return b
}

func TestConformanceBroadcast(t *testing.T) {
	replay(t, "broadcast", func(t *testing.T, c broadcastCase) {
		h := newHarness(t)
		var step broadcastStep
		newOperator := func() operator.Operator { return NewKeyedBroadcast(ruled(&step)) }
		h.open(t, newOperator())
		inputs := progress.NewCombination(2, h.op)
		for i := range c.Steps {
			step = c.Steps[i]
			var err error
			switch step.Do {
			case "element":
				err = h.send(0, step.Key, *step.Value, step.Timestamp)
			case "broadcast":
				err = h.op.Process(1, ruleBatch(step.Rule, step.Timestamp))
			case "watermark":
				err = inputs.Input(0).Watermark(step.Timestamp)
			case "watermark_broadcast":
				err = inputs.Input(1).Watermark(step.Timestamp)
			case "checkpoint_restore":
				h.restore(t, newOperator(), 0)
				inputs = progress.NewCombination(2, h.op)
			default:
				t.Fatalf("step %d: unknown step %q", i, step.Do)
			}
			if (err != nil) != (step.Error != "") {
				t.Fatalf("step %d (%s): error %v, want %q", i, step.Do, err, step.Error)
			}
			compareInOrder(t, i, step.Do, step.Emit, h.out.take())
		}
	})
}

func TestBroadcastStateMistakes(t *testing.T) {
	write := map[string]func(state.MapState[string, int]){
		"put":    func(m state.MapState[string, int]) { m.Put("r", 1) },
		"remove": func(m state.MapState[string, int]) { m.Remove("r") },
		"clear":  func(m state.MapState[string, int]) { m.Clear() },
	}
	for name, write := range write {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.open(t, NewBroadcast(func(_ *Context[struct{}], all *BroadcastStates, out *operator.Emitter[row]) (BroadcastFunction[string, string], error) {
				rules := all.Map(state.Map[string, int]("rules"))
				return BroadcastFunction[string, string]{
					Element:   func(string) error { write(rules); return nil },
					Broadcast: func(r string) error { rules.Put(r, 7); return nil },
				}, nil
			}))
			must(t, h.op.Process(1, ruleBatch("r", 0)))
			wantError(t, h.op.Process(0, ruleBatch("x", 0)), `broadcast state "rules" was written`, "read-only")
		})
	}

	open := func(open func(*Context[string], *BroadcastStates)) error {
		return newHarness(t).tryOpen(NewKeyedBroadcast(func(x *Context[string], all *BroadcastStates, _ *operator.Emitter[row]) (BroadcastFunction[row, string], error) {
			open(x, all)
			return BroadcastFunction[row, string]{}, nil
		}))
	}
	wantError(t, open(func(_ *Context[string], all *BroadcastStates) {
		all.Map(state.Map[string, int]("rules", state.WithTTL(state.TTL{After: 1e9})))
	}), `"rules" has a TTL`)
	wantError(t, open(func(_ *Context[string], all *BroadcastStates) { all.Map(state.Map[string, int]("")) }), "no name")
	wantError(t, open(func(_ *Context[string], all *BroadcastStates) { all.Map(state.Map[string, int]("rules")).Put("a", 1) }), `"rules" was written`)
}

// On the broadcast side there is no current key, and every key can be visited.
func TestBroadcastSideHasNoKey(t *testing.T) {
	h := newHarness(t)
	var use func(*Context[string], state.ValueState[int]) error
	h.open(t, NewKeyedBroadcast(func(x *Context[string], _ *BroadcastStates, out *operator.Emitter[row]) (BroadcastFunction[row, string], error) {
		sum := x.Value(state.Value[int]("sum"))
		return BroadcastFunction[row, string]{
			Element:   func(r row) error { sum.Set(r.Value); return nil },
			Broadcast: func(string) error { return use(x, sum) },
			Timer:     func(at int64, _ Domain) error { return nil },
		}, nil
	}))
	for i, key := range []string{"a", "b", "c"} {
		must(t, h.send(0, key, i+1, 0))
	}
	got := map[string]int{}
	use = func(x *Context[string], sum state.ValueState[int]) error {
		return x.EachKey(sum, func(key string, s state.ValueState[int]) error {
			got[key], _ = s.Get()
			if key == "b" {
				s.Clear()
			} else {
				s.Set(got[key] * 10)
			}
			return nil
		})
	}
	must(t, h.op.Process(1, ruleBatch("r", 0)))
	must(t, h.op.Process(1, ruleBatch("r", 0)))
	if diff := cmp.Diff(map[string]int{"a": 10, "b": 2, "c": 30}, got); diff != "" {
		t.Errorf("visited (-want +got):\n%s", diff)
	}
	use = func(_ *Context[string], sum state.ValueState[int]) error { sum.Get(); return nil }
	wantError(t, h.op.Process(1, ruleBatch("r", 0)), `"sum" was used without a current key`)
}
