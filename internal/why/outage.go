package why

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outage is a job that has failed, and is started again, or that is to end and has not yet.
type Outage struct {
	Job string
	// State is the job's, such as RESTARTING; Since is when it came to be so.
	State string
	Since time.Time
	// Restarts is how often it was started again, Recent how often within the last Span.
	Restarts, Recent int64
	Span             time.Duration
	// Failure is the last failure, at FailedAt; empty if there was none. Place is the subtask
	// that failed, empty if it was the job.
	Failure, Place string
	FailedAt       time.Time
	// Waits are the subtasks that it waits for, because they do not end.
	Waits []string
}

// mostFailure bounds, in runes, what a sentence shows of a failure.
const mostFailure = 300

// Report says that the job does not run, and why. Nothing is said of its event time: the
// numbers are those of an attempt that is over.
func (o *Outage) Report(now time.Time) Report {
	f := o.finding(JobNotRunning, Stall)
	if o.State == "CANCELLING" {
		f.Severity = Fine
		f.Answer = fmt.Sprintf("Job %s is %s since %s.", quoted(o.Job), o.State, clock(o.Since.UnixMilli()))
	} else {
		f.Answer = fmt.Sprintf("Job %s is %s%s: %s", quoted(o.Job), o.State, o.after(), o.failure())
	}
	if len(o.Waits) > 0 {
		f.Answer += " It waits for user code that does not return, of " + list(o.Waits) + ": it has to end when its context does."
	}
	d := Diagnosis{Job: o.Job, AtMillis: now.UnixMilli(), Findings: []Finding{f}}
	return d.Report()
}

// freshMillis is how long a restart is more to the point than that nothing holds event time back.
const freshMillis = 60_000

// AddTo puts into the diagnosis of a job that runs again that it has failed: first if it does
// so again and again, or has just done so and nothing else is wrong; else last.
func (o *Outage) AddTo(d *Diagnosis, again bool) {
	if !again {
		f := o.finding(JobRestarts, Fine)
		f.Answer = fmt.Sprintf("Job %s runs again since %s%s: %s", quoted(o.Job), clock(o.Since.UnixMilli()), o.after(), o.failure())
		at := len(d.Findings)
		if at > 0 && d.Answer().Code == None && d.AtMillis-o.Since.UnixMilli() < freshMillis {
			at = 0
		}
		d.Findings = slices.Insert(d.Findings, at, f)
		return
	}
	f := o.finding(JobRestarts, Stall)
	f.Answer = fmt.Sprintf("Job %s fails again and again: %s, %d of them in the last %s. Last: %s",
		quoted(o.Job), count(o.Restarts, "restart"), o.Recent, duration(o.Span.Milliseconds()), o.failure())
	f.Why = append(f.Why, fmt.Sprintf("It runs since %s. Each start begins with the event time of the last checkpoint, or with none, so what is said of its event time holds for this attempt.",
		clock(o.Since.UnixMilli())))
	d.Findings = slices.DeleteFunc(d.Findings, func(f Finding) bool { return f.Code == None || f.Code == NotEnoughEvidence })
	d.Findings = slices.Insert(d.Findings, 0, f)
}

func (o *Outage) finding(code Code, severity Severity) Finding {
	f := Finding{Code: code, Severity: severity, Numbers: []Number{{"restarts", o.Restarts}, {"recent_restarts", o.Recent}}}
	if o.Failure != "" {
		f.Why = []string{"It failed last at " + o.FailedAt.UTC().Format(time.DateTime) + " UTC, " + o.place() + "."}
	}
	return f
}

func (o *Outage) place() string {
	if o.Place == "" {
		return "not in an operator"
	}
	return "in " + o.Place
}

// after says how often it was started again.
func (o *Outage) after() string {
	if o.Restarts == 0 {
		return ""
	}
	return " after " + count(o.Restarts, "restart")
}

// failure is the first line of the last failure.
func (o *Outage) failure() string {
	line, _, _ := strings.Cut(o.Failure, "\n")
	if runes := []rune(line); len(runes) > mostFailure {
		line = string(runes[:mostFailure]) + "…"
	}
	return line
}
