package why

// Path is where the watermark of an operator comes from: the way back from it over the
// smallest watermark to what pins it.
type Path struct {
	// Operator is where it begins, WatermarkMillis its input watermark.
	Operator        string
	WatermarkMillis Known[int64]
	// Links lead back, the operator's direct input first, the source last.
	Links []Link
	// Splits pin the watermark of the last link, if that is a source and its splits are
	// known: those with the smallest watermark, or, if Exact is false, all that the subtask
	// reads, one of which it is.
	Splits []SplitRef
	Exact  bool
	// AllIdle: everything before the operator is idle, so that nothing holds it but the lack
	// of records.
	AllIdle bool
}

// Link is one step of a Path.
type Link struct {
	// Input is the input of the operator before it in the path that leads here.
	Input           int
	Operator        string
	Subtask         int // WholeOperator if it is not known which
	WatermarkMillis Known[int64]
}

// SplitRef names a split of a Path.
type SplitRef struct {
	// ID is set for a split that is no partition of Kafka; Topic is empty then.
	ID              string
	Topic           string
	Partition       int32
	WatermarkMillis Known[int64]
}

// Hold follows the watermark of an operator back to what pins it. An empty id stands for
// the slowest operator that waits for event time. It returns false if there is no such
// operator.
func Hold(e *Evidence, id string) (Path, bool) {
	v := newView(e)
	var slowest *target
	for _, t := range v.targets() {
		if id == "" && (slowest == nil || lesser(t.in, slowest.in) != slowest.in) || t.op.ID == id {
			slowest = t
		}
	}
	if slowest == nil && v.ops[id] != nil {
		slowest = v.target(v.ops[id])
	}
	if slowest == nil {
		return Path{}, false
	}
	return slowest.hold.path(slowest), true
}

// hold is a path with what the rules need of it.
type hold struct {
	links   []Link
	src     *source
	subtask int
	splits  []split
	exact   bool
	allIdle bool
	gen     *Operator // a generator behind the source that the path passes
}

func (h *hold) path(t *target) Path {
	p := Path{Operator: t.op.ID, WatermarkMillis: t.in, Links: h.links, Exact: h.exact, AllIdle: h.allIdle}
	for _, sp := range h.splits {
		p.Splits = append(p.Splits, SplitRef{sp.ID, sp.Topic, sp.Partition, sp.Watermark})
	}
	return p
}

// holdOf follows the smallest watermark back from an operator.
func (v *view) holdOf(o *Operator) hold {
	h := hold{subtask: WholeOperator}
	index := WholeOperator
	for range len(v.e.Operators) {
		if o.Kind == KindSource {
			break
		}
		if o.Kind == KindAssign && len(h.links) > 0 {
			h.gen = o
		}
		link, allIdle, ok := v.smallestBefore(o, index)
		if !ok {
			return h
		}
		if h.gen == nil {
			h.allIdle = allIdle
		}
		h.links = append(h.links, link)
		o, index = v.ops[link.Operator], link.Subtask
	}
	for _, s := range v.sources {
		if s.op == o {
			h.src, h.subtask = s, index
		}
	}
	if h.src != nil {
		h.pin()
	}
	return h
}

// pin finds the splits that pin the subtask at the end of the path.
func (h *hold) pin() {
	own := h.src.of(h.subtask)
	if h.gen != nil {
		h.splits = own // one generator for all of them
		return
	}
	least := Known[int64]{}
	for _, sp := range own {
		if !sp.isIdle() {
			least = lesser(least, sp.Watermark)
		}
	}
	for _, sp := range own {
		if !least.OK || sp.Watermark == least && !sp.isIdle() {
			h.splits = append(h.splits, sp)
		}
	}
	h.exact = least.OK
}

// smallestBefore returns the subtask with the smallest watermark among those that feed
// one subtask of o, or all of it. Idle ones count only if there is no other: then the
// largest counts.
func (v *view) smallestBefore(o *Operator, index int) (found Link, allIdle, ok bool) {
	reached := v.inputAt(o.ID, index)
	var idle Link
	anyIdle := false
	for i, in := range o.Inputs {
		for _, edge := range in.Edges {
			before := v.ops[edge.From]
			if before == nil {
				continue
			}
			for _, s := range v.reaching(o, index, edge, before) {
				l := Link{Input: i, Operator: before.ID, Subtask: s, WatermarkMillis: v.out(before, s)}
				if v.idle(before.ID, s, l.WatermarkMillis, reached) {
					if !anyIdle || greater(l.WatermarkMillis, idle.WatermarkMillis) == l.WatermarkMillis {
						idle, anyIdle = l, true
					}
					continue
				}
				if !ok || lesser(l.WatermarkMillis, found.WatermarkMillis) == l.WatermarkMillis && l.WatermarkMillis != found.WatermarkMillis {
					found, ok = l, true
				}
			}
		}
	}
	if !ok && anyIdle {
		return idle, true, true
	}
	return found, false, ok
}

// inputAt returns the input watermark of a subtask, or the operator's.
func (v *view) inputAt(id string, index int) Known[int64] {
	for _, s := range v.subs[id] {
		if s.Index == index {
			return inputOf(s.Subtask)
		}
	}
	w, _ := v.in(id)
	return w
}

// reaching returns the subtasks of before that feed a subtask of o.
func (v *view) reaching(o *Operator, index int, edge Edge, before *Operator) []int {
	if edge.Ship == ShipForward && index >= 0 && before.Parallelism == o.Parallelism {
		return []int{index}
	}
	var all []int
	for _, s := range v.subs[before.ID] {
		all = append(all, s.Index)
	}
	if len(all) == 0 {
		return []int{WholeOperator}
	}
	return all
}

// idle reports whether a subtask is idle. Where nobody tells, one that is behind what it
// feeds must be: it would hold that back.
func (v *view) idle(id string, index int, w, reached Known[int64]) bool {
	for _, s := range v.subs[id] {
		if s.Index == index && s.Idle.OK {
			return s.Idle.Value
		}
	}
	return w.OK && reached.OK && w.Value < reached.Value
}

// out returns the output watermark of a subtask, or that of an operator as a whole. An
// operator that tells none passes on what it gets.
func (v *view) out(o *Operator, index int) Known[int64] {
	found := false
	least := Known[int64]{}
	for _, s := range v.subs[o.ID] {
		if index != WholeOperator && s.Index != WholeOperator && s.Index != index {
			continue
		}
		found = true
		w := s.OutputWatermark
		if !w.OK && o.Kind != KindSource && o.Kind != KindAssign {
			w = inputOf(s.Subtask)
		}
		least = lesser(least, w)
	}
	if least.OK || o.Kind == KindSource || o.Kind == KindAssign {
		return least
	}
	if found && len(v.subs[o.ID]) > 0 && v.subs[o.ID][0].Index != WholeOperator && index != WholeOperator {
		index = WholeOperator
	}
	if w, ok := v.outMemo[o.ID]; ok {
		return w
	}
	v.outMemo[o.ID] = Known[int64]{} // of a loop, which there is none of
	link, _, ok := v.smallestBefore(o, index)
	if ok {
		v.outMemo[o.ID] = link.WatermarkMillis
	}
	return v.outMemo[o.ID]
}
