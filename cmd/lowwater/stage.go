package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
)

const (
	windowSize = time.Second
	// bound is how much disorder the demo's watermark strategies allow.
	bound = 200 * time.Millisecond
	// idleTimeout is used where a strategy has idleness.
	idleTimeout = time.Second

	// pollInterval is how often an act looks at the job, showInterval how often
	// it shows it.
	pollInterval = 100 * time.Millisecond
	showInterval = time.Second
	// patience is how long an act waits beyond its time for what it promised.
	patience = 20 * time.Second
)

// stage is where a scenario plays.
type stage struct {
	screen  *screen
	broker  *broker
	shops   *shops
	actTime time.Duration
	acts    int
	// lastAct is the one to end after, 0 for all.
	lastAct int
	// scenario names the jobs, server shows them; it may be nil.
	scenario string
	server   *lowwater.RESTServer
	// current is the latest run. With hold it goes on until the next one begins.
	current *run
	hold    bool
}

// strategy is the watermark strategy of all scenarios but for idleness.
func strategy() eventtime.WatermarkStrategy[order] {
	return eventtime.ForBoundedOutOfOrderness[order](bound).
		WithTimestampAssigner(func(o order, _ int64) int64 { return o.PlacedAtMillis })
}

// intro opens the demo: who writes what, and what the job does.
func (s *stage) intro(format string, args ...any) {
	s.screen.text("", fmt.Sprintf(format, args...)+fmt.Sprintf(" Windows are %v of event time; the watermark strategy "+
		"allows for %v of disorder. A split is what a source reads: here a partition of a Kafka topic. Times are UTC.", windowSize, bound))
}

// act opens the next act: its title, and what will happen.
func (s *stage) act(title, format string, args ...any) {
	s.acts++
	s.screen.lines("", fmt.Sprintf("Act %d. %s", s.acts, title), "")
	s.screen.text("  ", fmt.Sprintf(format, args...))
	s.screen.lines("")
}

// errEnough ends a scenario after the last act that was asked for.
var errEnough = errors.New("no more acts are to be played")

// conclude says what was seen in an act, and the rule behind it. It returns errEnough after
// the last act that was asked for.
func (s *stage) conclude(seen, rule string) error {
	s.screen.gap()
	s.screen.text("  ", "Seen: "+seen, "Rule: "+rule)
	if s.acts == s.lastAct {
		return errEnough
	}
	return nil
}

// seen is what an act saw of its job: how it was at the beginning and is now.
type seen struct{ first, last reading }

func (w *seen) arrived() int64 { return w.last.arrived - w.first.arrived }
func (w *seen) windows() int64 { return w.last.windows - w.first.windows }

// watch shows the job until it has kept its promise, and at least for the time of
// an act. It is an error if the job ends, or does not keep the promise in time.
func (s *stage) watch(ctx context.Context, r *run, promise string, kept func(*seen) bool) (*seen, error) {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	defer s.screen.keep()
	w := &seen{first: r.reading(time.Now())}
	w.last = w.first
	shown := w.first
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-s.shops.failed:
			return nil, err
		case <-r.job.Done():
			return nil, fmt.Errorf("act %d: %w", s.acts, cmp.Or(context.Cause(ctx), r.job.Wait(), errors.New("the job ended")))
		case now := <-poll.C:
			w.last = r.reading(now)
			elapsed := now.Sub(w.first.at)
			// A table is shown when the windows that it counts can be shown above it.
			done := w.last.settled && elapsed >= s.actTime && kept(w)
			if done || w.last.settled && now.Sub(shown.at) >= showInterval {
				s.screen.table(r.fired(), w.last.headline(elapsed), tableHead, w.last.rows(&shown))
				shown = w.last
			}
			if done {
				return w, nil
			}
			if elapsed > s.actTime+patience {
				return nil, fmt.Errorf("act %d: expected %s, but in %s %s", s.acts, promise, seconds(elapsed), w)
			}
		}
	}
}

// String says what happened instead of what was promised.
func (w *seen) String() string {
	return fmt.Sprintf("%d records arrived, %s fired, the last %s ago, %d records were late; the watermark is %s, the minimum that of %s",
		w.arrived(), windows(w.windows()), seconds(w.last.silence), w.last.late, clock(w.last.watermark), namesOf(w.last.holders()))
}
