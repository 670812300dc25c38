package why

import "fmt"

// This file has what is said where no rule has found a cause.

// unexplained tells of targets whose watermark stands still, where no rule says why.
func unexplained(v *view) []Finding {
	var found []Finding
	for _, t := range v.targets() {
		stuck, known := t.stuck()
		if v.starting() || !known || !stuck || t.late.in.Or(0) == 0 {
			continue
		}
		f := Finding{
			Code: NotEnoughEvidence, Severity: Stall,
			Culprit: Culprit{Operator: t.op.ID},
			Answer:  t.title() + " is silent because event time has not begun there, though records come; what was seen does not tell why.",
			Unless: []Unless{
				{NoWatermarkStrategy, "the description of the job"}, {QuietPartition, "when each partition had records last"}, {OverParallelSource, "the assignment of partitions"},
			},
		}
		if t.in.Value != MinTime {
			if v.spanMillis < lookBackMillis || minus(v.now.AtMillis, t.in.Value) < longestPatienceMillis || t.late.inGrown.Or(0) == 0 || !t.waitsFor(t.stoodMillis()) {
				continue
			}
			f.Answer = fmt.Sprintf("%s is silent because its watermark stands still at %s, for %s at least, though records come; what was seen does not tell why.",
				t.title(), instant(t.in.Value), duration(t.stoodMillis()))
			f.Unless = f.Unless[1:2]
		}
		if s := t.hold.src; s != nil && !t.hold.allIdle {
			f.Culprit.Source, f.Culprit.Topic = s.op.ID, s.topic(t.hold.splits)
			if t.hold.subtask >= 0 {
				f.Culprit.Subtasks = []int{t.hold.subtask}
			}
			f.Why = append(f.Why, "The smallest watermark comes from there: source "+quoted(v.nameOf(s.op.ID))+".")
		}
		found = append(found, f)
	}
	return found
}

// nothing is the finding that nothing is wrong, or that nobody can tell.
func nothing(v *view) Finding {
	f := Finding{Code: None, Severity: Fine, Answer: "Nothing holds event time back."}
	ts := v.targets()
	switch {
	case len(v.e.Operators) == 0 || len(v.e.History) == 0:
		f.Code, f.Answer = NotEnoughEvidence, "There is not enough evidence: nothing was seen of the job."
		return f
	case len(ts) == 0:
		f.Answer = "No operator of the job waits for event time."
		for i := range v.e.Operators {
			if o := &v.e.Operators[i]; o.Kind == KindMaybeTimers {
				f.Why = append(f.Why, fmt.Sprintf("%s may register event-time timers, and has registered none.", quoted(v.nameOf(o.ID))))
			}
		}
		return f
	case v.starting():
		f.Answer = fmt.Sprintf("The job has just started; nothing is expected of event time yet. Ask again in %s.", duration(roundToSeconds(startupMillis-v.upMillis())))
		return f
	}
	told := false
	for _, t := range ts {
		told = told || t.in.OK
		f.tellPace(t)
		f.tellSilence(t)
	}
	if !told {
		f.Code = NotEnoughEvidence
		f.Answer = "There is not enough evidence: no watermark of an operator that waits for event time was seen."
	} else if v.past == nil {
		f.Code, f.Answer = NotEnoughEvidence, "Nothing is wrong at first sight; one look does not tell what moves and what stands still."
	} else {
		f.judge(ts)
	}
	for _, s := range v.sources {
		if s.gen.fromRecord() && s.gen.place != genNone && !v.e.Means.KafkaRecords {
			f.Why = append(f.Why, "Source "+quoted(v.nameOf(s.op.ID))+" takes the Kafka timestamp for event time; whether the payload has another was not seen.")
		}
	}
	return f
}

func roundToSeconds(millis int64) int64 { return (millis + 999) / 1000 * 1000 }

// tellPace says where the event time of a target is, and how fast it goes on.
func (f *Finding) tellPace(t *target) {
	if !t.in.OK || t.in.Value == MinTime || t.in.Value == MaxTime {
		return
	}
	behind := minus(t.v.now.AtMillis, t.in.Value)
	s := quoted(t.v.nameOf(t.op.ID)) + ": the watermark is " + instant(t.in.Value) + ", " + distance(behind) + " the clock"
	if p := t.pace(); p.OK {
		if p.Value == 0 {
			s += ", and has stood still for " + duration(t.stoodMillis()) + " at least" + t.heldWhy()
		} else {
			s += ", and goes on by " + duration(p.Value) + " each second"
		}
		f.Numbers = append(f.Numbers, Number{"pace_ms_per_s", p.Value})
	}
	f.Why = append(f.Why, s+".")
	f.Numbers = append(f.Numbers, Number{"behind_ms", behind})
	if behind > 2*longestPatienceMillis && t.v.past != nil {
		f.Why = append(f.Why, "A bound as long as that, old records, or a backlog would look like this.")
	}
}

