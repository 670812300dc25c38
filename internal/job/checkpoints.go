package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/status"
)

// CheckpointOptions are the settings of a job's checkpoints.
type CheckpointOptions struct {
	// URL is where they are stored; see checkpoint.Open.
	URL string
	// Interval is the time from one trigger to the next, 0 if there are none but on
	// request. MinPause is the least time from the end of one to the next trigger.
	Interval, MinPause time.Duration
	// Timeout is how long one may take.
	Timeout time.Duration
	// MaxConcurrent is how many may be under way at a time.
	MaxConcurrent int
	// TolerableFailures is how many may fail in a row before the job does.
	TolerableFailures int
	// AlignmentTimeout is how long a task waits for barriers before it lets them overtake
	// records; 0 means for ever.
	AlignmentTimeout time.Duration
	// CommitLater has output become visible one checkpoint later than it could.
	CommitLater bool
	// Retain is how many completed checkpoints are kept, besides savepoints.
	Retain  int
	Restore RestoreOptions
}

// RestoreOptions say what a job's first run starts from.
type RestoreOptions struct {
	// Path is a checkpoint or savepoint. Latest is the newest one in the store if there
	// is any. With neither, and a store that holds checkpoints, the job is refused
	// unless Fresh says that they are of no interest.
	Path          string
	Latest, Fresh bool
	// AllowNonRestoredState accepts a checkpoint with state that the job has no operator
	// or no state for. It is lost.
	AllowNonRestoredState bool
}

// Validate refuses what contradicts itself.
func (o RestoreOptions) Validate() error {
	said := 0
	for _, b := range []bool{o.Path != "", o.Latest, o.Fresh} {
		if b {
			said++
		}
	}
	if said > 1 {
		return errors.New("ResumeLatest, ResumeFrom and StartFresh exclude each other")
	}
	return nil
}

// historyLength is how many checkpoints are remembered for those who look.
const historyLength = 32

// checkpoints is what a job knows of its checkpoints over all its runs.
type checkpoints struct {
	job     *Job
	options CheckpointOptions
	store   *checkpoint.Store

	mu     sync.Mutex
	lastID int64
	// newestID is the last completed one, or the one that this run was restored from.
	// Intermediate savepoints do not count.
	newestID int64
	// stored says that this job has completed a checkpoint in the store.
	stored bool
	// base is the last checkpoint that earlier runs of the program left: newer ones are
	// this job's own.
	base int64
	// start is where this run of the program begins, or the savepoint that a run has ended
	// with or gone on from since, before what was stored of the one before. started says that
	// start is stored.
	start, before checkpoint.Start
	started       bool

	records status.Checkpoints
}

func openCheckpoints(ctx context.Context, j *Job) (*checkpoints, error) {
	c := &checkpoints{job: j, options: *j.options.Checkpoints}
	var err error
	// The store outlives ctx, whose end asks for a last checkpoint.
	if c.store, err = checkpoint.Open(context.WithoutCancel(ctx), c.options.URL); err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	if err := c.look(); err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoints: %w", err), c.close())
	}
	return c, nil
}

// look finds out what earlier runs have left, and decides what it means.
func (c *checkpoints) look() error {
	next, err := c.store.NextID()
	if err != nil {
		return err
	}
	c.base = next - 1
	c.lastID = c.base
	r := c.options.Restore
	stored, err := c.store.Start()
	switch {
	case r.Path != "" || r.Fresh:
		c.start = checkpoint.Start{After: c.base, From: r.Path}
	case err != nil:
		return err
	case r.Latest:
		c.start, c.started = stored, true
	}
	if c.base > 0 && r.Path == "" && !r.Latest && !r.Fresh {
		return fmt.Errorf("%s holds those of an earlier run, up to number %d: say whether to go on from them (ResumeLatest) or to start anew (StartFresh)",
			c.store.Path(), c.base)
	}
	return nil
}

// markStart stores where this run of the program begins, so that ResumeLatest does not go
// back behind that although there is no newer checkpoint.
func (c *checkpoints) markStart(from *restored) error {
	if c.started {
		return nil
	}
	start := c.start
	if from != nil {
		start.From = from.checkpoint.Path()
	}
	var err error
	if c.before, err = c.store.Start(); err != nil || c.before != start {
		if err := c.store.SetStart(start); err != nil {
			return fmt.Errorf("checkpoints: %w", err)
		}
	}
	c.started = true
	return nil
}

// moveStart stores a later place to go on from than the one that this run of the program
// began with.
func (c *checkpoints) moveStart(start checkpoint.Start) error {
	if err := c.store.SetStart(start); err != nil {
		return err
	}
	c.start, c.started = start, true
	return nil
}

// unmarkStart takes that back: the job could not even be opened, and nothing has begun.
func (c *checkpoints) unmarkStart() {
	if c.options.Restore.Latest || c.start == c.before {
		return
	}
	if err := c.store.SetStart(c.before); err != nil {
		c.job.log.Warn("ResumeLatest will take this run for the newest, although it could not be opened", "error", err)
	}
}

func (c *checkpoints) close() error { return c.store.Close() }

// newestCompleted returns the number of the newest checkpoint that there is to go on from.
func (c *checkpoints) newestCompleted() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newestID
}

// hasStored reports whether this job has completed a checkpoint in the store.
func (c *checkpoints) hasStored() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored
}

// next returns the number of a new checkpoint.
func (c *checkpoints) next() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastID++
	return c.lastID
}

