package windowed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

type vectorWindow window.TimeWindow

func (w *vectorWindow) UnmarshalJSON(data []byte) error {
	if string(data) == `"global"` {
		*w = vectorWindow(window.GlobalWindow)
		return nil
	}
	var bounds [2]int64
	if err := json.Unmarshal(data, &bounds); err != nil {
		return err
	}
	*w = vectorWindow{bounds[0], bounds[1]}
	return nil
}

func (w vectorWindow) MarshalJSON() ([]byte, error) {
	if window.TimeWindow(w) == window.GlobalWindow {
		return []byte(`"global"`), nil
	}
	return json.Marshal([2]int64{w.Start, w.End})
}

type vectorAssigner struct {
	Type    string                    `json:"type"`
	Time    string                    `json:"time"`
	Size    int64                     `json:"size"`
	Slide   int64                     `json:"slide"`
	Offset  int64                     `json:"offset"`
	Gap     int64                     `json:"gap"`
	Gaps    []vectorGap               `json:"gaps"`
	Merging bool                      `json:"merging"`
	Windows map[string][]vectorWindow `json:"windows"`
}

type vectorGap struct {
	Key   *string `json:"key"`
	Value *int32  `json:"value"`
	Gap   int64   `json:"gap"`
}

type vectorOperator struct {
	Assigner        vectorAssigner `json:"assigner"`
	Trigger         *vectorTrigger `json:"trigger"`
	Evictor         *vectorEvictor `json:"evictor"`
	Function        string         `json:"function"`
	AllowedLateness int64          `json:"allowedLateness"`
	LateSideOutput  bool           `json:"lateSideOutput"`
}

type operatorCase struct {
	caseHead
	Op             vectorOperator `json:"op"`
	Steps          []operatorStep `json:"steps"`
	End            *operatorEnd   `json:"end"`
	ValueOrder     string         `json:"valueOrder"`
	ConstructError string         `json:"constructError"`
}

type operatorStep struct {
	Do        string            `json:"do"`
	Key       string            `json:"key"`
	Value     int32             `json:"value"`
	Timestamp *int64            `json:"ts"`
	Time      int64             `json:"t"`
	Emit      []json.RawMessage `json:"emit"`
	Error     string            `json:"error"`
}

func (s operatorStep) timestamp() int64 {
	if s.Timestamp == nil {
		return noTimestamp
	}
	return *s.Timestamp
}

type operatorEnd struct {
	LateDropped      int64 `json:"lateDropped"`
	EventTimers      int   `json:"eventTimers"`
	ProcessingTimers int   `json:"processingTimers"`
}

// firing is one result of a window function in a test.
type firing struct {
	Key    string
	Value  any
	Window window.TimeWindow
	Timing window.Timing
}

// runsOnFastPath says which cases need neither the general operator nor a
// snapshot: a default trigger, no evictor, an assigner that goes by time alone
// and a function without state.
func (c operatorCase) runsOnFastPath() bool {
	switch c.Op.Assigner.Type {
	case "tumbling", "sliding", "session", "global", "global_end_of_stream":
	default:
		return false
	}
	return c.Op.Trigger == nil && c.Op.Evictor == nil && !c.restores() && c.Op.Function != "context"
}

func (c operatorCase) restores() bool {
	return slices.ContainsFunc(c.Steps, func(s operatorStep) bool { return s.Do == "checkpoint_restore" })
}

func TestConformanceWindowOperator(t *testing.T) {
	ran, rest := 0, 0
	selected := func(c operatorCase) bool {
		if !c.runsOnFastPath() {
			rest++
			return false
		}
		ran++
		return true
	}
	replay(t, "window_operator", selected, func(t *testing.T, c operatorCase) {
		c.run(t, func() operator.Operator { return c.fastOperator(t) }, nil)
	})
	t.Logf("%d cases ran on the fast operators, %d need the general one", ran, rest)
	if ran == 0 {
		t.Error("no case ran")
	}
}

