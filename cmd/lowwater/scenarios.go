package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// scenario is one story that the demo tells.
type scenario struct {
	name    string
	summary string
	acts    int
	// topics are created for it, with three partitions each.
	topics []string
	play   func(context.Context, *stage) error
}

// scenarios are in the order of the help text.
var scenarios = []scenario{
	{"quiet-partition", "A partition goes quiet, and no window fires any more.", 4, []string{ordersTopic}, quietPartition},
	{"over-parallel", "8 subtasks on 3 partitions, and no window ever fires.", 3, []string{ordersTopic}, overParallel},
	{"union", "A quiet topic holds up a busy one.", 3, []string{ordersTopic, returnsTopic}, unionOfTopics},
	{"strategy-after-source", "A slow partition's records come late and are dropped.", 3, []string{ordersTopic}, strategyAfterSource},
	{"processing-time", "Windows by the wall clock never wait; the price.", 2, []string{ordersTopic}, processingTime},
}

func scenarioNamed(name string) (scenario, error) {
	var names []string
	for _, s := range scenarios {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return scenario{}, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(names, ", "))
}

// The orders' types are the keys of most scenarios.
func byType(o order) string { return o.EventType }

func byShop(o order) string { return fmt.Sprintf("shop-%d", o.Shop) }

// perSecond are the windows of all scenarios.
var perSecond = window.Tumbling(windowSize)

// perType counts orders per type and second.
func perType(orders *lowwater.DataStream[order]) *lowwater.DataStream[pane] {
	return orders.KeyBy(byType).Window(perSecond).Aggregate(lowwater.Count[order]())
}

// perform runs a job for one act.
func (s *stage) perform(ctx context.Context, r *run, promise string, kept func(*seen) bool) (*seen, error) {
	defer r.end()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	w, err := s.watch(ctx, r, promise, kept)
	if err != nil {
		return nil, err
	}
	return w, r.end()
}

const (
	expectFlow  = "windows to fire one after the other"
	expectStall = "no window to fire although records arrive"
)

// flows is the promise that windows fire: some have, and it goes on. It is kept
// shortly after a window, so that the next act does not begin with one of this.
func flows(w *seen) bool { return w.windows() >= 2 && w.last.silence < windowSize/2 }

// stalls is the promise that for a while records arrive and no window fires, and
// that the inputs that hold the minimum are what because says.
func (s *stage) stalls(because func(input) bool) func(*seen) bool {
	atLeast := max(s.actTime, 3*windowSize)
	return func(w *seen) bool {
		holders := w.last.holders()
		others := slices.ContainsFunc(holders, func(in input) bool { return !because(in) })
		return len(holders) > 0 && !others && w.last.silence >= atLeast && w.last.arrivedInSilence > 0
	}
}

func named(name string) func(input) bool {
	return func(in input) bool { return in.name == name }
}

// flowed says how an act with flowing results went.
func flowed(w *seen) string {
	return fmt.Sprintf("%s fired while %d records arrived.", windows(w.windows()), w.arrived())
}

// stalled says how an act without results went.
func stalled(w *seen) string {
	return fmt.Sprintf("no window fired for %s while %d records arrived.", seconds(w.last.silence), w.last.arrivedInSilence)
}
