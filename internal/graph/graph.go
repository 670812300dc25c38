// Package graph describes a job before it runs: nodes, edges, names, uids,
// parallelism, and how nodes are chained into vertices. It also holds the plan
// checks that warn before a job starts.
//
// It deploys nothing and connects to nothing; what it knows about the outside,
// such as a source's number of splits, it is told.
package graph

import (
	"context"
	"fmt"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/enum"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
)

// Partitioning says how an edge distributes records over the receiver's
// subtasks.
type Partitioning uint8

const (
	// Auto is forward where sender and receiver have the same parallelism,
	// otherwise rebalance.
	Auto Partitioning = iota
	Forward
	Rebalance
	Broadcast
	Hash
	// Custom is where a function of the author's says.
	Custom
)

func (p Partitioning) String() string {
	return enum.Name(p, "AUTO", "FORWARD", "REBALANCE", "BROADCAST", "HASH", "CUSTOM")
}

// Edge connects an output of one node with an input of another.
type Edge struct {
	From *Node
	// Output is the id of a side output, empty for the main output.
	Output string
	To     *Node
	// Input is the receiver's logical input; several edges into one input are a
	// union.
	Input        int
	Partitioning Partitioning
	// NewWriter builds the edge's partitioner once Partitioning is resolved.
	NewWriter func(p Partitioning, maxParallelism int) exchange.WriterFactory
	// NewStore builds what stores the edge's records in a checkpoint, for barriers that
	// overtake them. It fails if their type cannot be stored.
	NewStore func(maxParallelism int) (exchange.Store, error)
	// Copy duplicates a batch of this edge's type for a second consumer.
	Copy func(exchange.Payload) exchange.Payload
}

// Node is one operator of the job.
type Node struct {
	ID   int
	Name string
	// UID identifies the node's state over versions of the job; empty if the
	// author gave none.
	UID string
	// Parallelism is 0 until set by the author or resolved by the plan.
	Parallelism int
	// Single is set on nodes that only one subtask can run, such as windows over
	// a whole stream.
	Single bool
	// MaxParallelism is the number of key groups; 0 until set or resolved.
	MaxParallelism  int
	DisableChaining bool
	// Where is the file and line of the API call that made the node.
	Where string

	Inputs  []*Edge
	Outputs []*Edge

	// Exactly one of NewSource and NewOperator is set.
	NewSource   func() operator.Source
	NewOperator func() operator.Operator
	// Source is set on sources.
	Source *SourceInfo

	// EventTime is set on operators that wait for watermarks, Timers on those of which it is
	// known only when they run: a function of the author's may register event-time timers.
	EventTime bool
	Timers    bool
	// Interval is set on joins that pair records as they come, and wait for watermarks only
	// to forget them.
	Interval bool
	// Assigner is the Go expression of a window operator's assigner, Lateness its allowed
	// lateness.
	Assigner string
	Lateness time.Duration
	// Silence is after how long without records windows close by themselves, 0 for never.
	Silence time.Duration
	// Watermarks describes the strategy of a source or of an
	// assign-timestamps operator; nil on all others.
	Watermarks *WatermarkInfo

	// KnownSides says that Sides are all the side outputs the node can have, by key;
	// otherwise its user function decides.
	KnownSides bool
	Sides      []string
	// LateSide is the key of the side output for late records, empty if there is none.
	LateSide string
	// NeverFires is set on windows that nothing will ever fire.
	NeverFires bool
	// WantsConsumer is set on nodes that are useless without a consumer, that is
	// on all but sinks.
	WantsConsumer bool

	// KeepsState is set on operators that keep state by key of which memory need not hold
	// all: functions' state, and windows that do not merge.
	KeepsState bool
	// InMemory says in a word or two what an operator holds that no budget covers, empty for
	// nothing and for windows.
	InMemory string

	// ExactlyOnce is set on sinks whose output becomes visible with checkpoints only.
	ExactlyOnce bool

	explicit bool
	// stateID is StateID's, for nodes without a uid.
	stateID string
}

// SourceInfo is what the plan needs to know about a source.
type SourceInfo struct {
	Bounded bool
	// Splits is the number of splits found at start, -1 while unknown.
	Splits int
	// Empty returns how many of so many subtasks would be given no split. It may be nil:
	// then the splits are taken to be dealt out evenly.
	Empty func(parallelism int) int
	// DeadLetters is the key of the side output for records that cannot be decoded,
	// empty if there is none.
	DeadLetters string
	// Alignment is set if the source waits for others.
	Alignment *AlignmentInfo
	// Codec stores the source's positions in checkpoints, nil if it cannot.
	Codec connector.SplitCodec
	// NewEnumerator connects to the source.
	NewEnumerator func(ctx context.Context, rt connector.SourceRuntime) (connector.Enumerator, error)
}

// empty returns how many of so many subtasks have no split.
func (s *SourceInfo) empty(parallelism int) int {
	if s.Empty != nil {
		return s.Empty(parallelism)
	}
	return max(0, parallelism-s.Splits)
}

// WatermarkInfo is what the plan needs to know about a watermark strategy.
type WatermarkInfo struct {
	Description string
	// None is true if the strategy emits no watermarks at all.
	None     bool
	Idleness bool
	// NoProbes is true if the generator is never called periodically.
	NoProbes bool
}

// AlignmentInfo is how a source is aligned with the others of its group (spec
// watermarks 6).
type AlignmentInfo struct {
	Group    string
	MaxDrift time.Duration
	Interval time.Duration
}

// Graph is a job's nodes in the order in which they were made, which is
// topological: a node's inputs exist before it.
type Graph struct {
	Name           string
	Parallelism    int
	MaxParallelism int
	// StateMemory is how many bytes the state of operators with KeepsState may take in all
	// subtasks together before it goes to disk, 0 for no limit.
	StateMemory int64
	Nodes       []*Node
}

// Add appends a node and numbers it.
func (g *Graph) Add(n *Node) *Node {
	n.ID = len(g.Nodes)
	g.Nodes = append(g.Nodes, n)
	return n
}

// Connect adds an edge.
func (g *Graph) Connect(e *Edge) {
	e.From.Outputs = append(e.From.Outputs, e)
	e.To.Inputs = append(e.To.Inputs, e)
}

// SetParallelism fixes a node's parallelism on the author's word.
func (n *Node) SetParallelism(p int) { n.Parallelism, n.explicit = p, true }

// Label names a node for people: its name, and its uid if there is one.
func (n *Node) Label() string {
	if n.UID != "" {
		return fmt.Sprintf("%s (uid %s)", n.Name, n.UID)
	}
	return n.Name
}

func (n *Node) errorf(format string, args ...any) error {
	where := ""
	if n.Where != "" {
		where = " (" + n.Where + ")"
	}
	return fmt.Errorf("operator %q%s: %w", n.Name, where, fmt.Errorf(format, args...))
}

// defaultMaxParallelism is Flink's rule (spec windows 5.1).
func defaultMaxParallelism(parallelism int) int { return keyed.DefaultMaxParallelism(parallelism) }
