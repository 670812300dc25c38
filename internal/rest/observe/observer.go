package observe

import (
	"sync"
	"time"

	"github.com/lowwater/lowwater/status"
)

const (
	// SampleInterval is the time between two samples of a job.
	SampleInterval = time.Second
	// RateSpan is what per-second values are averages over: the interval in which Flink
	// renews its own, which are averages over a minute.
	RateSpan = 5 * time.Second
	// freshFor is how long one reading of a job answers everyone who asks.
	freshFor = 200 * time.Millisecond
	// maxEnded is how many jobs that have ended are kept, the latest.
	maxEnded = 20
)

// Registry is the jobs of a process, running and ended.
type Registry struct {
	sampling sync.WaitGroup
	stop     chan struct{}

	mu   sync.Mutex
	jobs []*Observed
	// version grows with every sample and every change; changed is closed then.
	version int64
	changed chan struct{}
}

// NewRegistry returns one without jobs.
func NewRegistry() *Registry {
	return &Registry{stop: make(chan struct{}), changed: make(chan struct{})}
}

// Add begins to watch a job, until it ends or the registry is closed.
func (r *Registry) Add(j Job) *Observed {
	o := &Observed{Job: j, ID: NewID(), history: newHistory(), diagnosis: newDiagnosis(j.Plan())}
	o.sample()
	r.mu.Lock()
	r.jobs = append(r.jobs, o)
	r.forget()
	r.mu.Unlock()
	r.bump()
	r.sampling.Go(func() { r.watch(o) })
	return o
}

// forget drops the oldest of too many jobs that have ended.
func (r *Registry) forget() {
	ended := 0
	for i := len(r.jobs) - 1; i >= 0; i-- {
		select {
		case <-r.jobs[i].Done():
			if ended++; ended > maxEnded {
				r.jobs = append(r.jobs[:i:i], r.jobs[i+1:]...)
			}
		default:
		}
	}
}

func (r *Registry) watch(o *Observed) {
	ticker := time.NewTicker(SampleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-o.Done():
			o.sample()
			r.bump()
			return
		case <-ticker.C:
			o.sample()
			r.bump()
		}
	}
}

func (r *Registry) bump() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	close(r.changed)
	r.changed = make(chan struct{})
}

// Close ends all watching. What was seen can still be read.
func (r *Registry) Close() {
	close(r.stop)
	r.sampling.Wait()
}

// Jobs returns all jobs, oldest first.
func (r *Registry) Jobs() []*Observed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Observed(nil), r.jobs...)
}

// Job returns the job with that id, or nil.
func (r *Registry) Job(id string) *Observed {
	for _, o := range r.Jobs() {
		if o.ID == id {
			return o
		}
	}
	return nil
}

// Version returns a number that grows whenever there is something new to see, and a channel
// that is closed then.
func (r *Registry) Version() (int64, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.version, r.changed
}

// Observed is a job that is being watched.
type Observed struct {
	Job
	ID string

	mu sync.Mutex
	// samples are of the last RateSpan and one before, oldest first.
	samples []sample
	latest  *Reading
	history *history
	// diagnosis is nil if the job's graph is not known.
	diagnosis *diagnosis
	restarts  restarts
}

// sample is a job's numbers at one moment.
type sample struct {
	at  time.Time
	job status.Job
}

// Reading is a job's numbers at one moment, and some seconds before, for rates.
type Reading struct {
	At     time.Time
	Plan   *Plan
	Status status.Job
	before sample
}

// sample reads the job for rates and for the history.
func (o *Observed) sample() {
	s := sample{time.Now(), o.Status()}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.samples = append(o.samples, s)
	for len(o.samples) > 2 && s.at.Sub(o.samples[1].at) >= RateSpan {
		o.samples = append(o.samples[:0:0], o.samples[1:]...)
	}
	o.latest = nil
	o.history.record(s.at, o.Plan(), &s.job)
	o.diagnosis.add(s)
	o.restarts.add(s.at, s.job.Restarts)
}

// Read returns the job's numbers as of now, or of the last fraction of a second.
func (o *Observed) Read() *Reading {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.latest == nil || now.Sub(o.latest.At) >= freshFor {
		o.latest = &Reading{At: now, Plan: o.Plan(), Status: o.Status(), before: o.samples[0]}
	}
	return o.latest
}

// History returns the watermarks of all subtasks and splits since a time.
func (o *Observed) History(since time.Time) History {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.history.read(since)
}

// WatermarkSince returns when a split came to have its watermark, as far as the history tells,
// zero if it does not.
func (o *Observed) WatermarkSince(vertex, subtask int, s *status.Split) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	since, _ := o.history.since(seriesKey{vertex, subtask, s.ID}, s.CurrentWatermark)
	return since
}

// perSecond returns the average growth per second of a count; ended jobs have none.
func (r *Reading) perSecond(now, before int64) float64 {
	elapsed := r.At.Sub(r.before.at).Seconds()
	if elapsed <= 0 || r.Status.Life.State.Ended() {
		return 0
	}
	return max(0, float64(now-before)) / elapsed // counts begin anew when the job restarts
}

// millisPerSecond is perSecond for a time: milliseconds of each second, 0 to 1000.
func (r *Reading) millisPerSecond(now, before time.Duration) float64 {
	elapsed := r.At.Sub(r.before.at)
	if elapsed <= 0 || r.Status.Life.State.Ended() {
		return 0
	}
	return min(1000, max(0, 1000*float64(now-before)/float64(elapsed)))
}
