package windowed

import (
	"iter"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// firing is one result of a window function in a test.
type firing struct {
	Key    string
	Value  any
	Window window.TimeWindow
	Timing window.Timing
}

const lateOutput = "late"

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

var sumElements = window.Reduce(func(a, b element) element { return element{a.Key, a.Value + b.Value} })

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
