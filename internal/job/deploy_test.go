package job

import (
	"slices"
	"testing"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
)

// TestChannelsConnectEveryPairOnce: over each edge, every sender and every receiver that are
// connected have one channel of their own, which the receiver knows by the right
// logical input.
func TestChannelsConnectEveryPairOnce(t *testing.T) {
	two, three, receiver := &graph.Vertex{Parallelism: 2}, &graph.Vertex{Parallelism: 3}, &graph.Vertex{Parallelism: 3}
	edge := func(from *graph.Vertex, p graph.Partitioning, input int) *graph.NetworkEdge {
		e := &graph.NetworkEdge{Edge: &graph.Edge{Partitioning: p, Input: input}, FromVertex: from, ToVertex: receiver}
		receiver.Inputs = append(receiver.Inputs, e)
		return e
	}
	edges := []*graph.NetworkEdge{
		edge(two, graph.Hash, 0), edge(three, graph.Forward, 0), edge(three, graph.Forward, 1), // twice the same sender
		edge(two, graph.Broadcast, 1), edge(three, graph.Rebalance, 2),
	}
	const credits = 4
	for r := range receiver.Parallelism {
		in := newInbox(receiver, r, credits)
		var used []*exchange.Channel
		for _, e := range edges {
			for s := range e.FromVertex.Parallelism {
				if e.Partitioning == graph.Forward && s != r {
					continue // not connected
				}
				c := in.channel(e, s)
				if slices.Contains(used, c) {
					t.Errorf("%v from %d to %d: the channel has another sender", e.Partitioning, s, r)
				}
				used = append(used, c)
				place := -1
				for i := range in.inbox.Channels() {
					if in.inbox.Channel(i) == c {
						place = i
					}
				}
				if place < 0 || in.logical[place] != e.Input {
					t.Errorf("%v from %d to %d: channel %d belongs to input %d, want %d", e.Partitioning, s, r, place, in.logical[place], e.Input)
				}
			}
		}
		if want := 2 + 1 + 1 + 2 + 3; len(used) != want || in.inbox.Channels() != want {
			t.Errorf("receiver %d has %d channels of which %d are used, want %d", r, in.inbox.Channels(), len(used), want)
		}
	}
}
