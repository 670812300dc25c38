package observe

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/status"
)

// failing is a job whose only use is to have failed.
type failing struct {
	Job
	at time.Time
}

func (f failing) Failures() []status.Failure {
	return []status.Failure{{At: f.at, Err: errors.New("boom"), Vertex: -1}}
}

// TestOftenRestarted: a job that fails every so often is one that fails again and again until
// it has run for long enough; one that fails now and then is not.
func TestOftenRestarted(t *testing.T) {
	began := time.UnixMilli(1_800_000_000_000)
	for _, test := range []struct {
		every     time.Duration // between failures
		failures  int
		again     bool          // right after the last
		calmAfter time.Duration // after the last
		gone      time.Duration // after which nothing is said
	}{
		{10 * time.Minute, 5, false, 0, 11 * time.Minute},
		{3 * time.Minute, 6, true, 6 * time.Minute, 11 * time.Minute},
		{2 * time.Second, 300, true, 61 * time.Second, 11 * time.Minute},
		{time.Second, 1, false, 0, 11 * time.Minute},
	} {
		t.Run(fmt.Sprint(test.failures, " every ", test.every), func(t *testing.T) {
			o := &Observed{}
			at, last := began, began
			see := func(d time.Duration, n int64) (again, ok bool) {
				for end := at.Add(d); at.Before(end); at = at.Add(time.Second) {
					o.restarts.add(at, n)
				}
				r := &Reading{At: at, Status: status.Job{Restarts: n, Life: status.Life{State: status.Running, Since: map[status.State]time.Time{status.Running: last}}}}
				o.Job = failing{at: last}
				_, again, ok = o.outage(r)
				return again, ok
			}
			for n := range test.failures {
				see(test.every, int64(n))
				last = at
			}
			all := int64(test.failures)
			if again, ok := see(time.Second, all); again != test.again || !ok {
				t.Errorf("right after: again %t, told %t, want %t and told", again, ok, test.again)
			}
			if again, ok := see(test.calmAfter, all); again || !ok {
				t.Errorf("after %v: again %t, told %t", test.calmAfter, again, ok)
			}
			if _, ok := see(test.gone, all); ok {
				t.Errorf("after %v it is still told", test.gone)
			}
			if n := len(o.restarts.seen); n != 0 {
				t.Errorf("%d restarts are kept", n)
			}
		})
	}
}

// TestFailuresComeFirst: a job that fails again and again is not well, whatever its event time
// says; one that has failed once is told of behind that.
func TestFailuresComeFirst(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000)
	out := why.Outage{Job: "j", State: "RUNNING", Since: at, Restarts: 5, Recent: 5, Span: recently, Failure: "boom"}
	for _, test := range []struct {
		again bool
		ran   time.Duration
		found why.Code
		want  []why.Code
	}{
		{true, time.Second, why.None, []why.Code{why.JobRestarts}},
		{true, time.Second, why.QuietPartition, []why.Code{why.JobRestarts, why.QuietPartition}},
		{false, time.Second, why.None, []why.Code{why.JobRestarts, why.None}},
		{false, time.Second, why.QuietPartition, []why.Code{why.QuietPartition, why.JobRestarts}},
		{false, time.Minute, why.None, []why.Code{why.None, why.JobRestarts}},
	} {
		d := &why.Diagnosis{AtMillis: at.Add(test.ran).UnixMilli(), Findings: []why.Finding{{Code: test.found}}}
		out.AddTo(d, test.again)
		var got []why.Code
		for i := range d.Findings {
			got = append(got, d.Findings[i].Code)
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s, again %t: %v, want %v", test.found, test.again, got, test.want)
		}
	}
}
