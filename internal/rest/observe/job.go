package observe

import (
	"context"
	"net/url"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/job"
	"github.com/lowwater/lowwater/status"
)

// Job is what can be seen of a job, and asked of it. Its methods may be called from any
// goroutine, also after the job has ended.
type Job interface {
	Plan() *Plan
	Status() status.Job
	// Failures are the latest failures, oldest first.
	Failures() []status.Failure
	Config() Config
	// Done is closed when the job has ended.
	Done() <-chan struct{}
	// Cancel ends the job at once, Stop gracefully. Both return at once.
	Cancel()
	Stop()
	// Checkpoints is nil if checkpointing is off.
	Checkpoints() Checkpoints
}

// Config is a job's settings. It never holds what a connector was told: that may be secret.
type Config struct {
	Parallelism       int
	MaxParallelism    int
	WatermarkInterval time.Duration
	StopTimeout       time.Duration
	RestartStrategy   string
}

// live is a job of this process.
type live struct {
	*job.Job
	plan   *Plan
	config Config
}

// NewJob shows a job of this process.
func NewJob(j *job.Job, g *graph.Graph, options job.Options) Job {
	return &live{
		Job:  j,
		plan: NewPlan(g, j.Plan(), j.Warnings()),
		config: Config{
			Parallelism:       g.Parallelism,
			MaxParallelism:    g.MaxParallelism,
			WatermarkInterval: options.WatermarkInterval,
			StopTimeout:       options.StopTimeout,
			RestartStrategy:   restartStrategy(options.Restart),
		},
	}
}

func (l *live) Plan() *Plan    { return l.plan }
func (l *live) Config() Config { return l.config }

// Checkpoints is nil if the job takes none.
func (l *live) Checkpoints() Checkpoints {
	if !l.CheckpointConfig().Enabled {
		return nil
	}
	return liveCheckpoints{l.Job}
}

// liveCheckpoints are those of a job of this process.
type liveCheckpoints struct{ job *job.Job }

// CheckpointConfig shows where checkpoints go without what may be secret in a URL. Savepoints
// go there as well unless they are told where.
func (c liveCheckpoints) CheckpointConfig() status.CheckpointConfig {
	cfg := c.job.CheckpointConfig()
	cfg.Storage = withoutSecrets(cfg.Storage)
	cfg.SavepointDir = cfg.Storage
	return cfg
}

// withoutSecrets drops the user and the query of a URL; a URL that cannot be read is not
// shown at all.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "unreadable"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func (c liveCheckpoints) CheckpointStats() status.Checkpoints {
	records, _ := c.job.Checkpoints()
	return records
}

func (c liveCheckpoints) TriggerCheckpoint(ctx context.Context) (id int64, err error) {
	path, err := c.job.Checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	for _, cp := range c.CheckpointStats().History {
		if cp.Path == path {
			id = cp.ID
		}
	}
	return id, nil
}

func (c liveCheckpoints) TriggerSavepoint(ctx context.Context, dir string) (path string, err error) {
	return c.job.Savepoint(ctx, dir)
}

func (c liveCheckpoints) StopWithSavepoint(ctx context.Context, dir string, drain bool) (path string, err error) {
	return c.job.StopWithSavepoint(ctx, dir, drain)
}

// restartStrategy names what happens after a failure.
func restartStrategy(s job.RestartStrategy) string {
	if s == nil {
		return "none"
	}
	return s.Name()
}
