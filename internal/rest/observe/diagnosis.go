package observe

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/own"
	"github.com/lowwater/lowwater/status"
)

const (
	// evidenceInterval is the time between two snapshots of the evidence, evidenceSpan
	// how far back it goes.
	evidenceInterval = 5 * time.Second
	evidenceSpan     = 5 * time.Minute
)

// diagnosis is what the rules of package why need of a job: its plan and some snapshots.
type diagnosis struct {
	// past has snapshots of the last minutes, present one of now.
	past, present *own.Collector
	at            time.Time
	// places are the operators by the ids that evidence gives them.
	places map[string]Place
}

// newDiagnosis returns nil for a job whose graph is not known.
func newDiagnosis(p *Plan) *diagnosis {
	if p.Description == nil {
		return nil
	}
	d := &diagnosis{past: own.New(p.Description, ""), present: own.New(p.Description, ""), places: map[string]Place{}}
	chains := map[int]int{}
	for i, o := range p.Description.Operators {
		id := d.present.Evidence().Operators[i].ID
		d.places[id] = Place{Vertex: o.Vertex, Operator: chains[o.Vertex]}
		chains[o.Vertex]++
	}
	return d
}

// add takes a snapshot, unless the last is too near.
func (d *diagnosis) add(s *status.Job, at time.Time, interval time.Duration) {
	if d == nil || at.Sub(d.at) < interval {
		return
	}
	d.past.Add(s, at)
	d.past.Forget(evidenceSpan)
	d.at = at
}

// Diagnose returns why nothing comes out of the job; ok is false if its graph is not known.
func (o *Observed) Diagnose() (report why.Report, ok bool) {
	r := o.Read()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.diagnosis == nil {
		return why.Report{}, false
	}
	o.diagnosis.add(&r.Status, r.At, time.Second)
	return why.Diagnose(o.diagnosis.past.Evidence()).Report(), true
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

// Holder returns what pins the event time of the job, or nil if nothing does: the job has
// ended, its event time has, or nothing in it waits for event time.
func (o *Observed) Holder(r *Reading) *Holder {
	if r.Status.Life.State.Ended() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.diagnosis == nil {
		return nil
	}
	now := o.diagnosis.present
	now.Forget(-1) // all
	now.Add(&r.Status, r.At)
	path, ok := why.Hold(now.Evidence(), "")
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
			if s.Topic == path.Splits[0].Topic && s.Partition == path.Splits[0].Partition && s.CurrentWatermark == path.Splits[0].WatermarkMillis.Or(s.CurrentWatermark) {
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
	h.Text = fmt.Sprintf("%s holds the smallest watermark, %s", name, time.UnixMilli(h.Watermark).UTC().Format("2006-01-02 15:04:05.000"))
}
