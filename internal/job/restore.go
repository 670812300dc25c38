package job

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/status"
)

// restored is what a run starts from. A nil one has nothing.
type restored struct {
	checkpoint *checkpoint.Checkpoint
	// named says that somebody has named it, or a run has ended with it: it is not just the
	// latest in the directory.
	named  bool
	allow  bool
	closed atomic.Bool
}

// restore returns what the next run starts from: the newest checkpoint of this job that
// is whole, and before there is one what the options say. Damaged and late ones on
// the way are logged.
func (c *checkpoints) restore() (*restored, error) {
	if err := c.store.CheckOwner(); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err) // the latest would be another run's
	}
	cp, named, err := c.choose()
	if err != nil || cp == nil {
		return nil, err
	}
	m := cp.Manifest()
	c.mu.Lock()
	c.newestID = m.ID
	c.lastID = max(c.lastID, m.ID) // numbers rise, also if that one is of another store
	c.records.Restored++
	c.records.RestoredFrom = &status.RestoredCheckpoint{
		ID: m.ID, At: time.Now(), Savepoint: m.Kind == checkpoint.KindSavepoint, Path: cp.Path(),
	}
	c.mu.Unlock()
	c.job.log.Info("restoring", "checkpoint", m.ID, "path", cp.Path())
	r := &restored{checkpoint: cp, named: named, allow: c.options.Restore.AllowNonRestoredState}
	if err := r.adopt(c.job); err != nil || named || m.Kind != checkpoint.KindSavepoint {
		return r, err
	}
	// If the savepoint's owner removes it, an older checkpoint is not one to go on from: what
	// it covers is about to be committed.
	if err := c.moveStart(checkpoint.Start{After: m.ID, From: cp.Path()}); err != nil {
		return r, fmt.Errorf("checkpoints: %w", err)
	}
	return r, nil
}

// choose returns the checkpoint to go on from, nil if there is none to be, and whether it
// is named rather than the latest.
func (c *checkpoints) choose() (cp *checkpoint.Checkpoint, named bool, err error) {
	cp, skipped, err := c.store.Latest(c.start.After)
	if err != nil {
		return nil, false, fmt.Errorf("checkpoints: %w", err)
	}
	damaged := c.logSkipped(skipped)
	switch {
	case cp != nil:
		return cp, false, nil
	case c.start.From != "":
		if cp, err = c.load(c.start.From); err != nil && c.start.From != c.options.Restore.Path {
			err = fmt.Errorf("checkpoints: the newest run began or ended with %s and has completed no checkpoint since: %w: name one with ResumeFrom, or start anew with StartFresh",
				c.start.From, err)
		}
		return cp, true, err
	case damaged > 0:
		return nil, false, fmt.Errorf("checkpoints: all %d in %s that could be gone on from are damaged: to go on without state would lose it; "+
			"name a savepoint with ResumeFrom, or start anew with StartFresh", damaged, c.store.Path())
	case c.hasStored():
		return nil, false, fmt.Errorf("checkpoints: those that this job has completed are gone from %s: to go on without state would lose it; "+
			"bring them back, name a savepoint with ResumeFrom, or start anew with StartFresh", c.store.Path())
	}
	if c.started && c.start.After > 0 {
		c.job.log.Info("starting without state: the newest run was started fresh and has completed no checkpoint", "store", c.store.Path(), "after", c.start.After)
	}
	return nil, false, nil
}

// logSkipped names the checkpoints that are not gone on from, and returns how many of them are
// damaged.
func (c *checkpoints) logSkipped(skipped []checkpoint.Info) (damaged int) {
	for _, info := range skipped {
		switch {
		case errors.Is(info.Err, checkpoint.ErrUnfinished):
		case errors.Is(info.Err, checkpoint.ErrLate):
			c.job.log.Warn("a checkpoint is ignored", "checkpoint", info.ID, "path", info.Path, "error", info.Err)
		default:
			damaged++
			c.job.log.Error("a checkpoint is damaged, the one before is used", "checkpoint", info.ID, "path", info.Path, "error", info.Err)
		}
	}
	return damaged
}

// load opens the checkpoint that the author named, and looks at every byte of it.
func (c *checkpoints) load(path string) (*checkpoint.Checkpoint, error) {
	cp, err := c.store.Load(path)
	if err != nil {
		return nil, err
	}
	if err := cp.Verify(); err != nil {
		return nil, errors.Join(err, cp.Close())
	}
	return cp, nil
}

