package gaps

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Report is what was found, to be written as text, JSON or HTML.
type Report struct {
	// Notes are what a reader should know before believing the numbers.
	Notes []string

	data      *Data
	options   ReplayOptions
	outcomes  []Outcome
	lateShare float64
	// best is the index of the recommended outcome, -1 if there is none; unfit says why the
	// data do not allow a recommendation, then.
	best  int
	unfit string
}

// NewReport puts together what Read and Replay have found. lateShare is the share of late
// records that is acceptable, 0 to 1.
func NewReport(d *Data, o ReplayOptions, outcomes []Outcome, lateShare float64) *Report {
	r := &Report{data: d, options: o, outcomes: outcomes, lateShare: lateShare, best: -1, unfit: unfit(d, o, outcomes)}
	if r.unfit == "" {
		r.best = Recommend(outcomes, lateShare)
	}
	r.Notes = r.notes()
	return r
}

// unfit says why nothing can be recommended from data, empty if something can.
func unfit(d *Data, o ReplayOptions, outcomes []Outcome) string {
	usable, far, stamped := int64(0), int64(0), false
	for _, p := range d.Partitions {
		usable += p.Records
		far += p.Far
		stamped = stamped || p.Records > 0 && p.LastAppend >= 0
	}
	ended := func(o Outcome) bool { return o.Wait.Count() > 0 || o.Held > 0 || o.Late > 0 }
	replayed := func(o Outcome) bool { return o.Records > 0 }
	switch {
	case d.Records == 0:
		return "there are no records"
	case usable == 0:
		return "no record has a usable event time"
	case !stamped:
		return "the records have no Kafka timestamps: when they were appended is not known"
	case far*100 > usable:
		return fmt.Sprintf("%d of %s are of more than 20 years before they were appended, or of a year after%s", far, count(usable, "event time"), d.inUnit())
	case !slices.ContainsFunc(outcomes, replayed):
		return "no record was appended before all partitions were read that far"
	case !slices.ContainsFunc(outcomes, ended):
		return fmt.Sprintf("no window of %s ended within the data", format(o.Window))
	}
	return ""
}

// Best returns the recommended outcome, nil if there is none.
func (r *Report) Best() *Outcome {
	if r.best < 0 {
		return nil
	}
	return &r.outcomes[r.best]
}

func (r *Report) notes() []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	d := r.data
	switch {
	case d.LogAppendTime || d.Records == 0:
	case d.Field == "":
		add("event time is Kafka's create time, and so are the append times: how long records were under way is not known; --timestamp-field reads event time from the payload")
	default:
		add("append times are Kafka's create times, that is the producers' clocks")
	}
	if unit := d.unitSuspicion(); unit != "" {
		add("event times are far from append times, as if they were in %s", unit)
	}
	var empty []int32
	for _, p := range d.Partitions {
		if p.Records == 0 && p.complete() {
			empty = append(empty, p.Number)
		}
		if p.Unreadable > 0 {
			add("partition %d: %s without a usable event time, left out; the first: %s", p.Number, count(p.Unreadable, "record"), p.UnreadableSample)
		}
		if p.Missing > 0 {
			add("partition %d: nothing came from its last %s, as if records were removed there", p.Number, count(p.Missing, "offset"))
		}
		if p.Future > time.Hour.Milliseconds() {
			add("partition %d has event times up to %s ahead of their append times: each pushes the watermark that far", p.Number, formatMillis(p.Future))
		}
	}
	if len(empty) > 0 && len(empty) < len(d.Partitions) {
		add("no records in partitions %v: without idleness they hold the watermark for ever", empty)
	}
	if best := r.Best(); best != nil && best.Held > 0 && len(best.HeldBy) > 0 {
		add("at the end of the data %d windows wait for partitions %v, even with the choice recommended", best.Held, best.HeldBy)
	}
	if slices.ContainsFunc(r.outcomes, func(o Outcome) bool { return o.Untracked > 0 }) {
		add("more than %d windows were open at once; the wait of the others is not in the numbers", openLimit)
	}
	return notes
}

// unitSuspicion names the unit that event times seem to have if they were read in a wrong
// one.
func (d *Data) unitSuspicion() string {
	for _, p := range d.Partitions {
		if p.Records == 0 || p.MaxEvent <= 0 {
			continue
		}
		for _, unit := range []struct {
			name   string
			millis float64
		}{{"seconds", 1e3}, {"microseconds", 1e-3}, {"nanoseconds", 1e-6}} {
			if distance := float64(p.MaxEvent)*unit.millis - float64(p.LastAppend); distance > -yearMillis && distance < yearMillis {
				return unit.name
			}
		}
	}
	return ""
}