// All cases run on the general operator.
func TestConformanceGeneralWindowOperator(t *testing.T) {
	all := func(operatorCase) bool { return true }
	replay(t, "window_operator", all, func(t *testing.T, c operatorCase) {
		var calls triggerLog
		c.run(t, func() operator.Operator { return c.generalOperator(t, &calls) }, &calls)
	})
}

const lateOutput = "late"

func (c operatorCase) options(a window.Assigner) Options {
	o := Options{Assigner: a, AllowedLateness: c.Op.AllowedLateness}
	if c.Op.LateSideOutput {
		o.LateOutput = lateOutput
	}
	return o
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (v vectorAssigner) build(t *testing.T) window.Assigner {
	t.Helper()
	processing := v.Time == "processing"
	switch v.Type {
	case "tumbling":
		a := window.Tumbling(millis(v.Size)).Offset(millis(v.Offset))
		if processing {
			a = a.ProcessingTime()
		}
		return a
	case "sliding":
		a := window.Sliding(millis(v.Size), millis(v.Slide)).Offset(millis(v.Offset))
		if processing {
			a = a.ProcessingTime()
		}
		return a
	case "session":
		a := window.Session(millis(v.Gap))
		if processing {
			a = a.ProcessingTime()
		}
		return a
	case "global":
		return window.Global()
	case "global_end_of_stream":
		return window.GlobalEndOfStream()
	default:
		t.Fatalf("unknown assigner %q", v.Type)
		return nil
	}
}

func (c operatorCase) fastOperator(t *testing.T) operator.Operator {
	t.Helper()
	o := c.options(c.Op.Assigner.build(t))
	switch c.Op.Function {
	case "sum":
		return AggregateProcess(o, sumElements, single(func(e element) any { return e.Value }))
	case "min_max_count":
		return AggregateProcess(o, minMaxCount{}, single(func(v []int64) any { return v }))
	case "list":
		return Process(o, listFunction)
	case "empty":
		return Process(o, emptyFunction)
	default:
		t.Fatalf("unknown function %q", c.Op.Function)
		return nil
	}
}

var sumElements = window.Reduce(func(a, b element) element { return element{a.Key, a.Value + b.Value} })

func emptyFunction(*Context[string], *operator.Emitter[firing]) func(iter.Seq[element]) error {
	return func(iter.Seq[element]) error { return nil }
}

// single emits what an aggregation came to.
func single[V any](value func(V) any) Function[string, V, firing] {
	return func(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[V]) error {
		return func(elements iter.Seq[V]) error {
			for v := range elements {
				out.Append(firing{c.Key, value(v), c.Window, c.Timing}, c.Timestamp, 0)
			}
			return nil
		}
	}
}

func listFunction(c *Context[string], out *operator.Emitter[firing]) func(iter.Seq[element]) error {
	return func(elements iter.Seq[element]) error {
		values := []int32{}
		for e := range elements {
			values = append(values, e.Value)
		}
		out.Append(firing{c.Key, values, c.Window, c.Timing}, c.Timestamp, 0)
		return nil
	}
}

// minMaxCount is [min, max, count].
type minMaxCount struct{}

func (minMaxCount) New() []int64 { return nil }

func (m minMaxCount) Add(acc []int64, e element) []int64 {
	return m.Merge(acc, []int64{int64(e.Value), int64(e.Value), 1})
}

func (minMaxCount) Merge(a, b []int64) []int64 {
	if a == nil {
		return slices.Clone(b)
	}
	if b == nil {
		return a
	}
	return []int64{min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2]}
}

func (minMaxCount) Result(acc []int64) []int64 { return acc }

// emitted is one line of an "emit" list.
type emitted struct {
	Key       string        `json:"key,omitempty"`
	Value     any           `json:"value,omitempty"`
	Window    *vectorWindow `json:"w,omitempty"`
	Late      []any         `json:"late,omitempty"`
	Side      string        `json:"side,omitempty"`
	Trigger   string        `json:"trigger,omitempty"`
	At        *int64        `json:"at,omitempty"`
	Timestamp *int64        `json:"ts,omitempty"`
}

