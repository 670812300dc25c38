package job

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/progress"
)

// sourceRun is one source's connection to the outside.
type sourceRun struct {
	node       *graph.Node
	enumerator connector.Enumerator
	// splits are those found at the start, owned the same by subtask.
	splits []connector.Split
	owned  [][]connector.Split
	// assigning is held while splits found later are handed out, and while a checkpoint
	// is triggered. It guards known.
	assigning sync.Mutex
	// known is of the splits that have been handed out.
	known knownSplits
}

// knownSplits is what an enumerator knows after a call of Discover, or why it cannot say.
type knownSplits struct {
	state []byte
	err   error
}

// connect opens the enumerators and finds the first splits.
func (r *run) connect(ctx context.Context) error {
	for _, n := range r.job.graph.Nodes {
		if n.Source == nil {
			continue
		}
		rt := operator.Runtime{Name: n.Name, UID: n.UID, Where: n.Where, Subtask: -1}
		e, err := n.Source.NewEnumerator(ctx, connector.SourceRuntime{Operator: n.Name, Logger: r.log})
		if err != nil {
			return rt.WithName(err)
		}
		s := &sourceRun{node: n, enumerator: e}
		r.sources = append(r.sources, s)
		restored, err := s.restoreSplits(r.restored)
		if err != nil {
			return rt.WithName(err)
		}
		found, err := s.discover(ctx)
		if err != nil {
			return rt.WithName(err)
		}
		s.splits = withRestored(restored, found)
		n.Source.Splits, n.Source.Empty = len(s.splits), s.empty
		if n.Source.Alignment != nil {
			if r.alignment == nil {
				r.alignment = newAlignment()
			}
			if err := r.alignment.join(n); err != nil {
				return rt.WithName(err)
			}
		}
	}
	return nil
}

func (r *run) closeSources() {
	for _, s := range r.sources {
		if err := safely(s.enumerator.Close); err != nil {
			r.log.Warn("closing a source failed", "source", s.node.Name, "error", err)
		}
	}
}

func (r *run) source(n *graph.Node) *sourceRun {
	for _, s := range r.sources {
		if s.node == n {
			return s
		}
	}
	return nil
}

// safely calls code of a connector; a panic in it is an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = operator.NewPanic(v)
		}
	}()
	return f()
}

// discover asks the connector for splits.
func (s *sourceRun) discover(ctx context.Context) (splits []connector.Split, err error) {
	err = safely(func() error {
		splits, err = s.enumerator.Discover(ctx)
		return err
	})
	return splits, err
}

// ask asks the connector what it knows. Only what calls discover calls it.
func (s *sourceRun) ask() (known knownSplits) {
	if e, ok := s.enumerator.(connector.RestorableEnumerator); ok {
		known.err = safely(func() (err error) {
			known.state, err = e.SnapshotEnumerator()
			return err
		})
	}
	return known
}

// assign gives each split found at the start to its owner.
func (s *sourceRun) assign() error {
	s.owned = make([][]connector.Split, s.node.Parallelism)
	for _, split := range s.splits {
		owner, err := s.owner(split, s.node.Parallelism)
		if err != nil {
			return err
		}
		s.owned[owner] = append(s.owned[owner], split)
	}
	s.known = s.ask()
	return nil
}

// empty returns how many of so many subtasks own no split.
func (s *sourceRun) empty(parallelism int) int {
	owners := map[int]bool{}
	for _, split := range s.splits {
		owners[s.ownerOf(split, parallelism)] = true
	}
	return parallelism - len(owners)
}

// ownerOf asks the connector about a split as it knows it.
func (s *sourceRun) ownerOf(split connector.Split, parallelism int) int {
	if r, ok := split.(operator.RestoredSplit); ok {
		split = r.Split
	}
	return s.enumerator.Owner(split, parallelism)
}

