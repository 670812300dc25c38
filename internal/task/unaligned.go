package task

import (
	"errors"
	"slices"
	"time"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// A barrier that has waited longer than its alignment timeout overtakes the records ahead
// of it. The task takes its snapshot at once; what it has yet to process of the time
// before the barrier becomes part of the snapshot, and is processed as usual. When the
// operator is restored, those records come first.
//
// Signals among them are not kept: event time is part of the snapshot, and the tasks
// ahead repeat theirs.

// InputEdge is one network edge into a task's head.
type InputEdge struct {
	// Name identifies the edge in snapshots.
	Name string
	// Input is the logical input that the edge belongs to.
	Input int
	// Store is nil if barriers cannot overtake the edge's records: broadcast records
	// belong to all subtasks, so they cannot be dealt out again.
	Store exchange.Store
}

// inFlightPart is the prefix of the parts with what barriers have overtaken.
const inFlightPart = "in-flight/"

// recording collects the records of one snapshot that its barrier has overtaken.
type recording struct {
	barrier *exchange.Barrier
	edges   []InputEdge
	edgeOf  []int
	// waiting marks the channels whose barrier has not come; left counts them.
	waiting []bool
	left    int
	// ahead are the messages that were there when the recording began.
	ahead []exchange.Message
	// parts are by edge, nil until there is something in them.
	parts   []snapshot.PartWriter
	records int64
	writer  snapshot.Writer
	err     error
	// done is closed when nothing more is recorded; err is set before.
	done chan struct{}
}

// dueBarrier returns the barrier that is to overtake now, nil if there is none.
func (t *Task) dueBarrier() *exchange.Barrier {
	b := t.input.inbox.Announced()
	if b == nil || b.Checkpoint <= t.input.alignment.over || b.AlignmentTimeout == 0 || t.recording != nil || !t.canOvertake() {
		return nil
	}
	if time.Since(b.Triggered) < b.AlignmentTimeout {
		if t.awaited != b {
			t.awaited = b
			t.clock.At(b.Triggered.Add(b.AlignmentTimeout).UnixMilli()+1, func(int64) error { return nil }) // wakes the task
		}
		return nil
	}
	return b
}

func (t *Task) canOvertake() bool {
	for _, e := range t.cfg.Edges {
		if e.Store == nil {
			return false
		}
	}
	return len(t.cfg.Edges) > 0
}

// overtake takes the checkpoint of a barrier that has not arrived on all channels.
func (t *Task) overtake(b *exchange.Barrier) error {
	in := t.input
	a := &in.alignment
	a.drain(in.inbox)
	r := &recording{
		barrier: b, edges: t.cfg.Edges, edgeOf: t.cfg.EdgeOf, waiting: make([]bool, len(in.logical)), left: len(in.logical),
		parts: make([]snapshot.PartWriter, len(t.cfg.Edges)), done: make(chan struct{}),
	}
	var took time.Duration
	for c := range r.waiting {
		r.waiting[c] = true
		if a.barrier != nil && a.barrier.Checkpoint == b.Checkpoint && a.blocked[c] {
			r.arrived(int32(c))
			took = time.Since(a.started)
		}
	}
	kept := a.aside[:0]
	for _, m := range a.aside {
		switch {
		case !r.waiting[m.Channel]:
		case m.Kind == exchange.BarrierKind && m.Barrier.Checkpoint == b.Checkpoint:
			r.arrived(m.Channel)
			in.inbox.Done(m.Channel)
			continue
		case m.Kind == exchange.Records:
			r.ahead = append(r.ahead, m)
		}
		kept = append(kept, m)
	}
	a.aside = kept
	a.end(b.Checkpoint)
	t.recording = r
	if err := t.takeCheckpoint(b, took); err != nil {
		return err
	}
	if r.left == 0 {
		t.endRecording(nil)
	}
	return nil
}

// begin is called with the head's writer.
func (r *recording) begin(w snapshot.Writer) error {
	r.writer = w
	for _, m := range r.ahead {
		if err := r.record(m); err != nil {
			return err
		}
	}
	r.ahead = nil
	return nil
}

// recordIfAhead records a message that has just come if its channel's barrier has not.
func (t *Task) recordIfAhead(m exchange.Message) {
	r := t.recording
	if !r.waiting[m.Channel] {
		return
	}
	switch {
	case m.Kind == exchange.Records && r.writer != nil:
		if err := r.record(m); err != nil {
			t.endRecording(err)
		}
	case m.Kind == exchange.BarrierKind && m.Barrier.Checkpoint >= r.barrier.Checkpoint:
		if r.arrived(m.Channel); r.left == 0 {
			t.endRecording(nil)
		}
	}
}

func (r *recording) arrived(channel int32) {
	r.waiting[channel] = false
	r.left--
}

func (r *recording) record(m exchange.Message) error {
	i := r.edgeOf[m.Channel]
	e := r.edges[i]
	if r.parts[i] == nil {
		p, err := r.writer.Part(e.Store.Part(inFlightPart + e.Name))
		if err != nil {
			return err
		}
		r.parts[i] = p
	}
	r.records += int64(m.Payload.Len())
	return e.Store.Append(r.parts[i], m.Payload)
}

// errNotRecorded ends the recording of a snapshot that is given up.
var errNotRecorded = errors.New("given up before all barriers had come")

// endRecording ends the recording under way, if there is one.
func (t *Task) endRecording(err error) {
	r := t.recording
	if r == nil {
		return
	}
	t.recording = nil
	for _, p := range r.parts {
		if p != nil && err == nil {
			err = p.Close()
		}
	}
	r.err = err
	close(r.done)
}

// restoredLink is what a link has to go on from: its event time and, if it was a head,
// records that a barrier overtook.
type restoredLink struct {
	eventTime snapshot.PartReader
	// sameInput says that the subtask of the link gets what the one of its number got.
	sameInput bool
	inFlight  []restoredEdge
}

// restoredEdge is an edge with records to process before anything else.
type restoredEdge struct {
	edge InputEdge
	part snapshot.PartReader
}

// claimRestored finds what the checkpoint has for the task besides operators' state.
func (t *Task) claimRestored() {
	t.restored = make([]restoredLink, len(t.chain.links))
	for i, l := range t.chain.links {
		r := l.rt.Restored
		if r == nil {
			continue
		}
		edges := t.cfg.Edges
		if i > 0 {
			edges = []InputEdge{t.cfg.Nodes[i].Restored}
		}
		to := &t.restored[i]
		if p, ok := r.Part(snapshot.EventTimePart); ok {
			to.eventTime = p
		}
		for _, e := range edges {
			if e.Store == nil {
				continue
			}
			if p, ok := r.Part(inFlightPart + e.Name); ok {
				to.inFlight = append(to.inFlight, restoredEdge{e, p})
			}
		}
	}
	t.findSameInput()
}

// goOn brings the task to where it was: the last link first, because what it had yet to
// process came before what those ahead of it send.
func (t *Task) goOn() error {
	for i, l := range slices.Backward(t.chain.links) {
		times, err := t.restoreEventTime(i)
		if err != nil {
			return err
		}
		if times != nil {
			if err := t.resume(i, times); err != nil {
				return err
			}
		}
		for _, r := range t.restored[i].inFlight {
			err := r.edge.Store.Read(r.part, func(p exchange.Payload) error {
				return t.chain.process(l, r.edge.Input, p)
			})
			if err != nil {
				return l.rt.WithName(err)
			}
		}
	}
	t.restored = nil
	return nil
}
