package flink

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/plan"
)

// describe tells from its text what an operator does to event time. What it cannot tell
// is a plain operator.
func describe(c chained) why.Operator {
	text := c.text
	if strings.HasPrefix(c.name, sourcePrefix) || strings.HasPrefix(text, sourcePrefix) {
		return why.Operator{Kind: why.KindSource, Source: &why.Source{}}
	}
	if m := sqlLine.FindStringSubmatch(text); m != nil {
		return describeSQL(m[2], text)
	}
	if rest, ok := strings.CutPrefix(text, "Window("); ok {
		if w, eventTime := dataStreamWindow(rest); eventTime {
			return why.Operator{Kind: why.KindWindow, Window: w}
		}
		return why.Operator{Kind: why.KindPlain}
	}
	if strings.HasPrefix(text, "window.") { // ours
		if w := plan.WindowOf(text); w != nil && !strings.Contains(text, ".ProcessingTime()") {
			return why.Operator{Kind: why.KindWindow, Window: w}
		}
	}
	for _, name := range []string{text, c.name} {
		if kind, ok := defaultNames[name]; ok {
			return why.Operator{Kind: kind, Interval: name == "Interval Join"}
		}
	}
	return why.Operator{Kind: why.KindPlain}
}

// defaultNames are the names that the DataStream API gives.
var defaultNames = map[string]why.OperatorKind{
	"Timestamps/Watermarks":      why.KindAssign,
	"Filter":                     why.KindFilter,
	"Interval Join":              why.KindJoin,
	"Co-Map":                     why.KindConnect,
	"Co-Flat Map":                why.KindConnect,
	"Co-Process":                 why.KindConnect,
	"Co-Keyed-Process":           why.KindTimers,
	"Co-Process-Broadcast":       why.KindConnect,
	"Co-Process-Broadcast-Keyed": why.KindTimers,
	"KeyedProcess":               why.KindTimers,
}

var (
	dsWindow = regexp.MustCompile(`^(\w+)\(([\d, ]*)\)`)
	sqlSpan  = regexp.MustCompile(`(\w+)=\[(\d+ \w+(?: \d+ \w+)*)\]`)
	sqlFunc  = regexp.MustCompile(`window=\[(\w+)\(([^)]*)\)`)
	rowBound = regexp.MustCompile(`watermark=\[\(?[^,\]]*? - (\d+):INTERVAL`)
)

// dataStreamWindow reads "TumblingEventTimeWindows(5000), EventTimeTrigger, Count)". It
// reports false for windows that do not wait for watermarks.
func dataStreamWindow(text string) (*why.Window, bool) {
	m := dsWindow.FindStringSubmatch(text)
	if m == nil {
		name, _, _ := strings.Cut(text, ",")
		return nil, strings.Contains(name, "EventTime")
	}
	var n []int64
	for part := range strings.SplitSeq(m[2], ",") {
		if v, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64); err == nil {
			n = append(n, v)
		}
	}
	switch {
	case m[1] == "TumblingEventTimeWindows" && len(n) == 1:
		return &why.Window{Kind: why.Tumbling, SizeMillis: n[0]}, true
	case m[1] == "SlidingEventTimeWindows" && len(n) == 2:
		return &why.Window{Kind: why.Sliding, SizeMillis: n[0], SlideMillis: n[1]}, true
	case m[1] == "EventTimeSessionWindows" && len(n) == 1:
		return &why.Window{Kind: why.Session, GapMillis: n[0]}, true
	}
	return nil, strings.Contains(m[1], "EventTime")
}

func describeSQL(operator, text string) why.Operator {
	switch {
	case operator == "WatermarkAssigner":
		s := &why.Strategy{Kind: why.StrategyRows, Timestamps: why.FromPayload}
		if m := rowBound.FindStringSubmatch(text); m != nil {
			if bound, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				s.BoundMillis = why.Know(bound)
			}
		}
		return why.Operator{Kind: why.KindAssign, Strategy: s}
	case operator == "GlobalWindowAggregate", operator == "WindowAggregate", operator == "GroupWindowAggregate",
		operator == "WindowTableFunction", operator == "WindowRank", operator == "WindowDeduplicate":
		if strings.Contains(text, "PROCTIME") {
			return why.Operator{Kind: why.KindPlain}
		}
		return why.Operator{Kind: why.KindWindow, Window: sqlWindow(text)}
	case operator == "WindowJoin", operator == "IntervalJoin", operator == "TemporalJoin":
		return why.Operator{Kind: why.KindJoin}
	case operator == "Match", operator == "OverAggregate", operator == "TemporalSort":
		return why.Operator{Kind: why.KindTimers}
	case operator == "Calc" && strings.Contains(text, "where=["):
		return why.Operator{Kind: why.KindFilter}
	}
	return why.Operator{Kind: why.KindPlain}
}

// sqlWindow reads "window=[HOP(time_col=[ts], size=[10 s], slide=[5 s])]".
func sqlWindow(text string) *why.Window {
	m := sqlFunc.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	spans := map[string]int64{}
	for _, s := range sqlSpan.FindAllStringSubmatch(m[2], -1) {
		if millis, ok := sqlMillis(s[2]); ok {
			spans[s[1]] = millis
		}
	}
	switch w := (&why.Window{SizeMillis: spans["size"], SlideMillis: spans["slide"], OffsetMillis: spans["offset"]}); {
	case m[1] == "TUMBLE" && w.SizeMillis > 0:
		w.Kind = why.Tumbling
		return w
	case m[1] == "HOP" && w.SizeMillis > 0 && w.SlideMillis > 0:
		w.Kind = why.Sliding
		return w
	case m[1] == "CUMULATE" && spans["max_size"] > 0 && spans["step"] > 0:
		return &why.Window{Kind: why.Sliding, SizeMillis: spans["max_size"], SlideMillis: spans["step"]}
	case m[1] == "SESSION" && spans["gap"] > 0:
		return &why.Window{Kind: why.Session, GapMillis: spans["gap"]}
	}
	return nil
}

// sqlMillis reads "1 min 30 s", as Flink writes durations in plans.
func sqlMillis(text string) (int64, bool) {
	var total time.Duration
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i += 2 {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, false
		}
		unit := map[string]time.Duration{
			"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
			"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
		}[strings.TrimSuffix(fields[i+1], "s")]
		if fields[i+1] == "s" || fields[i+1] == "ms" {
			unit = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond}[fields[i+1]]
		}
		if unit == 0 {
			return 0, false
		}
		total += time.Duration(n) * unit
	}
	return total.Milliseconds(), total > 0
}
