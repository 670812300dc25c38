package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lowwater/lowwater/internal/why"
)

// writeDetails prints what the last look saw, as tables.
func writeDetails(w io.Writer, e *why.Evidence) error {
	var b strings.Builder
	now := &e.History[len(e.History)-1]
	fmt.Fprintf(&b, "\nseen at %s\n\n", instant(now.AtMillis))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "operator\tsubtask\tkind\tinput watermark\toutput watermark\tin\tout\tlate")
	kinds := map[string]why.OperatorKind{}
	for _, o := range e.Operators {
		kinds[o.ID] = o.Kind
	}
	for _, s := range now.Subtasks {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Operator, s.Index, kinds[s.Operator],
			knownInstant(s.InputWatermark), knownInstant(s.OutputWatermark), known(s.RecordsIn), known(s.RecordsOut), known(s.LateDropped))
	}
	_ = t.Flush() // a strings.Builder takes everything
	if len(now.Splits) > 0 {
		b.WriteByte('\n')
		fmt.Fprintln(t, "partition\tsubtask\tstate\twatermark\tnext\tend\tlast append")
	}
	for _, s := range now.Splits {
		subtask, state := "?", "?"
		switch {
		case s.Unassigned:
			subtask, state = "none", "-"
		case s.Subtask.OK:
			subtask = fmt.Sprint(s.Subtask.Value)
		}
		if s.State.OK {
			state = string(s.State.Value)
		}
		fmt.Fprintf(t, "%s-%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Topic, s.Partition, subtask, state,
			knownInstant(s.Watermark), known(s.PositionOffset), known(s.EndOffset), knownInstant(s.LastAppendMillis))
	}
	_ = t.Flush()
	return writePlain(w, b.String())
}

func known(k why.Known[int64]) string {
	if !k.OK {
		return "?"
	}
	return fmt.Sprint(k.Value)
}

func knownInstant(k why.Known[int64]) string {
	if !k.OK {
		return "?"
	}
	return instant(k.Value)
}

func instant(millis int64) string {
	switch millis {
	case why.MinTime:
		return "none"
	case why.MaxTime:
		return "end"
	}
	return time.UnixMilli(millis).UTC().Format("2006-01-02 15:04:05.000")
}
