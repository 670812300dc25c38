package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/kafka"
	"github.com/lowwater/lowwater/window"
)

// countOperator is the name of the windows in a job's status.
const countOperator = "count"

// pane is a result of the demo's jobs: how many orders of a key fell into a
// window.
type pane = window.Pane[string, int64]

// run is one run of a job, with what came out of it.
type run struct {
	env    *lowwater.Environment
	name   string
	broker *broker
	job    *lowwater.Job
	// hold says that end leaves the job to the next run to end, which has this one as its
	// previous.
	hold     bool
	previous *run
	// sources are the names of the job's sources.
	sources []string
	history history
	// last is the latest reading of the job's status.
	last reading

	mu sync.Mutex
	// fresh are the windows that fired and may not be complete, lines those that
	// are and were not shown yet; complete counts the windows that are complete.
	fresh    map[window.TimeWindow]*firing
	lines    []string
	complete int64
	byKey    map[string]int64
	byWindow map[window.TimeWindow]int64
	late     []order
}

// firing is what came out of one window.
type firing struct {
	counts map[string]int64
	last   time.Time
}

// newRun returns an empty job of the demo.
func (s *stage) newRun() *run {
	options := []lowwater.Option{lowwater.WithParallelism(partitions), lowwater.WithLogger(slog.New(warnings{screen: s.screen}))}
	if s.server != nil {
		options = append(options, lowwater.WithRESTServer(s.server))
	}
	s.current = &run{
		env:      lowwater.NewEnvironment(options...),
		name:     s.scenario,
		broker:   s.broker,
		hold:     s.hold,
		previous: s.current,
		history:  history{standing: map[string]standing{}},
		fresh:    map[window.TimeWindow]*firing{},
		byKey:    map[string]int64{},
		byWindow: map[window.TimeWindow]int64{},
	}
	return s.current
}

// read adds a source of one of the demo's topics, from its start.
func (r *run) read(topic string, strategy eventtime.WatermarkStrategy[order]) *lowwater.DataStream[order] {
	r.sources = append(r.sources, topic)
	return lowwater.FromSource(r.env, kafka.NewSource(json.Value[order](), r.broker.source(topic)...), strategy, topic)
}

// show makes counts the job's result.
func (r *run) show(counts *lowwater.DataStream[pane]) {
	counts.Name(countOperator).SinkFunc(func(_ context.Context, p pane) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		f := r.fresh[p.Window]
		if f == nil {
			f = &firing{counts: map[string]int64{}}
			r.fresh[p.Window] = f
		}
		f.counts[p.Key] += p.Value
		f.last = time.Now()
		r.byKey[p.Key] += p.Value
		r.byWindow[p.Window] += p.Value
		return nil
	}).Name("results")
}

// showLate keeps what comes out of a late output.
func (r *run) showLate(orders *lowwater.DataStream[order]) {
	orders.SinkFunc(func(_ context.Context, o order) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late = append(r.late, o)
		return nil
	})
}

// lateOutput returns what came out of the late output so far.
func (r *run) lateOutput() []order {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.late)
}

// counted returns the sum of all results of a key so far.
func (r *run) counted(key string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byKey[key]
}

// fullest returns the window with the most records, and their number.
func (r *run) fullest() (fullest window.TimeWindow, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, count := range r.byWindow {
		if count > n {
			fullest, n = w, count
		}
	}
	return fullest, n
}

func (r *run) start(ctx context.Context) (err error) {
	if err := r.previous.finish(); err != nil {
		return err
	}
	r.job, err = r.env.Start(ctx, r.name)
	r.history.lastWindow = time.Now()
	return err
}

// end says that the run is not needed any more.
func (r *run) end() error {
	if r.hold {
		return nil
	}
	return r.finish()
}

// finish stops the job, if there is one.
func (r *run) finish() error {
	if r == nil || r.job == nil {
		return nil
	}
	r.job.Stop()
	return r.job.Wait()
}

// settleTime is how long after its last result a window is taken to be complete: the
// keys of a window are counted by several subtasks.
const settleTime = 250 * time.Millisecond

// settle takes up the windows that are complete by now. It returns how many have
// been so far, and whether none is under way.
func (r *run) settle(now time.Time) (complete int64, settled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range slices.SortedFunc(maps.Keys(r.fresh), func(a, b window.TimeWindow) int { return cmp.Compare(a.Start, b.Start) }) {
		f := r.fresh[w]
		if now.Sub(f.last) < settleTime {
			continue
		}
		delete(r.fresh, w)
		line := fmt.Sprintf("  window %s to %s:", clock(w.Start), clock(w.End))
		for _, key := range slices.Sorted(maps.Keys(f.counts)) {
			line += fmt.Sprintf("  %s %d", key, f.counts[key])
		}
		r.lines = append(r.lines, line)
		r.complete++
	}
	return r.complete, len(r.fresh) == 0
}

// fired returns a line for each window that is complete and was not returned before.
func (r *run) fired() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// clock writes the time of day of an instant in milliseconds, UTC.
func clock(millis int64) string {
	switch {
	case millis == eventtime.MinTimestamp:
		return "none"
	case millis%1000 == 0:
		return time.UnixMilli(millis).UTC().Format("15:04:05")
	default:
		return time.UnixMilli(millis).UTC().Format("15:04:05.000")
	}
}

// windows writes a number of windows.
func windows(n int64) string {
	if n == 1 {
		return "1 window"
	}
	return fmt.Sprintf("%d windows", n)
}

// seconds writes a duration for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
