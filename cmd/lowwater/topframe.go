package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/flink"
)

// frame is one view of a job, ready to be laid out.
type frame struct {
	title    string
	answer   string
	alarm    bool
	path     string
	failure  string // why the last look failed
	vertices [][]string
	held     []bool // by vertex
	states   [][]string
	splits   [][]string
	holds    []bool // by split
}

// newFrame says what evidence means.
func newFrame(e *why.Evidence, d *why.Diagnosis, s *stood, url string) *frame {
	now := &e.History[len(e.History)-1]
	f := &frame{title: title(e, url), answer: d.Answer().Answer, alarm: d.Answer().Severity != why.Fine}
	hold, ok := why.Hold(e, waits(e))
	onPath := map[string]bool{}
	if ok {
		f.path = pathText(e, hold)
		onPath[hold.Operator] = true
		for _, l := range hold.Links {
			onPath[l.Operator] = true
		}
	}
	for _, chain := range chains(e) {
		f.vertices = append(f.vertices, vertexRow(e, chain))
		f.held = append(f.held, f.alarm && slices.ContainsFunc(chain, func(o *why.Operator) bool { return onPath[o.ID] }))
	}
	f.states = stateRows(e)
	isHolder := func(sp *why.Split) bool {
		return ok && f.alarm && slices.ContainsFunc(hold.Splits, func(r why.SplitRef) bool { return r.ID == sp.ID && r.Topic == sp.Topic && r.Partition == sp.Partition })
	}
	splits := slices.Clone(now.Splits)
	slices.SortStableFunc(splits, func(a, b why.Split) int {
		if x, y := isHolder(&a), isHolder(&b); x != y {
			return cmp.Compare(btoi(y), btoi(x))
		}
		return cmp.Compare(a.Watermark.Or(why.MaxTime), b.Watermark.Or(why.MaxTime))
	})
	for i := range splits {
		f.splits = append(f.splits, splitRow(&splits[i], e.AtMillis, s, isHolder(&splits[i])))
		f.holds = append(f.holds, isHolder(&splits[i]))
	}
	return f
}

// waits is the operator whose watermark is followed back: empty for the slowest of those
// known to wait for event time. A plan that names no window still tells that an operator
// counts late records; else the last operator stands for all, if there is one.
func waits(e *why.Evidence) string {
	if _, ok := why.Hold(e, ""); ok {
		return ""
	}
	for _, s := range e.History[len(e.History)-1].Subtasks {
		if s.LateDropped.OK {
			return s.Operator
		}
	}
	if n := len(e.Operators); n > 0 {
		return e.Operators[n-1].ID
	}
	return ""
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func title(e *why.Evidence, url string) string {
	parts := []string{e.Job}
	if e.StartedMillis.OK {
		parts = append(parts, "running for "+span(e.AtMillis-e.StartedMillis.Value))
	}
	if e.Restarts.Or(0) > 0 {
		parts = append(parts, fmt.Sprintf("%d restarts", e.Restarts.Value))
	}
	return strings.Join(append(parts, topClock(e.AtMillis, e.AtMillis)+" UTC", url), " · ")
}

// pathText is where the smallest watermark comes from, from the splits to who waits.
func pathText(e *why.Evidence, p why.Path) string {
	if p.AllIdle {
		return fmt.Sprintf("all inputs of %s are idle", nameOf(e, p.Operator))
	}
	steps := []string{nameOf(e, p.Operator)}
	for _, l := range p.Links {
		step := nameOf(e, l.Operator)
		if l.Subtask != why.WholeOperator {
			step = fmt.Sprintf("%s[%d]", step, l.Subtask)
		}
		steps = append(steps, step)
	}
	if len(p.Splits) > 0 {
		const most = 3
		var names []string
		for _, s := range p.Splits[:min(len(p.Splits), most)] {
			names = append(names, fmt.Sprintf("%s-%d", s.Topic, s.Partition))
		}
		if n := len(p.Splits) - most; n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		sep := ", "
		if !p.Exact {
			sep = " or "
		}
		steps = append(steps, strings.Join(names, sep))
	}
	slices.Reverse(steps)
	watermark := "no watermark"
	if p.WatermarkMillis.OK {
		watermark = topClock(p.WatermarkMillis.Value, e.AtMillis)
		if isTime(p.WatermarkMillis.Value) {
			watermark += ", " + span(behindMillis(p.WatermarkMillis.Value, e.AtMillis)) + " behind"
		}
	}
	return fmt.Sprintf("smallest watermark %s: %s", watermark, strings.Join(steps, " > "))
}

func nameOf(e *why.Evidence, id string) string {
	for i := range e.Operators {
		if e.Operators[i].ID == id {
			return e.Operators[i].Name
		}
	}
	return id
}

// chains are the operators by vertex, in the order of the data.
func chains(e *why.Evidence) [][]*why.Operator {
	var out [][]*why.Operator
	place := map[string]int{}
	for i := range e.Operators {
		o := &e.Operators[i]
		vertex := cmp.Or(o.Vertex, o.ID)
		at, ok := place[vertex]
		if !ok {
			at = len(out)
			place[vertex] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], o)
	}
	return out
}

