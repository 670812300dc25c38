package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// reading is what a job's status says at one moment.
type reading struct {
	at time.Time
	// arrived is the number of records that the sources have read, windows that of
	// the windows that have fired.
	arrived, windows int64
	// settled says that no window is under way: those that have fired are complete.
	settled bool
	// late are the records that came after their windows had fired, dropped
	// those of them that no late output took.
	late, dropped int64
	lateSamples   []lowwater.LateSample
	// watermark is that of the windows.
	watermark int64
	inputs    []input
	// even says that the watermarks of all inputs that count are the same.
	even bool
	// silence is the time since the last window, or since the job started, and
	// arrivedInSilence the number of records that have arrived since.
	silence          time.Duration
	arrivedInSilence int64
}

// input is a split of a source, or a subtask of it that has no split.
type input struct {
	name    string
	topic   string
	subtask int
	state   string
	// records is the number read; next and end are offsets, -1 if unknown.
	records, next, end int64
	watermark          int64
	// still is how long the watermark has stood there.
	still time.Duration
	// idle inputs do not hold the watermark back.
	idle bool
	// holds says that no input that counts has a smaller watermark.
	holds bool
}

const noSplitState = "no split"

// history is what earlier readings of a job said.
type history struct {
	standing map[string]standing
	windows  int64
	// lastWindow is when the last window was seen, or when the job started;
	// arrived is how many records had arrived by then.
	lastWindow time.Time
	arrived    int64
}

// standing is a watermark and since when it stands there.
type standing struct {
	watermark int64
	since     time.Time
}

// reading reads the job's status. Call it often: times are as exact as that.
func (r *run) reading(now time.Time) reading {
	v := reading{at: now, watermark: eventtime.MaxTimestamp}
	for _, vertex := range r.job.Status().Vertices {
		for subtask, s := range vertex.Subtasks {
			for _, o := range s.Operators {
				switch {
				case slices.Contains(r.sources, o.Name):
					v.arrived += o.RecordsIn
					v.inputs = append(v.inputs, r.inputs(subtask, o)...)
				case o.Name == countOperator:
					v.late += o.LateRecords
					v.dropped += o.LateRecordsDropped
					v.lateSamples = append(v.lateSamples, o.LateSamples...)
					v.watermark = min(v.watermark, o.CurrentInputWatermark)
				}
			}
		}
	}
	v.markHolders()
	v.windows, v.settled = r.settle(now)
	r.history.extend(&v)
	r.last = v
	return v
}

// inputs returns what one subtask of a source reads.
func (r *run) inputs(subtask int, source lowwater.OperatorStatus) []input {
	if len(source.Splits) == 0 {
		return []input{{
			name: fmt.Sprintf("subtask %d", subtask), topic: source.Name, subtask: subtask, state: noSplitState, idle: source.Idle,
			next: -1, end: -1, watermark: source.CurrentOutputWatermark,
		}}
	}
	var list []input
	for _, s := range source.Splits {
		list = append(list, input{
			name: r.broker.split(s.ID), topic: source.Name, subtask: subtask, state: s.State.String(), idle: s.State == status.SplitIdle,
			records: s.Records, next: s.CurrentOffset, end: s.EndOffset, watermark: s.CurrentWatermark,
		})
	}
	return list
}

// markHolders sorts the inputs, splits first, and finds those that hold the
// smallest watermark. Idle ones do not count.
func (v *reading) markHolders() {
	slices.SortFunc(v.inputs, func(a, b input) int {
		if noSplit := a.state == noSplitState; noSplit != (b.state == noSplitState) {
			if noSplit {
				return 1
			}
			return -1
		}
		return strings.Compare(a.name, b.name)
	})
	lowest := eventtime.MaxTimestamp
	for _, in := range v.inputs {
		if !in.idle {
			lowest = min(lowest, in.watermark)
		}
	}
	v.even = true
	for i, in := range v.inputs {
		v.inputs[i].holds = !in.idle && in.watermark == lowest
		v.even = v.even && (v.inputs[i].holds || in.idle)
	}
}

