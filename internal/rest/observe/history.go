package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

const (
	// historySpan is how far back a history goes.
	historySpan = time.Hour
	// maxPoints bounds the watermarks kept of one job: 16 MiB. With more than 582 series
	// an hour does not fit at one point a second; then the points are farther apart.
	maxPoints = 1 << 21
)

// History is the watermarks of a job over time.
type History struct {
	Interval time.Duration
	Series   []Series
}

// Series is the watermarks of a subtask or, if Split is set, of a split.
type Series struct {
	Vertex  string
	Subtask int
	Split   string
	Name    string
	Points  []Point
}

// Point is a watermark at a time.
type Point struct {
	At        time.Time
	Watermark int64
}

// seriesKey places a series.
type seriesKey struct {
	vertex, subtask int
	split           string
}

// series is the watermarks of one series at the times from first on.
type series struct {
	first      int
	watermarks []int64
}

// history keeps watermarks in columns that share one axis of times. It is bounded in time
// and in size: when it is full every second point goes, and the interval doubles.
type history struct {
	plan     *Plan
	interval time.Duration
	times    []time.Time
	series   map[seriesKey]*series
	order    []seriesKey
	points   int
	limit    int
}

func newHistory() *history {
	return &history{interval: SampleInterval, series: map[seriesKey]*series{}, limit: maxPoints}
}

// record notes a job's watermarks, unless the last point is too near.
func (h *history) record(at time.Time, plan *Plan, job *status.Job) {
	h.plan = plan
	if n := len(h.times); n > 0 && at.Sub(h.times[n-1]) < h.interval-SampleInterval/4 {
		return
	}
	for h.points > 0 && h.points+len(h.series) > h.limit {
		h.thin()
	}
	h.times = append(h.times, at)
	for v := range job.Vertices {
		for i := range job.Vertices[v].Subtasks {
			s := &job.Vertices[v].Subtasks[i]
			h.add(seriesKey{v, i, ""}, plan.Vertices[v].eventTime(s))
			for _, o := range s.Operators {
				for _, split := range o.Splits {
					if split.State != status.SplitFinished {
						h.add(seriesKey{v, i, split.ID}, split.CurrentWatermark)
					}
				}
			}
		}
	}
	h.expire(at)
}

func (h *history) add(key seriesKey, watermark int64) {
	now := len(h.times) - 1
	s := h.series[key]
	if s == nil {
		s = &series{first: now}
		h.series[key] = s
		h.order = append(h.order, key)
	}
	for s.first+len(s.watermarks) < now { // it was away
		s.watermarks = append(s.watermarks, eventtime.MinTimestamp)
		h.points++
	}
	s.watermarks = append(s.watermarks, watermark)
	h.points++
}

// thin drops every second time.
func (h *history) thin() {
	h.interval *= 2
	h.keep(func(i int) bool { return i%2 == 0 })
}

// expire drops what is too old, a tenth of the span at once so that moving costs little.
func (h *history) expire(now time.Time) {
	if now.Sub(h.times[0]) <= historySpan+historySpan/10 {
		return
	}
	h.keep(func(i int) bool { return now.Sub(h.times[i]) <= historySpan })
}

// keep drops the times that are not wanted, and series without any left.
func (h *history) keep(wanted func(i int) bool) {
	place := make([]int, len(h.times)+1) // the new place of each time
	var times []time.Time
	for i, at := range h.times {
		place[i] = len(times)
		if wanted(i) {
			times = append(times, at)
		}
	}
	place[len(h.times)] = len(times)
	h.points = 0
	for key, s := range h.series {
		kept := make([]int64, 0, place[s.first+len(s.watermarks)]-place[s.first]+1)
		for i, w := range s.watermarks {
			if wanted(s.first + i) {
				kept = append(kept, w)
			}
		}
		if len(kept) == 0 {
			delete(h.series, key)
			h.order = slices.DeleteFunc(h.order, func(k seriesKey) bool { return k == key })
			continue
		}
		s.first, s.watermarks = place[s.first], kept
		h.points += len(kept)
	}
	h.times = times
}

// read returns the points after since.
func (h *history) read(since time.Time) History {
	out := History{Interval: h.interval}
	begin, _ := slices.BinarySearchFunc(h.times, since, func(at, since time.Time) int {
		if at.After(since) {
			return 1
		}
		return -1
	})
	for _, key := range h.order {
		s := h.series[key]
		v := &h.plan.Vertices[key.vertex]
		line := Series{Vertex: v.ID, Subtask: key.subtask, Split: key.split, Name: fmt.Sprintf("%s (%d)", v.Name, key.subtask)}
		if key.split != "" {
			line.Name = key.split
		}
		for i := max(begin, s.first); i < s.first+len(s.watermarks); i++ {
			line.Points = append(line.Points, Point{h.times[i], s.watermarks[i-s.first]})
		}
		if len(line.Points) > 0 {
			out.Series = append(out.Series, line)
		}
	}
	return out
}

// since returns when a series came to have its present watermark, as far as the history
// tells, and whether there is one.
func (h *history) since(key seriesKey, watermark int64) (time.Time, bool) {
	s := h.series[key]
	if s == nil {
		return time.Time{}, false
	}
	i := len(s.watermarks)
	for i > 0 && s.watermarks[i-1] == watermark {
		i--
	}
	if i == len(s.watermarks) {
		return time.Time{}, false
	}
	return h.times[s.first+i], true
}
