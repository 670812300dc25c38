package replay

import (
	"encoding/json"
	"math"
	"time"

	"github.com/lowwater/lowwater/window"
)

// Window is a window as [start, end], or as "global".
type Window window.TimeWindow

// UnmarshalJSON implements json.Unmarshaler.
func (w *Window) UnmarshalJSON(data []byte) error {
	if string(data) == `"global"` {
		*w = Window(window.GlobalWindow)
		return nil
	}
	var bounds [2]int64
	if err := json.Unmarshal(data, &bounds); err != nil {
		return err
	}
	*w = Window{bounds[0], bounds[1]}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (w Window) MarshalJSON() ([]byte, error) {
	if window.TimeWindow(w) == window.GlobalWindow {
		return []byte(`"global"`), nil
	}
	return json.Marshal([2]int64{w.Start, w.End})
}

// Timestamp is a time in milliseconds, null for none, or not there at all, which is the
// zero value.
type Timestamp struct {
	given  bool
	millis *int64
}

// At returns a timestamp.
func At(millis int64) Timestamp { return Timestamp{true, &millis} }

// None returns the timestamp of a record that has none.
func None() Timestamp { return Timestamp{given: true} }

// Millis returns the time, the smallest if there is none.
func (t Timestamp) Millis() int64 {
	if t.millis == nil {
		return math.MinInt64
	}
	return *t.millis
}

// IsZero reports whether the field is not there.
func (t Timestamp) IsZero() bool { return !t.given }

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) { return json.Marshal(t.millis) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Timestamp) UnmarshalJSON(data []byte) error {
	t.given = true
	return json.Unmarshal(data, &t.millis)
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// Element is what operators and triggers work on.
type Element struct {
	Key   string
	Value int32
}

// delta is the difference that delta triggers and evictors go by.
func delta(a, b Element) float64 { return float64(b.Value) - float64(a.Value) }