// note remembers how a checkpoint stands.
func (c *checkpoints) note(report status.Checkpoint) {
	report.Vertices = slices.Clone(report.Vertices)
	for i, v := range report.Vertices {
		report.Vertices[i].Subtasks = slices.Clone(v.Subtasks)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.records
	i := slices.IndexFunc(r.History, func(h status.Checkpoint) bool { return h.ID == report.ID })
	before := status.CheckpointState("")
	if i >= 0 {
		before = r.History[i].State
		r.History[i] = report
	} else if r.History = append(r.History, report); len(r.History) > historyLength {
		r.History = slices.Delete(r.History, 0, 1)
	}
	noteLatest(r, &report)
	if before == report.State {
		return
	}
	switch {
	case before == "":
		r.Total++
	case before == status.CheckpointInProgress:
		r.InProgress--
	}
	switch report.State {
	case status.CheckpointInProgress:
		r.InProgress++
	case status.CheckpointCompleted:
		r.Completed++
	case status.CheckpointFailed:
		r.Failed++
	}
}

// noteLatest remembers the last of each kind, however many others follow.
func noteLatest(r *status.Checkpoints, report *status.Checkpoint) {
	var at **status.Checkpoint
	switch {
	case report.State == status.CheckpointFailed:
		at = &r.LatestFailed
	case report.State != status.CheckpointCompleted:
		return
	case report.Savepoint:
		at = &r.LatestSavepoint
	default:
		at = &r.LatestCompleted
	}
	if *at == nil || (*at).ID <= report.ID {
		*at = report
	}
}

// completed notes a checkpoint that there is to go on from.
func (c *checkpoints) completed(report status.Checkpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newestID = max(c.newestID, report.ID)
	c.stored = c.stored || !report.Savepoint // those may be somewhere else
}

// retain removes what need not be kept any longer.
func (c *checkpoints) retain() {
	if err := c.store.Retain(c.options.Retain); err != nil {
		c.job.log.Warn("removing old checkpoints failed", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := 0
	for i := range slices.Backward(c.records.History) {
		h := &c.records.History[i]
		if h.State == status.CheckpointCompleted && !h.Savepoint {
			kept++
			h.Discarded = kept > c.options.Retain
		}
	}
}

// Checkpoints returns what became of the job's checkpoints; ok is false if it takes
// none.
func (j *Job) Checkpoints() (records status.Checkpoints, ok bool) {
	c := j.checkpoints
	if c == nil {
		return records, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	records = c.records
	records.History = slices.Clone(records.History)
	return records, true
}

// CheckpointConfig returns how the job takes checkpoints.
func (j *Job) CheckpointConfig() status.CheckpointConfig {
	if j.checkpoints == nil {
		return status.CheckpointConfig{}
	}
	o := j.checkpoints.options
	backend := "memory"
	if j.graph.StateMemory > 0 {
		backend = "memory and disk"
	}
	return status.CheckpointConfig{
		Enabled: true, ExactlyOnce: true,
		Interval: o.Interval, MinPause: o.MinPause, Timeout: o.Timeout,
		MaxConcurrent: o.MaxConcurrent, TolerableFailures: o.TolerableFailures,
		Retain: true, Backend: backend, Storage: o.URL,
	}
}

// ErrNoCheckpoints is returned by what needs checkpoints in a job without.
var ErrNoCheckpoints = errors.New("the job takes no checkpoints: enable them with WithCheckpoints")

// Checkpoint takes a checkpoint now and returns its path.
func (j *Job) Checkpoint(ctx context.Context) (path string, err error) {
	return j.request(ctx, &request{kind: checkpoint.KindCheckpoint})
}

// Savepoint takes a savepoint into a directory, "" for the store's own. Savepoints are
// never removed. Nothing is committed with it.
func (j *Job) Savepoint(ctx context.Context, dir string) (path string, err error) {
	return j.request(ctx, &request{kind: checkpoint.KindSavepoint, target: dir})
}

// StopWithSavepoint stops the job gracefully with a savepoint as its last checkpoint.
// With drain, the input ends first: the final watermark fires all windows, and the
// savepoint cannot be gone on from in a meaningful way. It returns when the run has ended;
// if that has failed after the savepoint, with its path and the error.
func (j *Job) StopWithSavepoint(ctx context.Context, dir string, drain bool) (path string, err error) {
	return j.request(ctx, &request{kind: checkpoint.KindSavepoint, target: dir, stop: !drain, drain: drain})
}

func (j *Job) request(ctx context.Context, q *request) (path string, err error) {
	if j.checkpoints == nil {
		return "", ErrNoCheckpoints
	}
	answers := make(chan answer, 1)
	q.answer = answers
	r := j.current.Load()
	if err := r.coordinator.ask(ctx, q); err != nil {
		return "", err
	}
	a, err := r.await(ctx, answers)
	if err != nil || !q.ends() {
		return a.path, err
	}
	select {
	case <-r.over:
	case <-ctx.Done():
		return a.path, fmt.Errorf("savepoint %s is stored, and the job is ending: %w", a.path, ctx.Err())
	}
	if r.err != nil {
		return a.path, fmt.Errorf("savepoint %s is stored, but the job has not stopped with it: not all that it covers may be committed, "+
			"which a run does that goes on from it, as the next one of this job does: %w", a.path, r.err)
	}
	return a.path, nil
}

// await waits for the answer to a request.
func (r *run) await(ctx context.Context, answers <-chan answer) (answer, error) {
	select {
	case a := <-answers:
		return a, a.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	case <-r.over:
	}
	select {
	case a := <-answers: // it came at the very end
		return a, a.err
	default:
		return answer{}, errGivenUp
	}
}
