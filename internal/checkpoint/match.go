package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Matching is how the operators of a checkpoint and those of a job fit together.
type Matching struct {
	// Missing are in the checkpoint, with state, and not in the job: restoring loses
	// that state.
	Missing []Operator
	// New are in the job and not in the checkpoint: they begin empty.
	New []OperatorInfo
	// OtherJob is the name of the job that took the checkpoint if nothing says that it is the
	// same one: it has another name, and no uid that an author gave is in both.
	OtherJob string
}

// Match compares the checkpoint with the operators of the job that is to be restored,
// one each. It is an error if state would be lost, unless allowNonRestoredState, or if an
// operator has another max parallelism than its state was written with.
func (c *Checkpoint) Match(job string, operators []OperatorInfo, allowNonRestoredState bool) (Matching, error) {
	var m Matching
	var errs []error
	if c.manifest.Job != job && !slices.ContainsFunc(c.manifest.Operators, func(stored Operator) bool {
		return stored.UID != "" && slices.ContainsFunc(operators, func(o OperatorInfo) bool { return o.UID == stored.UID })
	}) {
		m.OtherJob = c.manifest.Job
	}
	for _, stored := range c.manifest.Operators {
		hasState := stored.Size > 0 || stored.Enumerator != nil
		i := slices.IndexFunc(operators, func(o OperatorInfo) bool { return o.ID == stored.ID })
		switch {
		case !hasState:
		case i < 0:
			m.Missing = append(m.Missing, stored)
		case operators[i].MaxParallelism != stored.MaxParallelism:
			errs = append(errs, fmt.Errorf("%v has the max parallelism %d and was stored with %d, which decides where its keys are: "+
				"set the max parallelism %d, or give it another uid to begin without its state",
				operators[i], operators[i].MaxParallelism, stored.MaxParallelism, stored.MaxParallelism))
		}
	}
	for _, o := range operators {
		if !slices.ContainsFunc(c.manifest.Operators, func(s Operator) bool { return s.ID == o.ID }) {
			m.New = append(m.New, o)
		}
	}
	if len(m.Missing) > 0 && !allowNonRestoredState {
		errs = append(errs, m.lost())
	}
	if len(errs) == 0 {
		return m, nil
	}
	of := ""
	if c.manifest.Job != job {
		of = fmt.Sprintf(" is of job %q, this is job %q, and it", c.manifest.Job, job)
	}
	return m, fmt.Errorf("checkpoint: %s%s does not fit the job: %w", c.Path(), of, errors.Join(errs...))
}

// lost says which state the job has no operator for, and what may have become of it.
func (m Matching) lost() error {
	var text strings.Builder
	text.WriteString("it has state that no operator of the job takes: ")
	for i, op := range m.Missing {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%v with %d bytes", op, op.Size+int64(len(op.Enumerator)))
	}
	if len(m.New) > 0 {
		text.WriteString("; the job has operators that the checkpoint does not: ")
		for i, op := range m.New {
			if i > 0 {
				text.WriteString(", ")
			}
			fmt.Fprint(&text, op)
		}
		text.WriteString("; if they are the same, give them the uid that is stored")
	}
	text.WriteString("; to give that state up, allow it with AllowNonRestoredState")
	return errors.New(text.String())
}
