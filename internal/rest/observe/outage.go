package observe

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/status"
)

const (
	// recently is how far back restarts are counted: so long ago a failure is history.
	recently = 10 * time.Minute
	// manyRestarts within recently are a job that fails again and again, until an attempt
	// has lasted longer than those before it usually did, and than calm.
	manyRestarts = 3
	calm         = time.Minute
)

// restarts is when a job was seen to have been started again, by samples.
type restarts struct {
	// before is how often it had been before seen.
	before int64
	seen   []restart
}

// restart is a sample at which the number of restarts had grown to n.
type restart struct {
	at time.Time
	n  int64
}

// add takes note of a sample, and forgets what is not recent.
func (r *restarts) add(at time.Time, n int64) {
	if n > r.total() {
		r.seen = append(r.seen, restart{at, n})
	}
	old := 0
	for old < len(r.seen) && at.Sub(r.seen[old].at) > recently {
		r.before = r.seen[old].n
		old++
	}
	r.seen = r.seen[old:]
}

func (r *restarts) total() int64 {
	if len(r.seen) == 0 {
		return r.before
	}
	return r.seen[len(r.seen)-1].n
}

// patience is how long an attempt must last to be the end of n recent restarts.
func (r *restarts) patience(n int64) time.Duration {
	if len(r.seen) == 0 {
		return calm
	}
	each := r.seen[len(r.seen)-1].at.Sub(r.seen[0].at) / time.Duration(n)
	return max(calm, 2*each)
}

// halted reports whether what can be seen of a job in a state is of an attempt that is over.
func halted(s status.State) bool {
	return s == status.Restarting || s == status.Failing || s == status.Cancelling
}

// outage returns what is to be said of the failures of a job: ok is false if it runs and has
// not failed lately. again says that it fails again and again. o.mu is held.
func (o *Observed) outage(r *Reading) (out why.Outage, again, ok bool) {
	life := r.Status.Life
	out = why.Outage{
		Job: r.Status.Name, State: string(life.State), Since: life.Since[life.State], Span: recently,
		Restarts: r.Status.Restarts, Recent: max(0, r.Status.Restarts-o.restarts.before),
	}
	failures := o.Failures()
	if n := len(failures); n > 0 {
		last := &failures[n-1]
		out.Failure, out.FailedAt = last.Err.Error(), last.At
		if last.Vertex >= 0 {
			out.Place = place(r, last.Vertex, last.Subtask)
		}
	}
	switch {
	case halted(life.State):
		out.Waits = waitedFor(r)
		return out, false, true
	case len(failures) == 0 || out.Recent == 0:
		return out, false, false
	}
	return out, out.Recent >= manyRestarts && r.At.Sub(out.Since) < o.restarts.patience(out.Recent), true
}

// waitedFor names the subtasks that keep a job that was cancelled or has failed from ending, a
// few of them: Go cannot end a function from outside. There are none while they may be about to.
func waitedFor(r *Reading) (names []string) {
	const most = 3
	life := r.Status.Life
	if life.State == status.Restarting || r.At.Sub(life.Since[life.State]) < overdue {
		return nil
	}
	left := 0
	for v := range r.Status.Vertices {
		for i := range r.Status.Vertices[v].Subtasks {
			if r.Status.Vertices[v].Subtasks[i].Life.State.Ended() {
				continue
			}
			if left++; left <= most {
				names = append(names, place(r, v, i))
			}
		}
	}
	if left > most {
		names = append(names, fmt.Sprintf("%d more", left-most))
	}
	return names
}

// overdue is how long subtasks may take to end.
const overdue = 3 * time.Second

// place names a subtask.
func place(r *Reading, vertex, subtask int) string {
	return fmt.Sprintf("subtask %d of %q", subtask, r.Plan.Vertices[vertex].Name)
}
