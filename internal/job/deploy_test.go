package job

import (
	"fmt"
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
				c := in.channel(e, s, r)
				connected := e.Partitioning != graph.Forward || s == r
				if (c != nil) != connected {
					t.Errorf("%v from %d to %d: channel %v, want one: %v", e.Partitioning, s, r, c, connected)
				}
				if c == nil {
					continue
				}
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

func TestSenders(t *testing.T) {
	from, to := &graph.Vertex{Parallelism: 3}, &graph.Vertex{Parallelism: 3}
	for p, want := range map[graph.Partitioning]string{graph.Forward: "[1]", graph.Rebalance: "[0 1 2]", graph.Hash: "[0 1 2]", graph.Broadcast: "[0 1 2]"} {
		e := &graph.NetworkEdge{Edge: &graph.Edge{Partitioning: p}, FromVertex: from, ToVertex: to}
		if got := fmt.Sprint(senders(e, 1)); got != want {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
}
