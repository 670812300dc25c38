package why

import (
	"fmt"
	"strings"
)

// remedy is what a fix looks like. Texts have fields in braces: {source}, {topic}, {op},
// {n}, and a length of time as {d} for people, {go}, {java}, {sql} and {option} in code.
type remedy struct {
	do, golang, java, sql, costs string
	// broker is what follows in Go for a source that reads Kafka.
	broker string
	// length and number give {d} and {n}; nil if there is none in the texts.
	length func(*Finding, *target) int64
	number func(*Finding, *target) int64
}

// fix adds what helps, best first. The target is the operator that shows the trouble, nil
// if there is none.
func (f Finding) fix(t *target, codes ...FixCode) Finding {
	if t != nil && t.op.Interval && f.Severity == Stall {
		f.Why = append(f.Why, "An interval join pairs records as they come. What it waits for is to forget them: until then its state grows.")
	}
	kafka := true
	if t != nil {
		for _, feed := range t.feeds {
			kafka = kafka && (feed.src.op.ID != f.Culprit.Source || feed.src.kafka())
		}
	}
	for _, code := range codes {
		r := remedies[code]
		if code == LateSideOutput && t != nil && t.late.aside {
			continue // it has one
		}
		if kafka {
			r.golang += r.broker
		} else if strings.Contains(r.do, "{topic}") {
			continue // there is none
		}
		f.Fixes = append(f.Fixes, r.fix(code, &f, t))
	}
	return f
}

func (r remedy) fix(code FixCode, f *Finding, t *target) Fix {
	pairs := []string{"{source}", f.Culprit.Source, "{topic}", f.Culprit.Topic}
	op := f.Culprit.Operator
	if op == "" && t != nil {
		op = t.op.ID
	}
	if t != nil {
		pairs[1], op = t.v.nameOf(f.Culprit.Source), t.v.nameOf(op)
	}
	pairs = append(pairs, "{op}", op)
	if r.length != nil {
		d := max(r.length(f, t), 1)
		pairs = append(pairs, "{d}", duration(d), "{go}", goDuration(d), "{java}", javaDuration(d), "{sql}", sqlInterval(d), "{option}", optionDuration(d))
	}
	if r.number != nil {
		pairs = append(pairs, "{n}", fmt.Sprint(r.number(f, t)))
	}
	fill := strings.NewReplacer(pairs...)
	return Fix{Code: code, Do: fill.Replace(r.do), Go: fill.Replace(r.golang), Java: fill.Replace(r.java), SQL: fill.Replace(r.sql), Costs: fill.Replace(r.costs)}
}

// Lengths of time in code.

func goDuration(millis int64) string {
	unit, n := "time.Millisecond", millis
	switch {
	case millis%3_600_000 == 0:
		unit, n = "time.Hour", millis/3_600_000
	case millis%60_000 == 0:
		unit, n = "time.Minute", millis/60_000
	case millis%1000 == 0:
		unit, n = "time.Second", millis/1000
	}
	if n == 1 {
		return unit
	}
	return fmt.Sprintf("%d*%s", n, unit)
}

func javaDuration(millis int64) string {
	if millis%1000 == 0 {
		return fmt.Sprintf("Duration.ofSeconds(%d)", millis/1000)
	}
	return fmt.Sprintf("Duration.ofMillis(%d)", millis)
}

func sqlInterval(millis int64) string {
	return fmt.Sprintf("INTERVAL '%g' SECOND", float64(millis)/1000)
}

func optionDuration(millis int64) string {
	if millis%1000 == 0 {
		return fmt.Sprintf("%d s", millis/1000)
	}
	return fmt.Sprintf("%d ms", millis)
}

// Lengths that fixes propose.

// idleFor proposes an idle timeout: three times what the inputs that flow pause.
func idleFor(f *Finding, t *target) int64 {
	d := int64(30_000)
	if t == nil {
		return d
	}
	for _, feed := range t.feeds {
		for _, sp := range feed.src.splits {
			if gap := sp.typicalGapMillis(); gap.OK && sp.delivers() {
				d = max(d, min(3*gap.Value, 10*60_000))
			}
		}
	}
	return roundUp(d)
}

// longerIdle proposes three times the longest pause.
func longerIdle(f *Finding, t *target) int64 {
	gap, ok := f.Number("gap_ms")
	if !ok {
		gap, _ = f.Number("idleness_ms")
	}
	if gap == 0 {
		gap, _ = f.Number("behind_ms")
	}
	return roundUp(max(3*gap, 60_000))
}

func neededBound(f *Finding, t *target) int64 {
	if n, ok := f.Number("needed_bound_ms"); ok {
		return roundUp(n + n/10)
	}
	n, _ := f.Number("bound_ms")
	return roundUp(max(2*n, 5000))
}

func smallBound(*Finding, *target) int64 { return 60_000 }

func futureSkew(*Finding, *target) int64 { return 5 * 60_000 }

func silenceOf(f *Finding, t *target) int64 {
	d := int64(2 * 60_000)
	if t != nil && t.op.Window != nil {
		d = max(d, min(t.op.Window.everyMillis(), 3_600_000))
	}
	return d
}

func windowTenth(f *Finding, t *target) int64 {
	if t == nil || t.op.Window == nil {
		return 60_000
	}
	return roundUp(max(t.op.Window.everyMillis()/10, 1000))
}

func sourceBound(f *Finding, t *target) int64 {
	if t != nil {
		for _, feed := range t.feeds {
			if feed.src.op.ID == f.Culprit.Source && feed.src.gen.bound().Or(0) > 0 {
				return feed.src.gen.bound().Value
			}
		}
	}
	return 5000
}

func drift(f *Finding, t *target) int64 {
	d, _ := f.Number("drift_ms")
	return roundUp(max(10*d, 60_000))
}

func update(f *Finding, t *target) int64 {
	d, ok := f.Number("update_ms")
	if !ok {
		d = 1000
	}
	return max(d/5, 100)
}

func hours(f *Finding, t *target) int64 {
	off, _ := f.Number("offset_ms")
	return off
}

// roundUp rounds up to a number that people would write.
func roundUp(millis int64) int64 {
	for _, step := range []int64{1000, 5000, 30_000, 60_000, 5 * 60_000, 3_600_000} {
		if millis <= 20*step || step == 3_600_000 {
			return (millis + step - 1) / step * step
		}
	}
	return millis
}

// Numbers that fixes propose.

func partitions(f *Finding, t *target) int64 {
	n, _ := f.Number("partitions")
	return max(n, 1)
}

func factor(f *Finding, t *target) int64 {
	n, _ := f.Number("factor")
	return n
}

func twiceParallel(f *Finding, t *target) int64 {
	if t != nil {
		if o := t.v.ops[f.Culprit.Operator]; o != nil {
			return int64(2 * max(o.Parallelism, 1))
		}
	}
	return 2
}

func allPartitions(f *Finding, t *target) int64 {
	if t != nil {
		for _, feed := range t.feeds {
			if feed.src.op.ID == f.Culprit.Source {
				return int64(max(len(feed.src.splits), 1))
			}
		}
	}
	return 1
}
