package why

import "fmt"

// This file has the cause where records come and their timestamps do not rise.

// leastStanding is how many records without a later timestamp are no accident.
const leastStanding = 10

// standing is a split that has records, none of them later than its newest.
type standing struct {
	split
	event   int64 // the newest
	records int64 // read meanwhile
}

// standStill finds splits that hold a target with timestamps that do not rise.
func standStill(v *view) []Finding {
	if v.starting() || v.spanMillis < patienceMillis {
		return nil
	}
	var found []Finding
	for _, t := range v.targets() {
		if stuck, known := t.stuck(); !known || !stuck || t.in.Value == MinTime || t.in.Value == MaxTime || t.late.all() {
			continue
		}
		for _, f := range t.feeds {
			var still []standing
			for _, sp := range f.src.splits {
				if s, ok := sp.standsStill(); ok && t.heldBy(sp) && t.longEnough(s) {
					still = append(still, s)
				}
			}
			if len(still) > 0 {
				found = append(found, standingFinding(t, f.src, still))
			}
		}
	}
	return found
}

// standsStill reports whether records of a split were read between the snapshots, and none
// moved its event time.
func (sp split) standsStill() (standing, bool) {
	n := sp.read()
	if !n.OK {
		n = sp.src.subtaskRead(sp)
	}
	g := &sp.src.gen
	if sp.past == nil || n.Value <= 0 || sp.isIdle() || sp.isPaused() || g.strategy != nil && g.strategy.Kind == StrategyWallClock {
		return standing{}, false
	}
	if lag := sp.lag(); lag.OK && lag.Value > n.Value {
		return standing{}, false // a backlog, which may have later ones, comes first
	}
	before := split{sp.past, nil, sp.src}
	if now, then := timeOf(sp.MaxEventMillis), timeOf(sp.past.MaxEventMillis); g.place != genBehind && now.OK && then.OK {
		return standing{sp, now.Value, n.Value}, now == then
	}
	if g.place == genAtSource {
		now, then := sp.ownWatermark()
		if now, then = timeOf(now), timeOf(then); now.OK && then.OK && now.Value != MaxTime {
			return standing{sp, plus(now.Value, g.bound().Or(-1)+1), n.Value}, now == then
		}
	}
	now, then := sp.lastEvent(), before.lastEvent()
	return standing{sp, now.Value, n.Value}, now.OK && now == then && sp.lag().Or(0) == 0
}

// ownWatermark returns the watermark of a split, or that of its subtask if that has no other
// split, now and in the past.
func (sp split) ownWatermark() (now, past Known[int64]) {
	if sp.Watermark.OK {
		return sp.Watermark, sp.past.Watermark
	}
	for _, sub := range sp.src.subs {
		if sp.Subtask.OK && sub.Index == sp.Subtask.Value && len(sp.src.of(sub.Index)) == 1 {
			return sub.OutputWatermark, sub.pastOutput()
		}
	}
	return Known[int64]{}, Known[int64]{}
}

// heldBy reports whether nothing that is known excludes that the target's watermark is that
// of a split.
func (t *target) heldBy(sp split) bool {
	if w := sp.Watermark; w.OK && sp.src.gen.place == genAtSource {
		return w.Value <= t.in.Value
	}
	w := t.v.out(sp.src.gen.opOr(sp.src.op), sp.Subtask.Or(WholeOperator))
	return w.OK && w.Value <= t.in.Value
}

// longEnough reports whether timestamps have stood still for longer than disorder within
// the bound, or timestamps that are cut to whole minutes or hours, explain.
func (t *target) longEnough(s standing) bool {
	age, stood := minus(t.v.now.AtMillis, s.event), t.stoodMillis()
	if -age > aheadMillis {
		return false // a timestamp of the future is why the others do not count
	}
	if s.records < leastStanding && (s.records < 3 || stood < longestPatienceMillis) {
		return false
	}
	return stood >= min(s.src.gen.bound().Or(0), longestPatienceMillis) && !t.mayBeCut(s)
}

