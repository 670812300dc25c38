package job

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/task"
)

// deploy makes the inboxes and tasks of the plan. Nothing runs yet.
func (r *run) deploy() error {
	var errs []error
	inboxes := map[*graph.Vertex][]*inbox{}
	for _, v := range r.plan.Vertices {
		for i := range v.Parallelism {
			inboxes[v] = append(inboxes[v], newInbox(v, i, r.job.options.Credits))
		}
	}
	for _, v := range r.plan.Vertices {
		for i := range v.Parallelism {
			t := &runningTask{vertex: v, subtask: i, isSource: v.Head().Source != nil, numbers: newNumbers(v)}
			t.task = task.New(r.ctx, &t.numbers.task, func(out *exchange.Outbox) task.Config {
				cfg := task.Config{Nodes: r.nodes(t, out, inboxes)}
				if r.coordinator != nil {
					cfg.Checkpoints = taskCheckpoints{r.coordinator, t}
				}
				if r.restored != nil {
					errs = append(errs, r.restoreNodes(t, &cfg))
				}
				if t.isSource {
					cfg.Splits, cfg.NoMoreSplits = r.source(v.Head()).owned[i], v.Head().Source.Bounded
				} else {
					in := inboxes[v][i]
					cfg.Inbox, cfg.Logical, cfg.EdgeOf = in.inbox, in.logical, in.edgeOf
					if r.coordinator != nil {
						var err error
						cfg.Edges, err = r.inputEdges(v)
						errs = append(errs, err)
					}
				}
				return cfg
			})
			r.tasks = append(r.tasks, t)
		}
	}
	return errors.Join(errs...)
}

// restoreNodes gives the operators of one subtask what they are restored from.
func (r *run) restoreNodes(t *runningTask, cfg *task.Config) error {
	for i, n := range t.vertex.Nodes {
		reader, err := r.restored.reader(n, t.subtask, n.Parallelism)
		if err != nil {
			return cfg.Nodes[i].Runtime.WithName(err)
		}
		if reader != nil {
			cfg.Nodes[i].Runtime.Restored = reader
			cfg.Nodes[i].Runtime.CommitUpTo = r.restored.commitUpTo(r.job.options.Checkpoints.CommitLater)
		}
	}
	for _, e := range t.vertex.Chained {
		i := slices.Index(t.vertex.Nodes, e.To)
		cfg.Nodes[i].Restored.Name = edgeName(e)
		cfg.Nodes[i].Restored.Store, _ = e.NewStore(e.To.MaxParallelism) // else none have been stored
	}
	cfg.Opened = func() error {
		for i := range cfg.Nodes {
			if err := r.restored.checkClaimed(&cfg.Nodes[i].Runtime); err != nil {
				return err
			}
		}
		return nil
	}
	r.restoring.Add(1)
	cfg.GoneOn = func() {
		if r.restoring.Add(-1) == 0 {
			r.closeRestored() // so that it goes when it is old
		}
	}
	return nil
}

// inputEdges describes the network edges into a vertex for one subtask.
func (r *run) inputEdges(v *graph.Vertex) (edges []task.InputEdge, err error) {
	names := map[string]int{}
	for _, e := range v.Inputs {
		edge := task.InputEdge{Name: edgeName(e.Edge), Input: e.Input}
		if names[edge.Name]++; names[edge.Name] > 1 { // a union of a stream with itself
			edge.Name += fmt.Sprint("/", names[edge.Name])
		}
		if e.Partitioning != graph.Broadcast {
			if edge.Store, err = e.NewStore(e.To.MaxParallelism); err != nil {
				edge.Store = nil
				if r.job.options.Checkpoints.AlignmentTimeout > 0 {
					return nil, fmt.Errorf("records on their way from operator %q to %q cannot be stored, as AlignedCheckpointTimeout asks: %w",
						e.From.Label(), e.To.Label(), err)
				}
			}
		}
		edges = append(edges, edge)
	}
	return edges, nil
}