// tellSilence says why nothing comes out of a target that event time does not hold.
func (f *Finding) tellSilence(t *target) {
	sent := int64(0)
	for _, feed := range t.feeds {
		n, _ := t.v.sum(feed.src.op.ID, recordsOut)
		sent += n.Or(0)
	}
	switch {
	case t.op.NeverFires:
		f.Answer = fmt.Sprintf("Nothing holds event time back, but nothing can come out of %s: its trigger never fires.", quoted(t.v.nameOf(t.op.ID)))
	case t.late.in == Know[int64](0) && sent >= leastStanding:
		f.Answer = fmt.Sprintf("Nothing holds event time back, but no record reaches %s: its sources have sent %s, and what is between drops them all.",
			quoted(t.v.nameOf(t.op.ID)), count(sent, "record"))
	}
}

// judge says of targets that stand still whether anything waits.
func (f *Finding) judge(ts []*target) {
	for _, t := range ts {
		stuck, known := t.stuck()
		switch {
		case !known || !stuck || t.in.Value == MinTime || t.in.Value == MaxTime:
			continue
		case t.held() && t.v.spanMillis < patienceMillis:
			f.Code, f.Culprit.Operator = NotEnoughEvidence, t.op.ID
			f.Answer = fmt.Sprintf("There is not enough evidence: the watermark of %s stands still though a part of its input is beyond the end of a window. "+
				"Looks that are %s apart do not tell a pause from silence; that takes %s.", quoted(t.v.nameOf(t.op.ID)), duration(t.v.spanMillis), duration(patienceMillis))
			return
		case t.late.inGrown.Or(0) == 0:
			continue // nothing comes, so nothing can move it
		case !t.waitsFor(t.stoodMillis()):
			f.Answer = fmt.Sprintf("Nothing waits: the watermark of %s stands still, and nothing is due there.", quoted(t.v.nameOf(t.op.ID)))
		case len(t.pausing()) > 0:
			f.Answer = fmt.Sprintf("The watermark of %s waits for %s, which has not been silent for long yet.", quoted(t.v.nameOf(t.op.ID)), t.hold.src.these(t.pausing()))
		case t.cut() > 0:
			f.Answer = fmt.Sprintf("Nothing holds event time back, if timestamps are cut to whole units of %s: the watermark of %s waits for the next.", duration(t.cut()), quoted(t.v.nameOf(t.op.ID)))
		case t.v.spanMillis >= patienceMillis:
			f.Code, f.Culprit.Operator = NotEnoughEvidence, t.op.ID
			f.Answer = fmt.Sprintf("There is not enough evidence: the watermark of %s has stood still at %s for %s at least, though records come and something is due; what was seen does not tell why.",
				quoted(t.v.nameOf(t.op.ID)), instant(t.in.Value), duration(t.stoodMillis()))
			return
		}
	}
}

// pausing returns the splits that hold a target and have no records just now.
func (t *target) pausing() []split {
	var quiet []split
	if t.hold.allIdle || t.hold.src == nil {
		return nil
	}
	for _, sp := range t.hold.splits {
		if s, ok := sp.silent(); ok && s.millis > 5*t.v.intervalMillis() {
			quiet = append(quiet, sp)
		}
	}
	return quiet
}

// heldWhy says what holds a target, if that is known to have no records.
func (t *target) heldWhy() string {
	quiet := t.pausing()
	if len(quiet) == 0 {
		return ""
	}
	s, _ := quiet[0].silent()
	if s.never {
		return fmt.Sprintf(": %s %s no record yet", t.hold.src.these(quiet), verb(len(quiet), "has", "have"))
	}
	return fmt.Sprintf(": of %s %s", t.hold.src.these(quiet), s.lastRecord())
}

// closedBySilence says of a finding that nothing comes that it keeps no window open, if they
// close by themselves.
func (t *target) closedBySilence(f Finding) Finding {
	after := t.op.SilenceMillis
	if after <= 0 {
		return f
	}
	silent, _ := f.Number("silent_ms")
	f.Severity, f.Culprit.Operator = Fine, t.op.ID // not that of others behind the source
	f.Answer = fmt.Sprintf("Nothing comes: all %s are silent, for %s. %s waits for nothing: it closes its windows after %s of silence.", t.topics(), duration(silent), t.title(), duration(after))
	f.Why, f.Fixes = nil, nil
	return f.fix(t, CheckProducer)
}
