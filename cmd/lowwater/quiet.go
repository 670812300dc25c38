package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lowwater/lowwater"
)

func quietPartition(ctx context.Context, s *stage) error {
	s.intro("Three shops write their orders to a topic, each to a partition of its own. A job counts the orders per type.")
	first := s.newRun()
	defer first.end()
	if err := quietStalls(ctx, s, first); err != nil {
		return err
	}
	if err := first.end(); err != nil {
		return err
	}
	stalledAt := first.last.watermark

	second := s.newRun()
	defer second.end()
	if err := quietFlows(ctx, s, second, stalledAt); err != nil {
		return err
	}
	if err := quietIsLate(ctx, s, second, stalledAt); err != nil {
		return err
	}
	return second.end()
}

const quiet = ordersTopic + "-2"

// quietStalls plays the acts in which partition 2 goes quiet.
func quietStalls(ctx context.Context, s *stage, r *run) error {
	s.act("Results flow", "All shops are open, each writes %d orders a second. Every second a window fires, with a result per type.", ordersPerSecond)
	s.shops.set(true, ordersTopic, 0, 1, 2)
	r.show(perType(r.read(ordersTopic, strategy())))
	if err := r.start(ctx); err != nil {
		return err
	}
	w, err := s.watch(ctx, r, expectFlow, flows)
	if err != nil {
		return err
	}
	err = s.conclude(flowed(w),
		"a source has a watermark for each split and passes on the smallest. A window fires when that reaches its last millisecond.")
	if err != nil {
		return err
	}

	s.act("Partition 2 goes quiet", "Shop 2 closes. The others go on as before.")
	s.shops.set(false, ordersTopic, 2)
	if w, err = s.watch(ctx, r, expectStall, s.stalls(named(quiet))); err != nil {
		return err
	}
	held := w.last.input(quiet)
	return s.conclude(fmt.Sprintf("%s The watermark of %s has stood at %s for %s and is the smallest.",
		stalled(w), held.name, clock(held.watermark), seconds(held.still)),
		"silence is not progress. A partition that says nothing holds every window of the job.")
}

// quietFlows plays the act with idleness.
func quietFlows(ctx context.Context, s *stage, r *run, stalledAt int64) error {
	s.act("The same job with idleness", "The job starts again from the beginning of the topic, now with WithIdleness(%v) in its "+
		"watermark strategy. Shop 2 stays closed.", idleTimeout)
	late := lowwater.NewOutputTag[order]("late")
	counts := r.read(ordersTopic, strategy().WithIdleness(idleTimeout)).
		KeyBy(byType).
		Window(perSecond).
		SideOutputLate(late).
		Aggregate(lowwater.Count[order]())
	r.show(counts)
	r.showLate(counts.SideOutput(late))
	if err := r.start(ctx); err != nil {
		return err
	}
	past := stalledAt + 2*windowSize.Milliseconds()
	w, err := s.watch(ctx, r, expectFlow+", past "+clock(past)+" and with "+quiet+" idle", func(w *seen) bool {
		return flows(w) && w.last.watermark > past && w.last.input(quiet).idle
	})
	if err != nil {
		return err
	}
	return s.conclude(fmt.Sprintf("%s %s is idle, its watermark still %s; that of the windows has moved on to %s.",
		flowed(w), quiet, clock(w.last.input(quiet).watermark), clock(w.last.watermark)),
		fmt.Sprintf("a split without a record for %v is left out of the minimum until its next record.", idleTimeout))
}

// quietIsLate plays the act in which the quiet partition speaks again.
func quietIsLate(ctx context.Context, s *stage, r *run, stalledAt int64) error {
	s.act("The price", "Shop 2 hands in one more order, placed at %s. The window of that time has fired.", clock(stalledAt))
	number := s.shops.writeOne(ctx, ordersTopic, 2, time.UnixMilli(stalledAt))
	isSample := func(l lowwater.LateSample) bool { return s.broker.split(l.Split) == quiet }
	w, err := s.watch(ctx, r, fmt.Sprintf("order %d in the late output", number), func(w *seen) bool {
		return slices.ContainsFunc(r.lateOutput(), func(o order) bool { return o.Number == number }) &&
			slices.ContainsFunc(w.last.lateSamples, isSample)
	})
	if err != nil {
		return err
	}
	sample := w.last.lateSamples[slices.IndexFunc(w.last.lateSamples, isSample)]
	behind := time.Duration(sample.Watermark-sample.Timestamp) * time.Millisecond
	return s.conclude(fmt.Sprintf("order %d, offset %d of %s, is in the late output, %s behind the watermark. "+
		"Since that order %s counts again, until it is idle once more. Its watermark is older than that of the windows, which "+
		"therefore waits: a watermark never goes back.", number, sample.Offset, quiet, seconds(behind), quiet),
		"idleness buys progress with completeness. What comes too late goes to SideOutputLate if there is one; else it is dropped and counted.")
}
