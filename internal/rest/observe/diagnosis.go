package observe

import (
	"fmt"
	"slices"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/own"
	"github.com/lowwater/lowwater/status"
)

const (
	// evidenceInterval is the time between two snapshots of the evidence, evidenceSpan how
	// far back they go: as far as package why looks, and a little more.
	evidenceInterval = 5 * time.Second
	evidenceSpan     = 75 * time.Second
	// stallPatience is how long event time must stand still at an operator before the
	// present is compared with that time only: the shortest silence that the rules take for
	// one. Comparing with an earlier time would take a stall for slow progress.
	stallPatience = 30 * time.Second
	// leastSpan is how far the present must be from the last snapshot for rates.
	leastSpan = time.Second
)

// diagnosis is what the rules of package why need of a job: its plan and some snapshots.
type diagnosis struct {
	collector *own.Collector
	// latest is the last sample, kept the time of the last snapshot.
	latest sample
	kept   time.Time
	waits  []waiting
	// places are the operators by the ids that evidence gives them.
	places map[string]Place
}

// waiting is an operator that waits for event time: its watermark, and when it was first
// seen to have that.
type waiting struct {
	id        string // in evidence
	place     Place
	maybe     bool // it waits if it has registered timers
	watermark int64
	since     time.Time
}

// newDiagnosis returns nil for a job whose graph is not known.
func newDiagnosis(p *Plan) *diagnosis {
	if p.Description == nil {
		return nil
	}
	d := &diagnosis{collector: own.New(p.Description, ""), places: map[string]Place{}}
	chains := map[int]int{}
	for i, o := range p.Description.Operators {
		at := Place{Vertex: o.Vertex, Operator: chains[o.Vertex]}
		chains[o.Vertex]++
		operator := d.collector.Evidence().Operators[i]
		d.places[operator.ID] = at
		switch operator.Kind {
		case why.KindWindow, why.KindJoin, why.KindTimers, why.KindMaybeTimers:
			d.waits = append(d.waits, waiting{id: operator.ID, place: at, maybe: operator.Kind == why.KindMaybeTimers, watermark: eventtime.MinTimestamp})
		}
	}
	return d
}

// HasTimers reports whether an operator has registered event-time timers.
func HasTimers(s *status.Job, at Place) bool {
	return slices.ContainsFunc(s.Vertices[at.Vertex].Subtasks, func(t status.Subtask) bool { return t.Operators[at.Operator].EventTimers.Registered })
}

// watermarkAt returns the smallest input watermark of the subtasks of an operator.
func watermarkAt(s *status.Job, at Place) int64 {
	lowest := int64(eventtime.MaxTimestamp)
	for i := range s.Vertices[at.Vertex].Subtasks {
		lowest = min(lowest, s.Vertices[at.Vertex].Subtasks[i].Operators[at.Operator].CurrentInputWatermark)
	}
	return lowest
}

// add takes note of a sample. Kept are those that are evidenceInterval apart, and those at
// which an operator came to have the watermark that it still has.
func (d *diagnosis) add(now sample) {
	if d == nil {
		return
	}
	stopped := false // at the sample before this one
	for i := range d.waits {
		w := &d.waits[i]
		if watermark := watermarkAt(&now.job, w.place); watermark != w.watermark || w.since.IsZero() {
			w.watermark, w.since = watermark, now.at
		} else if w.since.Equal(d.latest.at) {
			stopped = true
		}
	}
	if stopped {
		d.keep(d.latest)
	}
	if now.at.Sub(d.kept) >= evidenceInterval {
		d.keep(now)
	}
	d.latest = now
}

// keep makes a snapshot of a sample, and drops those that are not needed any more.
func (d *diagnosis) keep(s sample) {
	if !s.at.After(d.kept) {
		return
	}
	d.collector.Add(&s.job, s.at)
	d.kept = s.at
	var last time.Time
	d.collector.Keep(func(at time.Time) bool {
		switch {
		case s.at.Sub(at) > evidenceSpan:
			return false
		case at.Sub(last) >= evidenceInterval:
			last = at
			return true
		}
		return d.isSince(at)
	})
}

// isSince reports whether an operator has had its watermark since a time, in whole
// milliseconds as snapshots have it.
func (d *diagnosis) isSince(at time.Time) bool {
	return slices.ContainsFunc(d.waits, func(w waiting) bool { return w.since.UnixMilli() == at.UnixMilli() })
}

// evidence returns what the present is to be judged by: the last minute, or the part of it
// in which an operator that stands still has done so.
func (d *diagnosis) evidence(r *Reading) *why.Evidence {
	if r.At.Sub(d.kept) < leastSpan {
		r = &Reading{At: d.latest.at, Status: d.latest.job}
	}
	e := d.collector.Now(&r.Status, r.At, d.stalledSince(r))
	e.StandsSince = map[string]int64{}
	for _, w := range d.waits {
		if !w.since.IsZero() && watermarkAt(&r.Status, w.place) == w.watermark {
			e.StandsSince[w.id] = w.since.UnixMilli()
		}
	}
	return e
}

// stalledSince returns when the last of the operators that have stood still for long enough
// began to, zero if there is none. One without a watermark needs no comparison.
func (d *diagnosis) stalledSince(r *Reading) (since time.Time) {
	for _, w := range d.waits {
		if w.watermark == eventtime.MinTimestamp || w.watermark == eventtime.MaxTimestamp || watermarkAt(&r.Status, w.place) != w.watermark || w.maybe && !HasTimers(&r.Status, w.place) {
			continue
		}
		if r.At.Sub(w.since) >= stallPatience && w.since.After(since) {
			since = w.since
		}
	}
	return since
}

