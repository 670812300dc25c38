package job

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/status"
)

// life records the states that a job or one of its subtasks goes through. Its zero value
// is created at no known time.
type life struct {
	mu sync.Mutex
	v  status.Life
}

// enter notes a new state. Nothing follows the end, and nothing but the end the request to
// cancel, which may come before the tasks have started.
func (l *life) enter(s status.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.v.State == s || l.v.State.Ended() || l.v.State == status.Cancelling && !s.Ended() {
		return
	}
	if l.v.Since == nil {
		l.v.Since = map[status.State]time.Time{}
	}
	l.v.State, l.v.Since[s] = s, time.Now()
}

func (l *life) read() status.Life {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := status.Life{State: l.v.State, Since: maps.Clone(l.v.Since)}
	if v.State == "" {
		v.State = status.Created
	}
	return v
}

// maxFailures is how many failures are remembered, the latest.
const maxFailures = 16

// failures is what went wrong in a job.
type failures struct {
	mu   sync.Mutex
	list []status.Failure
}

func (f *failures) add(failure status.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, failure)
	if extra := len(f.list) - maxFailures; extra > 0 {
		f.list = slices.Delete(f.list, 0, extra)
	}
}

// Failures returns the latest failures, oldest first.
func (j *Job) Failures() []status.Failure {
	j.failures.mu.Lock()
	defer j.failures.mu.Unlock()
	return slices.Clone(j.failures.list)
}

// Plan returns what the job runs. It must not be changed.
func (j *Job) Plan() *graph.Plan { return j.plan }
