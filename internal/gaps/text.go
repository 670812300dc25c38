package gaps

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// longestMillis is the longest time that a time.Duration can have, in milliseconds.
const longestMillis = math.MaxInt64 / int64(time.Millisecond)

// formatMillis writes a number of milliseconds as format does, and what is longer in years.
func formatMillis(m int64) string {
	if m > longestMillis {
		return fmt.Sprintf("%d years", m/yearMillis)
	}
	return format(time.Duration(m) * time.Millisecond)
}

// format writes a duration with at most two units, such as 2h5m.
func format(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + format(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	case d < time.Hour:
		d = d.Round(time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
	default:
		days := d.Round(time.Hour)
		text := fmt.Sprintf("%dd", days/(24*time.Hour))
		if hours := days % (24 * time.Hour) / time.Hour; hours > 0 {
			text += fmt.Sprintf("%dh", hours)
		}
		return text
	}
	text := strings.TrimSuffix(d.String(), "m0s")
	if text != d.String() {
		text += "m"
	}
	if cut := strings.TrimSuffix(text, "h0m"); cut != text {
		text = cut + "h"
	}
	return text
}

// percent writes a share so that what is not 0 does not look like it.
func percent(share float64) string {
	p := share * 100
	switch {
	case p == 0:
		return "0%"
	case p < 0.001:
		return "<0.001%"
	case p < 1:
		return strconv.FormatFloat(p, 'g', 2, 64) + "%"
	default:
		return strconv.FormatFloat(p, 'f', 1, 64) + "%"
	}
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// clock writes a time since the epoch in UTC.
func clock(t int64) string { return time.UnixMilli(t).UTC().Format("2006-01-02 15:04:05Z") }

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	wrap(&b, r.headline())
	for _, n := range r.Notes {
		wrap(&b, "note: "+n)
	}
	b.WriteString("\nGaps between records, by append time, and how far records are behind the largest\nevent time before them in their partition:\n\n")
	r.partitionTable(&b)
	if len(r.outcomes) > 0 && slices.ContainsFunc(r.outcomes, func(o Outcome) bool { return o.Records > 0 }) {
		fmt.Fprintf(&b, "\nWhat would have happened, with tumbling windows of %s, watermarks every %s:\n\n",
			format(r.options.Window), format(r.options.Interval))
		r.outcomeTable(&b)
		b.WriteString("\nlate: records whose window had fired. wait: from a window's end to its result.\n" +
			"idle: how often partitions went idle / came back / came back with a late record.\n" +
			"held: windows without a result at the end of the data.\n")
	}
	if r.unfit != "" {
		b.WriteByte('\n')
		wrap(&b, "Nothing is recommended: "+r.unfit+".")
	}
	if r.best >= 0 {
		o := &r.outcomes[r.best]
		b.WriteByte('\n')
		wrap(&b, fmt.Sprintf("Recommended: %s. %s", o.Choice, o.why(r.lateShare)))
		r.lateTable(&b, o)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// wrap writes text in lines of at most 80 characters, but for longer words.
func wrap(b *strings.Builder, text string) {
	const width = 80
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteString("\n")
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}

// headline says what was read.
func (r *Report) headline() string {
	d := r.data
	text := fmt.Sprintf("%s: %s of %s", d.Topic, count(d.Records, "record"), count(int64(len(d.Partitions)), "partition"))
	if from, to := d.start(), d.horizon(); from > 0 && to >= from {
		text += fmt.Sprintf(", appended %s to %s", clock(from), clock(to))
	}
	if d.Stopped != "" {
		text += "; not to the end: " + d.Stopped
	}
	return text
}

func (r *Report) partitionTable(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "partition\trecords\tgap p50\tp99\tmax\tbehind p50\tp99\tp99.9\tmax\tlast append\t")
	for _, p := range r.data.Partitions {
		if p.Records == 0 {
			fmt.Fprintf(t, "%d\t0\t-\t-\t-\t-\t-\t-\t-\t-\t\n", p.Number)
			continue
		}
		g, d := p.Gaps.Quantiles(), p.Disorder.Quantiles()
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", p.Number, p.Records,
			formatMillis(g.P50Millis), formatMillis(g.P99Millis), formatMillis(g.MaxMillis),
			formatMillis(d.P50Millis), formatMillis(d.P99Millis), formatMillis(d.P999), formatMillis(d.MaxMillis),
			time.UnixMilli(p.LastAppend).UTC().Format("15:04:05"))
	}
	_ = t.Flush() // a strings.Builder takes everything
}

func (r *Report) outcomeTable(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "bound\tidleness\tlate\tshare\twait p50\tp99\tmax\tidle\theld\t\t")
	for i := range r.outcomes {
		o := &r.outcomes[i]
		idle, episodes, mark := "none", "-", ""
		if o.Idle > 0 {
			total := o.total()
			idle, episodes = format(o.Idle), fmt.Sprintf("%d/%d/%d", total.Idled, total.Returned, total.ReturnedLate)
		}
		if i == r.best {
			mark = "<-"
		}
		wait := [3]string{"-", "-", "-"}
		if o.Wait.Count() > 0 {
			wait = [3]string{formatMillis(o.Wait.Quantile(0.5)), formatMillis(o.Wait.Quantile(0.99)), formatMillis(o.Wait.Max())}
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t\n",
			format(o.Bound), idle, o.Late, percent(o.LateShare()), wait[0], wait[1], wait[2], episodes, o.Held, mark)
	}
	_ = t.Flush()
}

// lateTable says which partitions the late records are from.
func (r *Report) lateTable(b *strings.Builder, o *Outcome) {
	for _, p := range o.Partitions {
		if p.Late == 0 {
			continue
		}
		fmt.Fprintf(b, "  partition %d: %d late", p.Partition, p.Late)
		if p.LateAfterIdle > 0 {
			fmt.Fprintf(b, ", %d of them after it had been idle", p.LateAfterIdle)
		}
		b.WriteByte('\n')
	}
}