// owner returns the subtask that reads split.
func (s *sourceRun) owner(split connector.Split, parallelism int) (int, error) {
	owner := s.ownerOf(split, parallelism)
	if owner < 0 || owner >= parallelism {
		rt := operator.Runtime{Name: s.node.Name, UID: s.node.UID, Where: s.node.Where, Subtask: -1}
		return 0, rt.WithName(fmt.Errorf("the connector's Owner gave split %q to subtask %d: want 0 to %d", split.ID(), owner, parallelism-1))
	}
	return owner, nil
}

// tasksOf returns the subtasks of a source, in order.
func (r *run) tasksOf(n *graph.Node) (tasks []*runningTask) {
	for _, t := range r.tasks {
		if t.vertex.Head() == n {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// coordinate starts what sources need while they run: discovery and alignment. The
// goroutines end when the job's context does.
func (r *run) coordinate() *sync.WaitGroup {
	var wg sync.WaitGroup
	if r.coordinator != nil {
		wg.Go(r.coordinator.loop)
	}
	for _, s := range r.sources {
		if d, ok := s.enumerator.(connector.Discoverer); ok && !s.node.Source.Bounded && d.DiscoveryInterval() > 0 {
			wg.Go(func() { r.discover(s, d.DiscoveryInterval()) })
		}
		if a := s.node.Source.Alignment; a != nil {
			wg.Go(func() { r.announce(s.node, a.Interval) })
		}
	}
	return &wg
}

// discover looks for new splits. A failure is a warning: what is being read goes on.
func (r *run) discover(s *sourceRun, interval time.Duration) {
	tasks := r.tasksOf(s.node)
	for r.tick(interval) {
		if err := safely(func() error { return r.discoverOnce(s, tasks, interval) }); err != nil {
			r.fail(err)
			return
		}
	}
}

// discoverOnce does not hold up checkpoints while the connector looks.
func (r *run) discoverOnce(s *sourceRun, tasks []*runningTask, interval time.Duration) error {
	found, err := s.discover(r.ctx)
	if err != nil && r.ctx.Err() == nil {
		r.log.Warn("looking for new splits failed; trying again", "operator", s.node.Name, "after", interval, "error", err)
	}
	owned := map[int][]connector.Split{}
	for _, split := range found {
		owner, err := s.owner(split, len(tasks))
		if err != nil {
			return err
		}
		owned[owner] = append(owned[owner], split)
		r.log.Info("new split", "operator", s.node.Name, "split", split.ID(), "subtask", owner)
	}
	known := s.ask()
	s.assigning.Lock()
	defer s.assigning.Unlock()
	for owner, splits := range owned {
		tasks[owner].task.AddSplits(r.ctx, splits)
	}
	s.known = known
	return nil
}

// tick waits and reports whether the job still runs.
func (r *run) tick(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.ctx.Done():
		return false
	}
}

// announce tells the subtasks of an aligned source how far they may read. A subtask
// too busy to listen hears the next announcement.
func (r *run) announce(n *graph.Node, interval time.Duration) {
	tasks := r.tasksOf(n)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.alignment.announce(n, func(subtask int, limit int64) { tasks[subtask].task.MaxAllowed(limit) })
		case <-r.ctx.Done():
			return
		}
	}
}

// alignment is the coordinator of all aligned sources of the job. Subtasks report to
// it from their goroutines.
type alignment struct {
	mu          sync.Mutex
	coordinator *progress.Coordinator
	sources     map[*graph.Node]*progress.AlignedSource
}

func newAlignment() *alignment {
	return &alignment{coordinator: progress.NewCoordinator(), sources: map[*graph.Node]*progress.AlignedSource{}}
}

func (a *alignment) join(n *graph.Node) (err error) {
	info := n.Source.Alignment
	a.sources[n], err = a.coordinator.Join(fmt.Sprintf("%d: %s", n.ID, n.Name), info.Group, info.MaxDrift.Milliseconds())
	return err
}

func (a *alignment) report(n *graph.Node, subtask int, watermark int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sources[n].Report(subtask, watermark)
}

func (a *alignment) announce(n *graph.Node, yield func(subtask int, limit int64)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sources[n].Announce(yield)
}