// extend adds v to the history, and what the history knows to v.
func (h *history) extend(v *reading) {
	for i, in := range v.inputs {
		s, known := h.standing[in.name]
		if !known || s.watermark != in.watermark {
			s = standing{in.watermark, v.at}
			h.standing[in.name] = s
		}
		v.inputs[i].still = v.at.Sub(s.since)
	}
	if v.windows != h.windows {
		h.windows, h.lastWindow, h.arrived = v.windows, v.at, v.arrived
	}
	v.silence = v.at.Sub(h.lastWindow)
	v.arrivedInSilence = v.arrived - h.arrived
}

// holders returns the inputs that hold the minimum.
func (v *reading) holders() []input {
	return slices.DeleteFunc(slices.Clone(v.inputs), func(in input) bool { return !in.holds })
}

// namesOf lists splits, and subtasks without one.
func namesOf(inputs []input) string {
	var names []string
	var surplus []int
	for _, in := range inputs {
		if in.state == noSplitState {
			surplus = append(surplus, in.subtask)
		} else {
			names = append(names, in.name)
		}
	}
	if len(surplus) > 0 {
		names = append(names, "subtasks "+ranges(surplus))
	}
	return strings.Join(names, ", ")
}

// ranges writes ascending numbers as "0-3, 7".
func ranges(numbers []int) string {
	var parts []string
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n] == numbers[0]+n {
			n++
		}
		part := fmt.Sprint(numbers[0])
		if n > 1 {
			part = fmt.Sprintf("%d-%d", numbers[0], numbers[n-1])
		}
		parts = append(parts, part)
		numbers = numbers[n:]
	}
	return strings.Join(parts, ", ")
}

// input returns the input of that name.
func (v *reading) input(name string) input {
	for _, in := range v.inputs {
		if in.name == name {
			return in
		}
	}
	return input{name: name, state: "unknown", watermark: eventtime.MinTimestamp}
}

const tableHead = "    input      state     watermark     unchanged  offset/end  rec/s"

// headline says in one line how the job is at some time of an act.
func (v *reading) headline(elapsed time.Duration) string {
	return fmt.Sprintf("  %s: %d records, %s fired, watermark at the windows %s",
		seconds(elapsed), v.arrived, windows(v.windows), clock(v.watermark))
}

// rows formats the inputs as a table. Rates are since the reading before.
func (v *reading) rows(before *reading) []string {
	var rows []string
	splits := v.inputs
	for len(splits) > 0 && splits[len(splits)-1].state == noSplitState {
		splits = splits[:len(splits)-1]
	}
	for _, in := range splits {
		rate := float64(in.records-before.input(in.name).records) / cmp.Or(v.at.Sub(before.at).Seconds(), 1)
		rows = append(rows, fmt.Sprintf("    %-9s  %-8s  %-12s  %9s  %10s  %5.0f",
			in.name, in.state, clock(in.watermark), seconds(in.still), in.offsets(), rate)+v.mark(in))
	}
	return append(rows, v.surplusRows(v.inputs[len(splits):])...)
}

// surplusRows formats the subtasks without a split, in one row or two: those that
// are idle, and those that are not yet.
func (v *reading) surplusRows(inputs []input) []string {
	var rows []string
	for _, idle := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(inputs), func(in input) bool { return in.idle != idle })
		if len(some) == 0 {
			continue
		}
		state := "active"
		if idle {
			state = "idle"
		}
		rows = append(rows, fmt.Sprintf("    %s: no split, %s, watermark %s", namesOf(some), state, clock(some[0].watermark))+v.mark(some[0]))
	}
	return rows
}

// mark is the end of the row of an input.
func (v *reading) mark(in input) string {
	if in.holds && !v.even {
		return "  <- minimum"
	}
	return ""
}

// offsets writes how far an input is read, and its end.
func (in *input) offsets() string {
	switch {
	case in.next < 0:
		return "-"
	case in.end < 0:
		return fmt.Sprintf("%d/?", in.next)
	default:
		return fmt.Sprintf("%d/%d", in.next, in.end)
	}
}