// inUnit says which unit event times seem to be in, for the end of a sentence.
func (d *Data) inUnit() string {
	if unit := d.unitSuspicion(); unit != "" {
		return ", as if they were in " + unit + " (--unit)"
	}
	return ""
}

type jsonReport struct {
	Topic           string          `json:"topic"`
	TimestampField  string          `json:"timestamp_field,omitempty"`
	LogAppendTime   bool            `json:"log_append_time"`
	Records         int64           `json:"records"`
	Bytes           int64           `json:"bytes"`
	TookMillis      int64           `json:"took_ms"`
	Stopped         string          `json:"stopped,omitempty"`
	Notes           []string        `json:"notes"`
	WindowMillis    int64           `json:"window_ms"`
	IntervalMillis  int64           `json:"watermark_interval_ms"`
	Partitions      []jsonPartition `json:"partitions"`
	Outcomes        []jsonOutcome   `json:"outcomes"`
	Recommended     *jsonOutcome    `json:"recommended,omitempty"`
	NotRecommended  string          `json:"not_recommended,omitempty"`
	AcceptableShare float64         `json:"acceptable_late_share"`
}

type jsonPartition struct {
	Partition   int32     `json:"partition"`
	Records     int64     `json:"records"`
	Unreadable  int64     `json:"unreadable"`
	From        int64     `json:"first_offset"`
	Next        int64     `json:"next_offset"`
	End         int64     `json:"end_offset"`
	FirstAppend int64     `json:"first_append_ms"`
	LastAppend  int64     `json:"last_append_ms"`
	MaxEvent    int64     `json:"max_event_time_ms"`
	Gaps        Quantiles `json:"gaps"`
	EventGaps   Quantiles `json:"event_time_steps"`
	Disorder    Quantiles `json:"disorder"`
	Delay       Quantiles `json:"delay"`
}

type jsonOutcome struct {
	BoundMillis int64             `json:"bound_ms"`
	IdleMillis  int64             `json:"idleness_ms"`
	Records     int64             `json:"records"`
	Behind      int64             `json:"behind_watermark"`
	Late        int64             `json:"late"`
	LateShare   float64           `json:"late_share"`
	Wait        Quantiles         `json:"wait"`
	Held        int               `json:"held_windows"`
	HeldBy      []int32           `json:"held_by,omitempty"`
	Partitions  []jsonPartOutcome `json:"partitions"`
}

type jsonPartOutcome struct {
	Partition     int32 `json:"partition"`
	Behind        int64 `json:"behind_watermark"`
	Late          int64 `json:"late"`
	Idled         int64 `json:"idled"`
	Returned      int64 `json:"returned"`
	ReturnedLate  int64 `json:"returned_late"`
	LateAfterIdle int64 `json:"late_after_idle"`
}

// JSON writes the report for programs. Times are milliseconds since the epoch; idleness 0
// is none.
func (r *Report) JSON(w io.Writer) error {
	d := r.data
	out := jsonReport{
		Topic: d.Topic, TimestampField: d.Field, LogAppendTime: d.LogAppendTime, Records: d.Records, Bytes: d.Bytes,
		TookMillis: d.Took.Milliseconds(), Stopped: d.Stopped, Notes: append([]string{}, r.Notes...),
		WindowMillis: r.options.Window.Milliseconds(), IntervalMillis: r.options.Interval.Milliseconds(),
		NotRecommended: r.unfit, AcceptableShare: r.lateShare,
	}
	for _, p := range d.Partitions {
		out.Partitions = append(out.Partitions, jsonPartition{
			p.Number, p.Records, p.Unreadable, p.From, p.Next, p.End, p.FirstAppend, p.LastAppend, p.MaxEvent,
			p.Gaps.Quantiles(), p.EventGaps.Quantiles(), p.Disorder.Quantiles(), p.Delay.Quantiles(),
		})
	}
	for i := range r.outcomes {
		o := &r.outcomes[i]
		j := jsonOutcome{
			BoundMillis: o.Bound.Milliseconds(), IdleMillis: o.Idle.Milliseconds(), Records: o.Records, Behind: o.Behind,
			Late: o.Late, LateShare: o.LateShare(), Wait: o.Wait.Quantiles(), Held: o.Held, HeldBy: o.HeldBy,
		}
		for _, p := range o.Partitions {
			j.Partitions = append(j.Partitions, jsonPartOutcome(p))
		}
		out.Outcomes = append(out.Outcomes, j)
		if i == r.best {
			out.Recommended = &j
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
