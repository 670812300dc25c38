package main

import (
	"context"
	"fmt"
)

func overParallel(ctx context.Context, s *stage) error {
	const subtasks = 8
	s.intro("Three shops write their orders to a topic with three partitions. A job counts the orders per type.")
	s.shops.set(true, ordersTopic, 0, 1, 2)

	s.act("Eight subtasks for three partitions", "The source is given Parallelism(%d). Which subtasks get the partitions follows from a hash of "+
		"the topic's name, as in Flink.", subtasks)
	r := s.newRun()
	r.show(perType(r.read(ordersTopic, strategy()).Parallelism(subtasks)))
	w, err := s.perform(ctx, r, expectStall, s.stalls(func(in input) bool { return in.state == noSplitState }))
	if err != nil {
		return err
	}
	err = s.conclude(fmt.Sprintf("%s Without a split, so without a watermark: %s.", stalled(w), namesOf(w.last.holders())),
		"a window waits for every subtask of the source. For one that has nothing to read it waits for ever.")
	if err != nil {
		return err
	}

	s.act("With idleness", "Still %d subtasks, with WithIdleness(%v) in the watermark strategy.", subtasks, idleTimeout)
	r = s.newRun()
	r.show(perType(r.read(ordersTopic, strategy().WithIdleness(idleTimeout)).Parallelism(subtasks)))
	if w, err = s.perform(ctx, r, expectFlow, flows); err != nil {
		return err
	}
	err = s.conclude(flowed(w), "a subtask without a split is idle after the timeout, and no longer waited for.")
	if err != nil {
		return err
	}

	s.act("Three subtasks", "No idleness, and no Parallelism: the source then takes no more subtasks than there are partitions.")
	r = s.newRun()
	r.show(perType(r.read(ordersTopic, strategy())))
	if w, err = s.perform(ctx, r, expectFlow, flows); err != nil {
		return err
	}
	return s.conclude(flowed(w), "subtasks beyond the number of partitions read nothing. Leave the source's parallelism unset.")
}