// run replays the steps of a case on an operator. calls is what a scripted trigger
// has seen, nil if the operator knows no triggers.
func (c operatorCase) run(t *testing.T, open func() operator.Operator, calls *triggerLog) {
	h := openHarness(t, open())
	h.clock.early = true
	for i, step := range c.Steps {
		var err error
		switch step.Do {
		case "element":
			err = h.process(timed{element{step.Key, step.Value}, step.timestamp(), 0})
		case "watermark":
			err = h.op.Watermark(step.timestamp())
		case "processing_time":
			err = h.clock.set(step.Time)
		case "checkpoint_restore":
			h.restore(t, open())
		default:
			t.Fatalf("step %d: unknown step %q", i, step.Do)
		}
		if (err != nil) != (step.Error != "") {
			t.Fatalf("step %d (%s): error %v, want %q", i, step.Do, err, step.Error)
		}
		out := h.take()
		if step.Do == "watermark" && err == nil {
			if diff := cmp.Diff([]int64{step.timestamp()}, out.watermarks); diff != "" {
				t.Errorf("step %d: watermarks forwarded:\n%s", i, diff)
			}
		}
		if step.Do != "element" && c.Op.Trigger == nil && !sort.SliceIsSorted(out.main, func(a, b int) bool {
			return out.main[a].Timestamp < out.main[b].Timestamp
		}) {
			t.Errorf("step %d: windows fired out of order: %v", i, out.main)
		}
		c.compare(t, i, step, out, calls.take())
	}
	if c.End == nil {
		return
	}
	if got := h.metrics.NumLateRecordsDropped.Value(); got != c.End.LateDropped {
		t.Errorf("%d late records dropped, want %d", got, c.End.LateDropped)
	}
	if g, ok := h.op.(interface{ timersLeft() (event, clock int) }); ok {
		if event, clock := g.timersLeft(); event != c.End.EventTimers || clock != c.End.ProcessingTimers {
			t.Errorf("%d event and %d processing timers left, want %d and %d",
				event, clock, c.End.EventTimers, c.End.ProcessingTimers)
		}
	}
}

// compare compares what a step emitted with what it should, in any order.
func (c operatorCase) compare(t *testing.T, i int, step operatorStep, out *recorder, calls []emitted) {
	t.Helper()
	var got []string
	for _, e := range calls {
		got = append(got, c.line(t, e))
	}
	for _, r := range out.main {
		f := r.Value.(firing)
		w := vectorWindow(f.Window)
		got = append(got, c.line(t, emitted{Key: f.Key, Value: f.Value, Window: &w, Timestamp: &r.Timestamp}))
	}
	for _, r := range out.sides[lateOutput] {
		e := r.Value.(element)
		got = append(got, c.line(t, emitted{Late: []any{e.Key, e.Value}, Timestamp: &r.Timestamp}))
	}
	for _, r := range out.sides[functionOutput] {
		got = append(got, c.line(t, emitted{Side: r.Value.(string), Timestamp: &r.Timestamp}))
	}
	var want []string
	for _, raw := range step.Emit {
		var e emitted
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		d.UseNumber()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		want = append(want, c.line(t, e))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("step %d (%s) emitted (-want +got):\n%s", i, step.Do, diff)
	}
}

// line writes e as JSON, with list values sorted where their order is not
// defined.
func (c operatorCase) line(t *testing.T, e emitted) string {
	t.Helper()
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if c.ValueOrder != "any" {
		return string(raw)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	var values []int64
	if json.Unmarshal(fields["value"], &values) == nil {
		slices.Sort(values)
		fields["value"] = json.RawMessage(fmt.Sprint(values))
	}
	return fmt.Sprintf("%s", fields)
}