func edgeName(e *graph.Edge) string {
	return fmt.Sprintf("%d/%s/%s", e.Input, e.From.StateID(), e.Output)
}

// inbox is the receiving end of one subtask, with the place of each channel.
type inbox struct {
	inbox   *exchange.Inbox
	logical []int
	// edgeOf is the place of each channel's edge in the vertex's Inputs.
	edgeOf []int
	// first is the number of the first channel of each network edge.
	first map[*graph.NetworkEdge]int
}

func newInbox(v *graph.Vertex, subtask, credits int) *inbox {
	in := &inbox{first: map[*graph.NetworkEdge]int{}}
	for i, e := range v.Inputs {
		in.first[e] = len(in.logical)
		senders := e.FromVertex.Parallelism
		if e.Partitioning == graph.Forward {
			senders = 1
		}
		for range senders {
			in.logical = append(in.logical, e.Input)
			in.edgeOf = append(in.edgeOf, i)
		}
	}
	in.inbox = exchange.NewInbox(len(in.logical), credits)
	return in
}

// channel returns the channel over e from a sender: the only one of a forward edge,
// otherwise there is one from each.
func (in *inbox) channel(e *graph.NetworkEdge, sender int) *exchange.Channel {
	if e.Partitioning == graph.Forward {
		return in.inbox.Channel(in.first[e])
	}
	return in.inbox.Channel(in.first[e] + sender)
}

// nodes builds the chain of one subtask.
func (r *run) nodes(t *runningTask, out *exchange.Outbox, inboxes map[*graph.Vertex][]*inbox) []task.Node {
	place := map[*graph.Node]int{}
	nodes := make([]task.Node, len(t.vertex.Nodes))
	for i, n := range t.vertex.Nodes {
		place[n] = i
		if n.Source != nil {
			nodes[i].Source = n.NewSource()
		} else {
			nodes[i].Operator = n.NewOperator()
		}
		nodes[i].Runtime = r.runtime(t, n, t.numbers.operators[i])
	}
	for _, e := range t.vertex.Chained {
		from := &nodes[place[e.From]]
		from.Outputs = append(from.Outputs, task.Output{Side: e.Output, Copy: e.Copy, Node: place[e.To]})
	}
	for _, e := range t.vertex.Outputs {
		var channels []*exchange.Channel
		first, n := e.Targets(t.subtask)
		for r := first; r < first+n; r++ {
			c := inboxes[e.ToVertex][r].channel(e, t.subtask)
			out.Connect(c)
			channels = append(channels, c)
		}
		from := &nodes[place[e.From]]
		from.Outputs = append(from.Outputs, task.Output{
			Side: e.Output, Copy: e.Copy, Writer: e.Writer(out, channels, t.subtask),
		})
	}
	return nodes
}

func (r *run) runtime(t *runningTask, n *graph.Node, m *metric.Operator) operator.Runtime {
	rt := operator.Runtime{
		Node:              n.ID,
		Where:             n.Where,
		Name:              n.Name,
		UID:               n.UID,
		Subtask:           t.subtask,
		Parallelism:       n.Parallelism,
		MaxParallelism:    n.MaxParallelism,
		Logger:            r.log.With("operator", n.Name, "subtask", t.subtask),
		Metrics:           m,
		Splits:            &r.splits,
		WatermarkInterval: r.job.options.WatermarkInterval,
		Checkpointing:     r.coordinator != nil,
	}
	if n.KeepsState {
		rt.StateMemory, rt.StateDir = r.job.graph.StatePerSubtask(), r.job.options.StateDir
	}
	if n.Source != nil && n.Source.Alignment != nil {
		rt.Alignment = operator.Alignment{
			Report:  func(watermark int64) { r.alignment.report(n, t.subtask, watermark) },
			Samples: r.job.options.AlignmentSamples,
		}
	}
	return rt
}
