package main

import (
	"context"
	"fmt"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
)

func strategyAfterSource(ctx context.Context, s *stage) error {
	const (
		lag     = 3 * time.Second
		lagging = ordersTopic + "-2"
		// some is a number of orders that shows that it was not just the first few.
		some = 2 * ordersPerSecond
	)
	s.intro("Three shops write their orders to a topic, shop 2 over a slow line: %v after they were placed. A job counts the orders "+
		"per shop. One subtask reads all three partitions.", lag)
	s.shops.setLag(ordersTopic, 2, lag)
	s.shops.set(true, ordersTopic, 0, 1, 2)

	s.act("The strategy behind the source", "The source makes no watermarks, so its splits have none. That of the windows "+
		"comes from AssignTimestampsAndWatermarks behind the source: an operator that sees the orders of all splits in one stream.")
	r := s.newRun()
	r.show(perShop(behindSource(r)).Aggregate(lowwater.Count[order]()))
	_, err := s.perform(ctx, r, "orders of shop 2 to be dropped", func(w *seen) bool { return flows(w) && w.last.dropped > some })
	if err != nil {
		return err
	}
	// Some more orders were dropped before the job had stopped, and its last warning counts them.
	end := r.reading(time.Now())
	err = s.conclude(fmt.Sprintf("%d orders of shop 2 were read; %d were dropped and %d counted. No error and no stall: a warning and the counter "+
		"numLateRecordsDropped are all that says so.", end.input(lagging).records, end.dropped, r.counted("shop-2")),
		"behind the source there is one watermark for all partitions of a subtask, and the fastest partition drives it.")
	if err != nil {
		return err
	}

	s.act("The same with a late output", "SideOutputLate is added to the windows. The watermark still comes from the operator behind the source.")
	r = s.newRun()
	late := lowwater.NewOutputTag[order]("late")
	counts := perShop(behindSource(r)).SideOutputLate(late).Aggregate(lowwater.Count[order]())
	r.show(counts)
	r.showLate(counts.SideOutput(late))
	w, err := s.perform(ctx, r, "orders of shop 2 in the late output", func(w *seen) bool {
		return flows(w) && len(r.lateOutput()) > some && w.last.dropped == 0
	})
	if err != nil {
		return err
	}
	err = s.conclude(fmt.Sprintf("%d orders came out of the late output, %d were dropped.", len(r.lateOutput()), w.last.dropped),
		"a late output makes the loss visible. It does not repair the counts.")
	if err != nil {
		return err
	}

	s.act("The strategy in the source", "Every partition has a watermark of its own.")
	r = s.newRun()
	r.show(perShop(r.read(ordersTopic, strategy()).Parallelism(1)).Aggregate(lowwater.Count[order]()))
	w, err = s.perform(ctx, r, "shop 2 to be counted without a late order", func(w *seen) bool {
		return flows(w) && r.counted("shop-2") > some && w.last.late == 0
	})
	if err != nil {
		return err
	}
	return s.conclude(fmt.Sprintf("%d orders of shop 2 were counted and %d orders were late. The watermark is %s behind the clock: it waits for shop 2.",
		r.counted("shop-2"), w.last.late, seconds(w.last.at.Sub(time.UnixMilli(w.last.watermark)))),
		"give the source the strategy. The slowest partition then sets the pace, and nothing is lost.")
}

// behindSource reads the orders and makes watermarks behind the source.
func behindSource(r *run) *lowwater.DataStream[order] {
	return r.read(ordersTopic, eventtime.NoWatermarks[order]()).Parallelism(1).AssignTimestampsAndWatermarks(strategy())
}

func perShop(orders *lowwater.DataStream[order]) *lowwater.WindowedStream[string, order] {
	return orders.KeyBy(byShop).Window(perSecond)
}
