package observe

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// Holder is what pins the smallest watermark of a job.
type Holder struct {
	Watermark int64
	// Since is when the pinned subtask or split came to have that watermark, zero if
	// unknown.
	Since time.Time
	Text  string
	// Path leads from the source to the operator that waits.
	Path []Place
	// Split is the pinned split; Split.ID is empty if the subtask has none that pins it.
	Split status.Split
}

// Place is a subtask.
type Place struct {
	Vertex, Subtask int
}

// Holder returns what pins the event time of the job, or nil if nothing does: the job has
// ended, or its event time has.
func (o *Observed) Holder(r *Reading) *Holder {
	if r.Status.Life.State.Ended() {
		return nil
	}
	at, ok := r.waiting()
	if !ok {
		return nil
	}
	h := &Holder{Path: []Place{at}}
	for len(r.Plan.Vertices[at.Vertex].Inputs) > 0 {
		from, ok := r.slowest(at)
		if !ok {
			break
		}
		at = from
		h.Path = append([]Place{at}, h.Path...)
	}
	o.pinned(r, h, at)
	return h
}

// waiting returns the subtask with the smallest event time among those that wait for it, or
// among all that have inputs if none does.
func (r *Reading) waiting() (at Place, ok bool) {
	for _, onlyWindows := range []bool{true, false} {
		lowest := eventtime.MaxTimestamp
		for v := range r.Plan.Vertices {
			vertex := &r.Plan.Vertices[v]
			if onlyWindows && vertex.Kind != KindWindow {
				continue
			}
			for i := range r.Status.Vertices[v].Subtasks {
				if t := vertex.eventTime(&r.Status.Vertices[v].Subtasks[i]); t < lowest {
					lowest, at, ok = t, Place{v, i}, true
				}
			}
		}
		if ok {
			return at, true
		}
	}
	return at, false
}

// slowest returns the subtask that the event time of at comes from: of those that send to it
// and are not idle, the one with the smallest watermark.
func (r *Reading) slowest(at Place) (from Place, ok bool) {
	lowest := eventtime.MaxTimestamp
	for _, in := range r.Plan.Vertices[at.Vertex].Inputs {
		for i := range r.Status.Vertices[in.Vertex].Subtasks {
			s := &r.Status.Vertices[in.Vertex].Subtasks[i]
			o := &s.Operators[in.Operator]
			if in.Reaches(i, at.Subtask) && !o.Idle && !s.Life.State.Ended() && o.CurrentOutputWatermark < lowest {
				lowest, from, ok = o.CurrentOutputWatermark, Place{in.Vertex, i}, true
			}
		}
	}
	return from, ok
}

// pinned fills in what holds at the beginning of the path.
func (o *Observed) pinned(r *Reading, h *Holder, at Place) {
	v := &r.Plan.Vertices[at.Vertex]
	s := &r.Status.Vertices[at.Vertex].Subtasks[at.Subtask]
	h.Watermark = v.eventTime(s)
	key := seriesKey{at.Vertex, at.Subtask, ""}
	name := fmt.Sprintf("subtask %d of %q", at.Subtask, v.Name)
	if v.Kind == KindSource {
		lowest := eventtime.MaxTimestamp
		for _, split := range s.Operators[0].Splits {
			if (split.State == status.SplitActive || split.State == status.SplitPaused) && split.CurrentWatermark < lowest {
				lowest, h.Split = split.CurrentWatermark, split
			}
		}
		switch {
		case h.Split.ID != "":
			key.split = h.Split.ID
			name = fmt.Sprintf("split %s of %q", h.Split.ID, v.Operators[0].Name)
		case len(s.Operators[0].Splits) == 0:
			name += ", which has no split,"
		}
	}
	watermark := h.Watermark
	if h.Split.ID != "" {
		watermark = h.Split.CurrentWatermark
	}
	o.mu.Lock()
	h.Since, _ = o.history.since(key, watermark)
	o.mu.Unlock()
	if h.Watermark == eventtime.MinTimestamp {
		h.Text = name + " has sent no watermark yet"
		return
	}
	h.Text = fmt.Sprintf("%s holds the smallest watermark, %s", name, time.UnixMilli(h.Watermark).UTC().Format("2006-01-02 15:04:05.000"))
}
