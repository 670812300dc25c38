package observe

import (
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
			RestartStrategy:   "none",
		},
	}
}

func (l *live) Plan() *Plan    { return l.plan }
func (l *live) Config() Config { return l.config }

// Checkpoints is what the job has of them.
func (l *live) Checkpoints() Checkpoints {
	if c, ok := any(l.Job).(Checkpoints); ok && c.CheckpointConfig().Enabled {
		return c
	}
	return nil
}
