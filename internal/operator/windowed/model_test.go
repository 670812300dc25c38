package windowed

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/lowwater/lowwater/window"
)

// model is a window operator with the default trigger, written down from the
// rules of spec windows 2 without a thought for speed: one entry per key and
// window, each looked at whenever time moves.
type model struct {
	assigner window.Assigner
	lateness int64
	// sorted says that the order of values in a pane is not defined.
	sorted bool

	watermark, now int64
	entries        []*modelEntry
	emitted        []string
	late           []string
}

type modelEntry struct {
	key    string
	window window.TimeWindow
	values []int32
	// timer says that the window is still to fire at its end.
	timer bool
}

func newModel(a window.Assigner, lateness int64, sorted bool) *model {
	return &model{assigner: a, lateness: lateness, sorted: sorted, watermark: math.MinInt64}
}

func (m *model) cleanup(w window.TimeWindow) int64 {
	t := w.MaxTimestamp()
	if !m.assigner.IsEventTime() {
		return t
	}
	if t > math.MaxInt64-m.lateness {
		return math.MaxInt64
	}
	return t + m.lateness
}

func (m *model) isLate(w window.TimeWindow) bool {
	return m.assigner.IsEventTime() && m.cleanup(w) <= m.watermark
}

func (m *model) process(r timed) error {
	windows, err := m.assigner.Assign(nil, r.Timestamp, m.now)
	if err != nil {
		return err
	}
	accepted := false
	for _, w := range windows {
		var e *modelEntry
		if m.assigner.Merging() {
			e = m.merge(r.Key, w)
		} else {
			e = m.entry(r.Key, w)
		}
		if m.isLate(e.window) {
			m.entries = slices.DeleteFunc(m.entries, func(o *modelEntry) bool { return o == e })
			continue
		}
		accepted = true
		e.values = append(e.values, r.Value)
		if m.assigner.IsEventTime() && e.window.MaxTimestamp() <= m.watermark {
			m.fire(e, window.Late)
		} else {
			e.timer = true
		}
	}
	if !accepted && m.assigner.IsEventTime() && r.Timestamp+m.lateness <= m.watermark {
		m.late = append(m.late, fmt.Sprintf("%s %d @%d", r.Key, r.Value, r.Timestamp))
	}
	return nil
}

func (m *model) entry(key string, w window.TimeWindow) *modelEntry {
	for _, e := range m.entries {
		if e.key == key && e.window == w {
			return e
		}
	}
	e := &modelEntry{key: key, window: w}
	m.entries = append(m.entries, e)
	return e
}

// merge makes one entry of all of the key that touch w.
func (m *model) merge(key string, w window.TimeWindow) *modelEntry {
	merged := &modelEntry{key: key, window: w}
	var rest []*modelEntry
	for _, e := range m.entries {
		if e.key == key && e.window.Start <= w.End && w.Start <= e.window.End {
			merged.window.Start = min(merged.window.Start, e.window.Start)
			merged.window.End = max(merged.window.End, e.window.End)
			merged.values = append(merged.values, e.values...)
		} else {
			rest = append(rest, e)
		}
	}
	m.entries = append(rest, merged)
	return merged
}

func (m *model) fire(e *modelEntry, timing window.Timing) {
	m.emitted = append(m.emitted, paneLine(e.key, e.window, timing, e.values, m.sorted))
}

// paneLine describes a pane, with its values sorted if their order is not defined.
func paneLine(key string, w window.TimeWindow, timing window.Timing, values []int32, sorted bool) string {
	values = slices.Clone(values)
	if sorted {
		slices.Sort(values)
	}
	return fmt.Sprintf("%s [%d, %d) %v %v", key, w.Start, w.End, values, timing)
}

func (m *model) advanceWatermark(t int64) {
	m.watermark = t
	if m.assigner.IsEventTime() {
		m.fireDue(t)
	}
}

func (m *model) setClock(t int64) {
	m.now = t
	if !m.assigner.IsEventTime() {
		m.fireDue(t - 1)
	}
}

func (m *model) fireDue(t int64) {
	due := slices.Clone(m.entries)
	sort.SliceStable(due, func(i, j int) bool { return due[i].window.MaxTimestamp() < due[j].window.MaxTimestamp() })
	for _, e := range due {
		if e.timer && e.window.MaxTimestamp() <= t {
			e.timer = false
			m.fire(e, window.OnTime)
		}
	}
	m.entries = slices.DeleteFunc(m.entries, func(e *modelEntry) bool { return m.cleanup(e.window) <= t })
}

func (m *model) take() (emitted, late []string) {
	emitted, late = m.emitted, m.late
	m.emitted, m.late = nil, nil
	return emitted, late
}
