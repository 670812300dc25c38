package why

import (
	"fmt"
	"time"
)

// End is the end of a job.
type End struct {
	Job         string
	Started, At time.Time
	// How is what became of it, such as "was canceled".
	How string
	// Failure is what it failed with, if it did.
	Failure string
}

// Report says that the job has ended, and when: its event time does not stand still, there is
// none any more.
func (e *End) Report(now time.Time) Report {
	f := Finding{
		Code: JobEnded, Severity: Fine,
		Answer: fmt.Sprintf("Job %s %s at %s UTC, %s after it was started.",
			quoted(e.Job), e.How, e.At.UTC().Format(time.DateTime), duration(e.At.Sub(e.Started).Milliseconds())),
		Numbers: []Number{{"ran_ms", e.At.Sub(e.Started).Milliseconds()}},
	}
	if e.Failure != "" {
		f.Why = []string{e.Failure}
	}
	d := Diagnosis{Job: e.Job, AtMillis: now.UnixMilli(), Findings: []Finding{f}}
	return d.Report()
}