// mayBeCut reports whether the next timestamp need not have come yet, if they are cut to
// whole minutes or hours.
func (t *target) mayBeCut(s standing) bool {
	grain := grainOf(s.event)
	return grain > 0 && t.stoodMillis() < grain+patienceMillis && minus(t.v.now.AtMillis, s.event) < 2*grain+patienceMillis
}

// cut returns by how much timestamps that hold a target may be cut, 0 if they are not.
func (t *target) cut() int64 {
	for _, f := range t.feeds {
		for _, sp := range f.src.splits {
			if s, ok := sp.standsStill(); ok && t.heldBy(sp) && t.mayBeCut(s) {
				return grainOf(s.event)
			}
		}
	}
	return 0
}

// grainOf returns the longest of the usual lengths that timestamps are cut to that a time is
// a multiple of, 0 if it is of none.
func grainOf(event int64) int64 {
	const second = 1000
	for _, g := range []int64{dayMillis, 12 * 3600 * second, 3600 * second, 1800 * second, 900 * second, 600 * second, 300 * second, 60 * second} {
		if event%g == 0 {
			return g
		}
	}
	return 0
}

// stoodMillis returns for how long the target's watermark has been what it is, at least.
func (t *target) stoodMillis() int64 {
	if since, ok := t.v.e.StandsSince[t.op.ID]; ok {
		return max(t.v.now.AtMillis-since, t.v.spanMillis)
	}
	return t.v.spanMillis
}

// waitsFor reports whether windows wait: one would have ended by now, had event time gone on
// with the clock, or as that of the inputs that do go on.
func (t *target) waitsFor(stood int64) bool {
	if t.open() == Know[int64](0) {
		return false
	}
	potential, told := plus(t.in.Value, stood), false
	for _, f := range t.feeds {
		for _, sp := range f.src.splits {
			told = told || sp.topEvent().OK
			if sp.past != nil && !sp.isIdle() && sp.Watermark.OK && sp.past.Watermark.OK && sp.Watermark.Value > sp.past.Watermark.Value {
				potential = max(potential, sp.Watermark.Value)
			}
		}
	}
	if !told && len(t.feeds) > 0 { // records of the present, as far as anybody knows
		potential = max(potential, plus(t.v.now.AtMillis, -t.feeds[0].src.gen.bound().Or(0)))
	}
	return t.due(potential)
}

func standingFinding(t *target, src *source, still []standing) Finding {
	v := t.v
	var splits []split
	records, newest := int64(0), still[0].event
	for _, s := range still {
		splits = append(splits, s.split)
		records += s.records
		newest = max(newest, s.event)
	}
	stood := t.stoodMillis()
	c := src.culprit(splits)
	f := Finding{
		Code: TimestampsStandStill, Severity: Stall, Culprit: c,
		Answer: fmt.Sprintf("%s is silent because the timestamps of %s stand still: records come, and none is later than %s.", t.title(), src.these(splits), instant(newest)),
		Why: []string{
			fmt.Sprintf("%s read there in the last %s, and the watermark has been %s for %s at least.", upper(count(records, "record"))+" "+verb(int(records), "was", "were"), duration(v.spanMillis), instant(t.in.Value), duration(stood)),
			fmt.Sprintf("The newest timestamp is %s the clock.", distance(minus(v.now.AtMillis, newest))),
		},
		Numbers:  []Number{{"frozen_ms", stood}, {"records", records}, {"event_time", newest}},
		RuledOut: []RuledOut{{QuietPartition, "records come"}},
	}
	if len(splits) == len(src.splits) && len(t.feeds) == 1 {
		f.RuledOut = append(f.RuledOut, RuledOut{AllInputsQuiet, "records come"})
	}
	if lag := splits[0].lag(); lag.OK {
		f.RuledOut = append(f.RuledOut, RuledOut{StalledReader, fmt.Sprintf("records are read: lag %d", lag.Value)})
	}
	if !t.waitsFor(stood) {
		f.Severity = Fine // a later record comes in time
		f.Answer = fmt.Sprintf("Nothing waits yet, but the timestamps of %s stand still: records come, and none is later than %s, so event time does not go on.", src.these(splits), instant(newest))
	}
	return f.fix(t, CheckTimestamps, FixProducerClock)
}
