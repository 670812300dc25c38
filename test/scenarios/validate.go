package scenarios

import (
	"errors"
	"fmt"
	"slices"
)

// validator collects what is wrong with a scenario beyond its syntax.
type validator struct {
	scenario *Scenario
	errs     []error
	topics   map[string]*Topic
	// streams are the sources and operators so far; windows are those of them
	// whose output cannot be an input.
	streams map[string]bool
	windows map[string]bool
}

func (s *Scenario) validate() error {
	v := &validator{scenario: s, topics: map[string]*Topic{}, streams: map[string]bool{}, windows: map[string]bool{}}
	v.check(s.Format == Format, "format %q: want %q", s.Format, Format)
	v.check(s.Name != "", "no name")
	v.check(s.DurationMillis > 0, "duration_ms %d: must be positive", s.DurationMillis)
	switch s.Mode {
	case Replay:
		v.check(s.WatermarkIntervalMillis > 0, "watermark_interval_ms %d: must be positive", s.WatermarkIntervalMillis)
		v.check(s.Expected.Results != nil, "no results")
		v.check(s.Expected.AfterFix == nil || s.Expected.AfterFix.Results != nil, "no results after the fix")
	case Evidence:
	default:
		v.check(false, "mode %q: want %q or %q", s.Mode, Replay, Evidence)
	}
	for i := range s.Topics {
		v.topic(&s.Topics[i])
	}
	for i := range s.Job.Sources {
		v.source(&s.Job.Sources[i])
	}
	for i := range s.Job.Operators {
		v.operator(&s.Job.Operators[i])
	}
	for i := range s.Snapshots {
		v.snapshot(&s.Snapshots[i])
	}
	return errors.Join(v.errs...)
}

