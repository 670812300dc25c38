package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/eventtime"
)

func unionOfTopics(ctx context.Context, s *stage) error {
	s.intro("Shops write orders to one topic and returned goods to another. A job counts both together, per type: a union of two sources.")
	s.shops.set(true, ordersTopic, 0, 1, 2)

	s.act("Results flow", "Orders and returns come in.")
	s.shops.set(true, returnsTopic, 0, 1, 2)
	r := s.newRun()
	defer r.end()
	union(r, strategy())
	if err := r.start(ctx); err != nil {
		return err
	}
	w, err := s.watch(ctx, r, expectFlow, flows)
	if err != nil {
		return err
	}
	err = s.conclude(flowed(w), "the watermark of a union is the smallest of its inputs'.")
	if err != nil {
		return err
	}

	s.act("No returns", "Nobody returns anything any more. Orders go on as before.")
	s.shops.set(false, returnsTopic, 0, 1, 2)
	w, err = s.watch(ctx, r, expectStall, s.stalls(func(in input) bool { return in.topic == returnsTopic }))
	if err != nil {
		return err
	}
	if err := r.end(); err != nil {
		return err
	}
	err = s.conclude(fmt.Sprintf("%s The minimum is that of %s and of no other.", stalled(w), namesOf(w.last.holders())),
		"a rare stream beside a busy one holds the results of both.")
	if err != nil {
		return err
	}

	s.act("Idleness for the returns", "The job starts again with WithIdleness(%v) on the source of the returns. Orders have none.", idleTimeout)
	r = s.newRun()
	union(r, strategy().WithIdleness(idleTimeout))
	w, err = s.perform(ctx, r, expectFlow+", with all splits of "+returnsTopic+" idle", func(w *seen) bool {
		waits := slices.ContainsFunc(w.last.inputs, func(in input) bool { return in.topic == returnsTopic && !in.idle })
		return flows(w) && !waits
	})
	if err != nil {
		return err
	}
	return s.conclude(flowed(w), "once all splits of an input are idle, the input is, and the union goes on without it.")
}

// union counts orders and returns together.
func union(r *run, returns eventtime.WatermarkStrategy[order]) {
	r.show(perType(r.read(ordersTopic, strategy()).Union(r.read(returnsTopic, returns))))
}