// Diagnose returns why nothing comes out of the job, or that it does not run or has failed;
// ok is false if that is not so and its graph is not known.
func (o *Observed) Diagnose() (report why.Report, ok bool) {
	r := o.Read()
	if r.Status.Life.State.Ended() {
		return o.ended(r), true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	outage, again, failed := o.outage(r)
	if halted(r.Status.Life.State) {
		return outage.Report(r.At), true
	}
	d := &why.Diagnosis{Job: r.Status.Name, AtMillis: r.At.UnixMilli()}
	if o.diagnosis != nil {
		d = why.Diagnose(o.diagnosis.evidence(r))
	} else if !failed {
		return why.Report{}, false
	}
	if failed {
		outage.AddTo(d, again)
	}
	return d.Report(), true
}

// ended is the report of a job that has ended.
func (o *Observed) ended(r *Reading) why.Report {
	end := why.End{Job: r.Status.Name, Started: r.Status.Started, At: r.Status.Life.End()}
	switch r.Status.Life.State {
	case status.Canceled:
		end.How = "was canceled"
	case status.Failed:
		end.How = "failed"
		if all := o.Failures(); len(all) > 0 {
			end.Failure = all[len(all)-1].Err.Error()
		}
	default:
		end.How = "finished"
	}
	return end.Report(r.At)
}

// Holder is what pins the smallest watermark of a job.
type Holder struct {
	Watermark int64
	// Since is when the pinned subtask or split came to have that watermark, zero if
	// unknown.
	Since time.Time
	Text  string
	// Path leads from the source to the operator that waits.
	Path []Place
	// Split is the pinned split, at the beginning of the path; its ID is empty if it is
	// not one that pins.
	Split status.Split
}

// Place is an operator in one subtask.
type Place struct {
	Vertex, Subtask, Operator int
}

// Holder returns what pins the event time of the job, or nil if nothing does: the job does
// not run, its event time has ended, or nothing in it waits for event time.
func (o *Observed) Holder(r *Reading) *Holder {
	if s := r.Status.Life.State; s.Ended() || halted(s) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.diagnosis == nil {
		return nil
	}
	path, ok := why.Hold(o.diagnosis.collector.Now(&r.Status, r.At, r.At), "")
	if !ok || path.WatermarkMillis.Or(eventtime.MaxTimestamp) == eventtime.MaxTimestamp {
		return nil
	}
	h := &Holder{Watermark: path.WatermarkMillis.Value, Path: []Place{o.diagnosis.places[path.Operator]}}
	h.Path[0].Subtask = r.slowestSubtask(h.Path[0])
	for _, link := range path.Links {
		at, known := o.diagnosis.places[link.Operator]
		if !known {
			break
		}
		at.Subtask = max(0, link.Subtask)
		h.Path = append([]Place{at}, h.Path...)
	}
	o.describe(r, h, &path)
	return h
}

// names reports whether a path names a split of the subtask that it leads to.
func names(ref why.SplitRef, s *status.Split) bool {
	if s.Topic == "" {
		return ref.ID == s.ID
	}
	return ref.Topic == s.Topic && ref.Partition == s.Partition
}

// slowestSubtask returns the subtask whose operator has the smallest input watermark.
func (r *Reading) slowestSubtask(at Place) (slowest int) {
	lowest := int64(eventtime.MaxTimestamp)
	for i := range r.Status.Vertices[at.Vertex].Subtasks {
		if t := r.Status.Vertices[at.Vertex].Subtasks[i].Operators[at.Operator].CurrentInputWatermark; t < lowest {
			lowest, slowest = t, i
		}
	}
	return slowest
}

// describe fills in what is at the beginning of the path.
func (o *Observed) describe(r *Reading, h *Holder, path *why.Path) {
	first := h.Path[0]
	v := &r.Plan.Vertices[first.Vertex]
	key := seriesKey{first.Vertex, first.Subtask, ""}
	watermark := v.eventTime(&r.Status.Vertices[first.Vertex].Subtasks[first.Subtask])
	splits := r.Status.Vertices[first.Vertex].Subtasks[first.Subtask].Operators[first.Operator].Splits
	name := fmt.Sprintf("subtask %d of %q", first.Subtask, v.Operators[first.Operator].Name)
	switch {
	case path.AllIdle:
		name += ", like all before the operator that waits, is idle: no record moves the watermark. It"
	case v.Kind == KindSource && len(splits) == 0:
		name += ", which has no split,"
	case len(path.Splits) > 0:
		for _, s := range splits {
			if names(path.Splits[0], &s) && s.CurrentWatermark == path.Splits[0].WatermarkMillis.Or(s.CurrentWatermark) {
				h.Split = s
			}
		}
		if h.Split.ID != "" {
			key.split, watermark = h.Split.ID, h.Split.CurrentWatermark
			name = fmt.Sprintf("split %s of %q", h.Split.ID, v.Operators[first.Operator].Name)
		}
	}
	h.Since, _ = o.history.since(key, watermark)
	if h.Watermark == eventtime.MinTimestamp {
		h.Text = name + " has sent no watermark yet"
		return
	}
	h.Text = fmt.Sprintf("%s holds the smallest watermark, %s", name, time.UnixMilli(h.Watermark).UTC().Format("2006-01-02 15:04:05.000 UTC"))
}