// adopt checks that a checkpoint fits the job. The number of key groups is fixed with the
// state, so operators that do not say theirs take over the stored one.
func (r *restored) adopt(j *Job) error {
	var operators []checkpoint.OperatorInfo
	for _, n := range j.graph.Nodes {
		id := n.StateID()
		if n.MaxParallelism == 0 {
			n.MaxParallelism = j.graph.MaxParallelism
		}
		if op, ok := r.checkpoint.Operator(id); ok && n.MaxParallelism == 0 {
			n.MaxParallelism = op.MaxParallelism
		}
		operators = append(operators, checkpoint.OperatorInfo{ID: id, UID: n.UID, Name: n.Name, MaxParallelism: n.MaxParallelism})
	}
	m, err := r.checkpoint.Match(j.graph.Name, operators, r.allow)
	if err != nil {
		return err
	}
	switch {
	case m.OtherJob != "" && !r.named && !r.allow:
		return fmt.Errorf("checkpoints: %s, the latest, is of job %q, this is job %q, and no operator has the uid of one of the other's: give this job a directory of its own; "+
			"if it is the same job under another name, name the checkpoint with ResumeFrom, or accept it with AllowNonRestoredState", r.checkpoint.Path(), m.OtherJob, j.graph.Name)
	case m.OtherJob != "":
		j.log.Warn("the checkpoint is of another job, whose operators have no uid in common with this one's", "path", r.checkpoint.Path(), "of", m.OtherJob, "job", j.graph.Name)
	}
	for _, op := range m.Missing {
		j.log.Warn("state is dropped, as AllowNonRestoredState says", "operator", op.String(), "bytes", op.Size)
	}
	for _, op := range m.New {
		j.log.Info("an operator is new and begins without state", "operator", op.String())
	}
	return nil
}

// close is called when the operators need the checkpoint no longer. The second time it does
// nothing.
func (r *restored) close() error {
	if r == nil || !r.closed.CompareAndSwap(false, true) {
		return nil
	}
	return r.checkpoint.Close()
}

// reader returns what an operator of one subtask is restored from, nil if nothing.
func (r *restored) reader(n *graph.Node, subtask, parallelism int) (snapshot.Reader, error) {
	if r == nil {
		return nil, nil
	}
	op, ok := r.checkpoint.Operator(n.StateID())
	if !ok {
		return nil, nil
	}
	return op.Reader(subtask, parallelism, func(subtask, parallelism, maxParallelism int) (first, last int) {
		groups := keyed.RangeOf(subtask, parallelism, maxParallelism)
		return groups.First, groups.Last
	})
}

// unclaimed is implemented by readers that know what nobody asked for.
type unclaimed interface{ Unclaimed() []string }

// commitUpTo is Runtime's.
func (r *restored) commitUpTo(later bool) int64 {
	if !later {
		return math.MaxInt64
	}
	return r.checkpoint.Manifest().Previous
}

// checkClaimed returns an error if state of the checkpoint would be lost.
func (r *restored) checkClaimed(rt *operator.Runtime) error {
	u, ok := rt.Restored.(unclaimed)
	if !ok || r.allow {
		return nil
	}
	if names := u.Unclaimed(); len(names) > 0 {
		slices.Sort(names)
		return rt.WithName(fmt.Errorf("checkpoint %s holds state that the operator no longer declares: %q: "+
			"declare it again, or drop it with AllowNonRestoredState", r.checkpoint.Path(), names))
	}
	return nil
}

// restoreSplits gives the enumerator back what it knew, and returns the splits that are
// to be read on.
func (s *sourceRun) restoreSplits(r *restored) ([]operator.RestoredSplit, error) {
	if r == nil {
		return nil, nil
	}
	op, ok := r.checkpoint.Operator(s.node.StateID())
	if !ok {
		return nil, nil
	}
	reader, err := r.reader(s.node, 0, 1)
	if err != nil {
		return nil, err
	}
	part, ok := reader.Part(operator.SplitsPart)
	if !ok {
		return nil, nil
	}
	if s.node.Source.Codec == nil {
		return nil, fmt.Errorf("checkpoint %s holds positions of this source, which cannot read them: its connector has no connector.SplitCodec", r.checkpoint.Path())
	}
	splits, err := operator.DecodeSplits(s.node.Source.Codec, part)
	if err != nil {
		return nil, err
	}
	if e, ok := s.enumerator.(connector.RestorableEnumerator); ok && op.Enumerator != nil {
		if err := e.RestoreEnumerator(op.Enumerator); err != nil {
			return nil, fmt.Errorf("restore what was known of the source's splits: %w", err)
		}
	}
	return splits, nil
}

// withRestored returns the restored splits and those that discovery found beside them.
func withRestored(restored []operator.RestoredSplit, found []connector.Split) (all []connector.Split) {
	known := map[string]bool{}
	for _, split := range restored {
		known[split.ID()] = true
		all = append(all, split)
	}
	for _, split := range found {
		if !known[split.ID()] {
			all = append(all, split)
		}
	}
	return all
}