func (v *validator) check(ok bool, format string, args ...any) {
	if !ok {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *validator) topic(t *Topic) {
	v.check(v.topics[t.Name] == nil, "topic %q is there twice", t.Name)
	v.check(t.Partitions > 0, "topic %q: %d partitions", t.Name, t.Partitions)
	v.topics[t.Name] = t
	exists := func(p int32) bool { return p >= 0 && p < t.Partitions }
	for i, s := range t.Series {
		v.check(exists(s.Partition), "topic %q: series %d: no partition %d", t.Name, i, s.Partition)
		v.check((s.ReadFromMillis == nil) == (s.ReadEveryMillis == nil), "topic %q: series %d: read_from and read_every go together", t.Name, i)
		if s.EveryMillis <= 0 {
			v.check(false, "topic %q: series %d: every %d: must be positive", t.Name, i, s.EveryMillis)
			return // it has no end
		}
	}
	for i := range t.Rows {
		r, err := t.row(i, v.scenario.WallStartMillis)
		v.check(err == nil, "topic %q: row %d: %v", t.Name, i, err)
		v.check(exists(r.Partition), "topic %q: row %d: no partition %d", t.Name, i, r.Partition)
	}
}

func (v *validator) source(s *Source) {
	v.add(s.ID)
	v.check(s.Parallelism > 0, "source %q: parallelism %d", s.ID, s.Parallelism)
	v.strategy(s.ID, s.Strategy)
	if a := s.Alignment; a != nil {
		v.check(a.Group != "" && a.DriftMillis >= 0 && a.UpdateMillis > 0, "source %q: alignment %+v", s.ID, *a)
		v.check(s.Strategy != nil, "source %q: alignment without a strategy", s.ID)
	}
	topic := v.topics[s.Topic]
	if topic == nil {
		v.check(false, "source %q: unknown topic %q", s.ID, s.Topic)
		return
	}
	if s.Assignment != nil {
		assigned := slices.Concat(s.Assignment...)
		slices.Sort(assigned)
		complete := len(assigned) == int(topic.Partitions)
		for i, p := range assigned {
			complete = complete && int(p) == i
		}
		v.check(complete && len(s.Assignment) == s.Parallelism, "source %q: assignment %v: want each of %d partitions once, for %d subtasks",
			s.ID, s.Assignment, topic.Partitions, s.Parallelism)
	}
}

func (v *validator) add(id string) {
	v.check(id != "", "an operator or source without an id")
	v.check(!v.streams[id], "%q is there twice", id)
	v.streams[id] = true
}

func (v *validator) strategy(of string, s *Strategy) {
	if s == nil {
		return
	}
	v.check(slices.Contains([]string{Bounded, Monotonous, WallClock}, s.Kind), "%q: unknown strategy %q", of, s.Kind)
	v.check(slices.Contains([]string{"", FromPayload, FromKafka}, s.Timestamp), "%q: unknown timestamp %q", of, s.Timestamp)
	v.check(s.DelayMillis >= 0 && s.IdlenessMillis >= 0, "%q: negative times in strategy %+v", of, *s)
}

func (v *validator) operator(o *Operator) {
	for _, in := range o.Inputs {
		for _, id := range in {
			v.check(v.streams[id], "operator %q: unknown input %q", o.ID, id)
			v.check(!v.windows[id], "operator %q: input %q is a window, whose results go nowhere else", o.ID, id)
		}
	}
	inputs := 1
	if o.Kind == Connect {
		inputs = 2
	}
	v.check(len(o.Inputs) == inputs || o.Kind == Custom, "operator %q: %d inputs: a %s has %d", o.ID, len(o.Inputs), o.Kind, inputs)
	v.check(o.Parallelism >= 0, "operator %q: parallelism %d", o.ID, o.Parallelism)
	v.add(o.ID)
	switch o.Kind {
	case Window:
		v.windows[o.ID] = true
		v.window(o)
	case Assign:
		v.assign(o)
	case Connect:
		for _, input := range o.Broadcast {
			v.check(input >= 0 && input < inputs, "operator %q: broadcast: no input %d", o.ID, input)
		}
	case Filter, Forward:
	case Custom:
		v.check(v.scenario.Mode == Evidence, "operator %q: a custom operator cannot be replayed", o.ID)
	default:
		v.check(false, "operator %q: unknown kind %q", o.ID, o.Kind)
	}
}

func (v *validator) window(o *Operator) {
	var lengths []int64
	switch o.Type {
	case Tumbling:
		lengths = []int64{o.SizeMillis}
	case Sliding:
		lengths = []int64{o.SizeMillis, o.SlideMillis}
	case Session:
		lengths = []int64{o.GapMillis}
	default:
		v.check(false, "window %q: unknown type %q", o.ID, o.Type)
	}
	for _, length := range lengths {
		v.check(length > 0, "window %q: a length of %d", o.ID, length)
	}
	v.check(o.AllowedLatenessMillis >= 0, "window %q: allowed_lateness_ms %d", o.ID, o.AllowedLatenessMillis)
}

func (v *validator) assign(o *Operator) {
	v.strategy(o.ID, o.Strategy)
	switch o.Partitioning {
	case "", "forward":
		v.check(len(o.Routing) == 0, "operator %q: routing without partitioning by hash", o.ID)
	case "hash":
		v.check(len(o.Routing) > 0, "operator %q: no routing: the hash of the scenario's engine is unknown", o.ID)
		for key, subtask := range o.Routing {
			v.check(subtask >= 0, "operator %q: routing: key %q to subtask %d", o.ID, key, subtask)
		}
	default:
		v.check(false, "operator %q: unknown partitioning %q", o.ID, o.Partitioning)
	}
}

func (v *validator) snapshot(s *Snapshot) {
	for id := range s.Sources {
		v.check(v.streams[id], "snapshot at %d: unknown source %q", s.AtMillis, id)
	}
	for id := range s.Operators {
		v.check(v.streams[id], "snapshot at %d: unknown operator %q", s.AtMillis, id)
	}
	for topic := range s.Kafka {
		v.check(v.topics[topic] != nil, "snapshot at %d: unknown topic %q", s.AtMillis, topic)
	}
}