var vertexHead = []string{"VERTEX", "PAR", "LOW WATERMARK", "BEHIND", "BUSY", "BLOCKED", "IN/S", "OUT/S", "LATE"}

func vertexRow(e *why.Evidence, chain []*why.Operator) []string {
	now := &e.History[len(e.History)-1]
	head, tail := chain[0], chain[len(chain)-1]
	var names []string
	for _, o := range chain {
		names = append(names, o.Name)
	}
	late := why.Known[int64]{}
	for _, s := range now.Subtasks {
		if s.LateDropped.OK && slices.ContainsFunc(chain, func(o *why.Operator) bool { return o.ID == s.Operator }) {
			late = why.Know(late.Or(0) + s.LateDropped.Value)
		}
	}
	low := lowest(now, head.ID, func(s *why.Subtask) why.Known[int64] { return s.InputWatermark })
	if head.Kind == why.KindSource {
		// Watermarks may be made behind the source, and a sink may pass none on.
		for _, o := range chain {
			low = larger(low, lowest(now, o.ID, func(s *why.Subtask) why.Known[int64] { return s.OutputWatermark }))
		}
	}
	busy, blocked := why.Known[int64]{}, why.Known[int64]{}
	for _, t := range now.Tasks {
		if t.Vertex == cmp.Or(head.Vertex, head.ID) {
			busy = larger(busy, t.BusyMillis)
			blocked = larger(blocked, t.BackPressuredMillis)
		}
	}
	in := rate(e, head.ID, func(s *why.Subtask) why.Known[int64] { return s.RecordsIn })
	if head.Kind == why.KindSource {
		in = rate(e, head.ID, func(s *why.Subtask) why.Known[int64] { return s.RecordsOut })
	}
	out := rate(e, tail.ID, func(s *why.Subtask) why.Known[int64] { return s.RecordsOut })
	return []string{strings.Join(names, " > "), fmt.Sprint(head.Parallelism), topMark(low, e.AtMillis), behind(low, e.AtMillis),
		bar(busy), bar(blocked), in, out, counted(late)}
}

// counted is a counter that not everything has.
func counted(k why.Known[int64]) string {
	if !k.OK {
		return ""
	}
	return fmt.Sprint(k.Value)
}

// lowest is the smallest watermark of an operator's subtasks that are not idle.
func lowest(at *why.Snapshot, operator string, of func(*why.Subtask) why.Known[int64]) why.Known[int64] {
	low := why.Known[int64]{}
	for i := range at.Subtasks {
		s := &at.Subtasks[i]
		if w := of(s); s.Operator == operator && !s.Idle.Or(false) && w.OK && (!low.OK || w.Value < low.Value) {
			low = w
		}
	}
	return low
}

func larger(a, b why.Known[int64]) why.Known[int64] {
	if !b.OK || a.OK && a.Value >= b.Value {
		return a
	}
	return b
}

