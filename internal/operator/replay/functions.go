package replay

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/windowed"
	"github.com/lowwater/lowwater/window"
)

// firing is one result of a window function.
type firing struct {
	key    string
	value  json.RawMessage
	window window.TimeWindow
}

var sumElements = window.Reduce(func(a, b Element) Element { return Element{a.Key, a.Value + b.Value} })

func number(v int32) json.RawMessage { return strconv.AppendInt(nil, int64(v), 10) }

func sumOf(e Element) (json.RawMessage, error) { return number(e.Value), nil }

func emptyFunction(*windowed.Context[string], *operator.Emitter[firing]) func(iter.Seq[Element]) error {
	return func(iter.Seq[Element]) error { return nil }
}

// single emits what an aggregation came to.
func single[V any](value func(V) (json.RawMessage, error)) windowed.Function[string, V, firing] {
	return func(c *windowed.Context[string], out *operator.Emitter[firing]) func(iter.Seq[V]) error {
		return func(elements iter.Seq[V]) error {
			for v := range elements {
				text, err := value(v)
				if err != nil {
					return err
				}
				out.Append(firing{c.Key, text, c.Window}, c.Timestamp, 0)
			}
			return nil
		}
	}
}

func listFunction(c *windowed.Context[string], out *operator.Emitter[firing]) func(iter.Seq[Element]) error {
	return func(elements iter.Seq[Element]) error {
		values := []int32{}
		for e := range elements {
			values = append(values, e.Value)
		}
		text, err := json.Marshal(values)
		out.Append(firing{c.Key, text, c.Window}, c.Timestamp, 0)
		return err
	}
}

// minMaxCount is [min, max, count].
type minMaxCount struct{}

func (minMaxCount) New() []int64 { return nil }

func (m minMaxCount) Add(acc []int64, e Element) []int64 {
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

func minMaxCountOf(v []int64) (json.RawMessage, error) { return json.Marshal(v) }

var windowFirings, keyFirings = window.NewState[int]("firings"), window.NewState[int]("firings")

// contextValue is what the context function emits.
type contextValue struct {
	Sum            int32 `json:"sum"`
	WindowFirings  int   `json:"windowFirings"`
	KeyFirings     int   `json:"keyFirings"`
	Watermark      int64 `json:"watermark"`
	ProcessingTime int64 `json:"processingTime"`
}

func contextFunction(c *windowed.Context[string], out *operator.Emitter[firing]) func(iter.Seq[Element]) error {
	return func(elements iter.Seq[Element]) error {
		ofWindow, err := c.WindowState()
		if err != nil {
			return err
		}
		ofKey, err := c.KeyState()
		if err != nil {
			return err
		}
		inWindow, _ := windowFirings.Get(ofWindow)
		inKey, _ := keyFirings.Get(ofKey)
		windowFirings.Set(ofWindow, inWindow+1)
		keyFirings.Set(ofKey, inKey+1)
		for e := range elements {
			text, err := json.Marshal(contextValue{e.Value, inWindow + 1, inKey + 1, c.Watermark, c.Runtime().Timers.Now()})
			if err != nil {
				return err
			}
			out.Append(firing{c.Key, text, c.Window}, c.Timestamp, 0)
			side(c).Append(fmt.Sprintf("fired %s %d", c.Key, e.Value), c.Timestamp, 0)
		}
		return nil
	}
}

func side(c *windowed.Context[string]) *operator.Emitter[string] {
	return operator.Side[string](c.Element, functionOutput)
}

func contextClear(c *windowed.Context[string]) error {
	state, err := c.WindowState()
	if err != nil {
		return err
	}
	firings := "null" // the window has not fired
	if n, ok := windowFirings.Get(state); ok {
		firings = strconv.Itoa(n)
	}
	bounds := fmt.Sprintf("%d,%d", c.Window.Start, c.Window.End)
	if c.Window == window.GlobalWindow {
		bounds = "global"
	}
	side(c).Append(fmt.Sprintf("cleared %s firings=%s", bounds, firings), c.Timestamp, 0)
	return nil
}
