package main

import (
	"context"
	"fmt"

	"github.com/lowwater/lowwater"
)

func processingTime(ctx context.Context, s *stage) error {
	s.intro("Three shops write their orders to a topic, but shop 2 has not opened yet. A job counts the orders per type.")
	s.shops.set(true, ordersTopic, 0, 1)

	s.act("Windows of event time", "The windows wait for a watermark of partition 2.")
	r := s.newRun()
	r.show(perType(r.read(ordersTopic, strategy())))
	w, err := s.perform(ctx, r, expectStall, s.stalls(named(quiet)))
	if err != nil {
		return err
	}
	err = s.conclude(fmt.Sprintf("%s %s has no watermark.", stalled(w), namesOf(w.last.holders())),
		"a partition that was never written to holds the windows like one that went quiet.")
	if err != nil {
		return err
	}

	s.act("Windows of processing time", "The same job with window.Tumbling(%v).ProcessingTime(), again from the beginning of the topic.", windowSize)
	r = s.newRun()
	r.show(r.read(ordersTopic, strategy()).KeyBy(byType).Window(perSecond.ProcessingTime()).Aggregate(lowwater.Count[order]()))
	w, err = s.perform(ctx, r, "windows to fire, one of them with more orders than a second has", func(w *seen) bool {
		_, n := r.fullest()
		return flows(w) && n > 2*ordersPerSecond
	})
	if err != nil {
		return err
	}
	most, n := r.fullest()
	return s.conclude(fmt.Sprintf("%s But the window from %s has %d orders, and the shops wrote no more than %d a second: it has all that was read in "+
		"that second, whenever it was placed.", flowed(w), clock(most.Start), n, 2*ordersPerSecond),
		"windows of processing time never wait, and count when a record was read, not when it happened. Read again, they give other results.")
}