// rate is a counter's growth per second, summed over subtasks, since the oldest look. A
// counter that fell belongs to a restarted job and tells nothing.
func rate(e *why.Evidence, operator string, of func(*why.Subtask) why.Known[int64]) string {
	sum := func(s *why.Snapshot) why.Known[int64] {
		total := why.Known[int64]{}
		for i := range s.Subtasks {
			if n := of(&s.Subtasks[i]); s.Subtasks[i].Operator == operator && n.OK {
				total = why.Know(total.Or(0) + n.Value)
			}
		}
		return total
	}
	// Twenty seconds are long enough for metrics that are fetched every ten.
	const base = 20_000
	last := &e.History[len(e.History)-1]
	first := last
	for i := len(e.History) - 2; i >= 0 && last.AtMillis-first.AtMillis < base; i-- {
		first = &e.History[i]
	}
	from, to := sum(first), sum(last)
	millis := last.AtMillis - first.AtMillis
	if !from.OK || !to.OK || millis <= 0 || to.Value < from.Value {
		return "?"
	}
	perSecond := float64(to.Value-from.Value) * 1000 / float64(millis)
	if perSecond < 10 && perSecond > 0 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// bar draws milliseconds per second.
func bar(k why.Known[int64]) string {
	const width = 6
	if !k.OK {
		return "?"
	}
	share := min(max(k.Value, 0), 1000)
	full := int((share*width + 500) / 1000)
	return fmt.Sprintf("%s%s %3d%%", strings.Repeat("█", full), strings.Repeat("░", width-full), (share+5)/10)
}

// A star marks the splits that hold the smallest watermark.
var splitHead = []string{"  SPLIT", "SUBTASK", "STATE", "WATERMARK", "BEHIND", "UNCHANGED", "NEXT", "LAG"}

func splitRow(sp *why.Split, now int64, s *stood, holds bool) []string {
	name := fmt.Sprintf("  %s-%d", sp.Topic, sp.Partition)
	if holds {
		name = "*" + name[1:]
	}
	subtask, state := "?", "?"
	switch {
	case sp.Unassigned:
		subtask, state = "none", "-"
	case sp.Subtask.OK:
		subtask = fmt.Sprint(sp.Subtask.Value)
	}
	if sp.State.OK {
		state = string(sp.State.Value)
	}
	return []string{name, subtask, state, topMark(sp.Watermark, now), behind(sp.Watermark, now), s.since(sp, now), known(sp.PositionOffset), known(sp.Lag)}
}

// stood remembers since when the watermarks of splits are what they are.
type stood struct {
	splits map[splitID]still
}

type splitID struct {
	source, topic string
	partition     int32
}

type still struct {
	watermark int64
	millis    int64
	// first says that it was so at the first look, and may have been so for longer.
	first bool
}

func (s *stood) note(e *why.Evidence) {
	first := s.splits == nil
	if first {
		s.splits = map[splitID]still{}
	}
	for _, sp := range e.History[len(e.History)-1].Splits {
		id := splitID{sp.Source, sp.Topic, sp.Partition}
		if is, ok := s.splits[id]; sp.Watermark.OK && (!ok || is.watermark != sp.Watermark.Value) {
			s.splits[id] = still{sp.Watermark.Value, e.AtMillis, first}
		}
	}
}

// serverMemory is how far back a server of ours remembers watermarks, less what it may round.
const serverMemory = 59 * 60 * 1000

// learn takes from a server of ours since when watermarks have stood that were seen for the
// first time.
func (s *stood) learn(e *why.Evidence, standing []flink.Standing) {
	for _, sp := range e.History[len(e.History)-1].Splits {
		id := splitID{sp.Source, sp.Topic, sp.Partition}
		is, ok := s.splits[id]
		vertex := vertexOf(e, sp.Source)
		at := slices.IndexFunc(standing, func(t flink.Standing) bool {
			return t.Vertex == vertex && t.Topic == sp.Topic && t.Partition == sp.Partition && t.SinceMillis != nil
		})
		// One that is newer than the look is of another watermark.
		if ok && at >= 0 && *standing[at].SinceMillis <= is.millis {
			is.millis, is.first = *standing[at].SinceMillis, e.AtMillis-*standing[at].SinceMillis >= serverMemory
			s.splits[id] = is
		}
	}
}

// vertexOf is the id of an operator's vertex.
func vertexOf(e *why.Evidence, operator string) string {
	for i := range e.Operators {
		if o := &e.Operators[i]; o.ID == operator {
			return cmp.Or(o.Vertex, o.ID)
		}
	}
	return operator
}

func (s *stood) since(sp *why.Split, now int64) string {
	is, ok := s.splits[splitID{sp.Source, sp.Topic, sp.Partition}]
	switch {
	case !ok:
		return "?"
	case is.first:
		return "≥ " + span(now-is.millis)
	}
	return span(now - is.millis)
}

func isTime(watermark int64) bool { return watermark != why.MinTime && watermark != why.MaxTime }

// topMark is a watermark for people.
func topMark(k why.Known[int64], now int64) string {
	if !k.OK {
		return "?"
	}
	return topClock(k.Value, now)
}

// topClock is a time of day, with the date if it is more than half a day away.
func topClock(millis, now int64) string {
	const halfDay = 12 * 60 * 60 * 1000
	switch {
	case millis == why.MinTime:
		return "none"
	case millis == why.MaxTime:
		return "end"
	case millis < now-halfDay || millis > now+halfDay:
		return time.UnixMilli(millis).UTC().Format("2006-01-02 15:04:05")
	}
	return time.UnixMilli(millis).UTC().Format("15:04:05.000")
}

func behind(k why.Known[int64], now int64) string {
	if !k.OK || !isTime(k.Value) {
		return ""
	}
	return span(behindMillis(k.Value, now))
}

// behindMillis is how far a watermark is behind the wall clock. Metrics are a little newer
// than the clock that was read before them; that is no watermark in the future.
func behindMillis(watermark, now int64) int64 {
	const newer = 3000
	if d := now - watermark; d < -newer || d > 0 {
		return d
	}
	return 0
}

// span is a length of time in at most two units.
func span(millis int64) string {
	const second, minute, hour, day = 1000, 60 * 1000, 60 * 60 * 1000, 24 * 60 * 60 * 1000
	switch {
	case millis < 0:
		return "-" + span(-millis)
	case millis < 100*second:
		return fmt.Sprintf("%d.%d s", millis/second, millis%second/100)
	case millis < 2*hour:
		return fmt.Sprintf("%d min %d s", millis/minute, millis%minute/second)
	case millis < 2*day:
		return fmt.Sprintf("%d h %d min", millis/hour, millis%hour/minute)
	}
	return fmt.Sprintf("%d d %d h", millis/day, millis%day/hour)
}
