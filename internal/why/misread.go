package why

// dropMisread leaves out what payloads told of splits if they were read in another unit
// than the job takes them for: its own event times prove that.
func (s *source) dropMisread() {
	if s.gen.fromRecord() || s.gen.strategy != nil && s.gen.strategy.Kind == StrategyWallClock {
		return
	}
	for i := range s.splits {
		sp := &s.splits[i]
		u, ok := sp.misread()
		if !ok {
			continue
		}
		s.misread, s.misreads = u, true
		sp.Split = withoutPayload(sp.Split)
		if sp.past != nil {
			sp.past = withoutPayload(sp.past)
		}
	}
}

func withoutPayload(sp *Split) *Split {
	out := *sp
	out.LastPayloadMillis, out.Profile = Known[int64]{}, nil
	return &out
}

// misread returns the unit of the times in payloads of a split, if the job has converted
// them: the last one does not fit the wall clock, and the job's event times do.
func (sp split) misread() (unit, bool) {
	v := sp.src.v
	last, wall := timeOf(sp.LastPayloadMillis), sp.wall().Or(v.now.AtMillis)
	u, wrong := unitOf(last.Value, wall)
	if !last.OK || !wrong {
		return unit{}, false
	}
	seconds := u.code == TimestampsInSeconds
	job := sp.jobsEvent(seconds)
	if !job.OK || !near(job.Value, wall) {
		return unit{}, false
	}
	if seconds {
		return u, !v.anyLate() // of a few records in seconds the others hide all but that
	}
	return u, sp.hasRead()
}

// jobsEvent returns the newest event time of a split as far as the job tells it. The least
// of several splits will do where that is said, and is unknown otherwise.
func (sp split) jobsEvent(least bool) Known[int64] {
	s := sp.src
	bound := s.gen.bound().Or(0)
	if s.gen.place != genBehind {
		if t := timeOf(sp.MaxEventMillis); t.OK {
			return t
		}
	}
	if k := s.gen.strategy; k != nil && k.MaxFutureMillis.OK {
		return Known[int64]{} // the watermark does not show what is ahead
	}
	if w := timeOf(sp.Watermark); w.OK && s.gen.place != genBehind {
		return Know(plus(w.Value, bound+1))
	}
	if !least && len(s.of(sp.Subtask.Or(WholeOperator))) != 1 {
		return Known[int64]{}
	}
	index := WholeOperator
	if s.gen.place == genAtSource {
		index = sp.Subtask.Or(WholeOperator)
	}
	w := timeOf(s.v.out(s.gen.opOr(s.op), index))
	return KnowIf(plus(w.Value, bound+1), w.OK)
}

// hasRead reports whether the job has read the last record of a split, or another one of
// the same kind.
func (sp split) hasRead() bool {
	lag := sp.lag()
	if lag.OK && lag.Value == 0 {
		return true
	}
	p := sp.Profile
	return p != nil && p.AheadRecords == p.Records && p.Records > lag.Value
}

// anyLate reports whether any operator has found a record late.
func (v *view) anyLate() bool {
	for _, s := range v.now.Subtasks {
		if s.LateDropped.Or(0)+s.LateOutput.Or(0) > 0 {
			return true
		}
	}
	return false
}
