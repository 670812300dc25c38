package window

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vectorWindow is [start, end], or "global".
type vectorWindow TimeWindow

func (w *vectorWindow) UnmarshalJSON(data []byte) error {
	if string(data) == `"global"` {
		*w = vectorWindow(GlobalWindow)
		return nil
	}
	var bounds [2]int64
	if err := json.Unmarshal(data, &bounds); err != nil {
		return err
	}
	*w = vectorWindow{bounds[0], bounds[1]}
	return nil
}

type vectorElement struct {
	Key   string
	Value int32
}

type vectorAssigner struct {
	Type    string      `json:"type"`
	Time    string      `json:"time"`
	Size    int64       `json:"size"`
	Slide   int64       `json:"slide"`
	Step    int64       `json:"step"`
	Offset  int64       `json:"offset"`
	Gap     int64       `json:"gap"`
	Stagger string      `json:"stagger"`
	Gaps    []vectorGap `json:"gaps"`
}

type vectorGap struct {
	Key   *string `json:"key"`
	Value *int32  `json:"value"`
	Gap   int64   `json:"gap"`
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func gapFunc(gaps []vectorGap) func(vectorElement) time.Duration {
	return func(e vectorElement) time.Duration {
		for _, g := range gaps {
			if (g.Key == nil || *g.Key == e.Key) && (g.Value == nil || *g.Value == e.Value) {
				return millis(g.Gap)
			}
		}
		return 0
	}
}

func (v vectorAssigner) build(t *testing.T) ElementAssigner[vectorElement] {
	t.Helper()
	processing := v.Time == "processing"
	if !processing && v.Time != "event" && v.Time != "" {
		t.Fatalf("unknown time %q", v.Time)
	}
	switch v.Type {
	case "tumbling", "tumble_sql":
		a := Tumbling(millis(v.Size)).Offset(millis(v.Offset))
		switch v.Stagger {
		case "":
		case "natural":
			a = a.Stagger(StaggerNatural)
		default:
			t.Fatalf("unknown stagger %q", v.Stagger)
		}
		if processing {
			a = a.ProcessingTime()
		}
		return assignElements[vectorElement]{a}
	case "sliding", "hop_sql":
		a := Sliding(millis(v.Size), millis(v.Slide)).Offset(millis(v.Offset))
		if processing {
			a = a.ProcessingTime()
		}
		return assignElements[vectorElement]{a}
	case "cumulate":
		return assignElements[vectorElement]{Cumulating(millis(v.Size), millis(v.Step)).Offset(millis(v.Offset))}
	case "session":
		a := Session(millis(v.Gap))
		if processing {
			a = a.ProcessingTime()
		}
		return assignElements[vectorElement]{a}
	case "dynamic_session":
		a := DynamicSession(gapFunc(v.Gaps))
		if processing {
			a = a.ProcessingTime()
		}
		return a
	case "global":
		return assignElements[vectorElement]{Global()}
	case "global_end_of_stream":
		return assignElements[vectorElement]{GlobalEndOfStream()}
	default:
		t.Fatalf("unknown assigner %q", v.Type)
		return nil
	}
}

type assignerCase struct {
	caseHead
	Assigner       vectorAssigner  `json:"assigner"`
	Inputs         []assignerInput `json:"inputs"`
	IsEventTime    *bool           `json:"isEventTime"`
	DefaultTrigger *string         `json:"defaultTrigger"`
	ConstructError string          `json:"constructError"`
}

type assignerInput struct {
	Timestamp      *int64         `json:"ts"`
	ProcessingTime int64          `json:"processingTime"`
	Key            string         `json:"key"`
	Value          int32          `json:"value"`
	Windows        []vectorWindow `json:"windows"`
	Error          string         `json:"error"`
}

func (in assignerInput) timestamp() int64 {
	if in.Timestamp == nil {
		return noTimestamp
	}
	return *in.Timestamp
}

func TestConformanceAssigners(t *testing.T) {
	replay(t, "assigner", func(t *testing.T, c assignerCase) {
		a := c.Assigner.build(t)
		if err := a.Validate(); (err != nil) != (c.ConstructError != "") {
			t.Fatalf("Validate: %v, want error %q", err, c.ConstructError)
		}
		if c.IsEventTime != nil && a.IsEventTime() != *c.IsEventTime {
			t.Errorf("IsEventTime: %v, want %v", a.IsEventTime(), *c.IsEventTime)
		}
		if c.DefaultTrigger != nil {
			if got := flinkTrigger(a); got != *c.DefaultTrigger {
				t.Errorf("default trigger %s, want %s", got, *c.DefaultTrigger)
			}
		}
		for i, in := range c.Inputs {
			if at, ok := a.(assignElements[vectorElement]); ok && i == 0 {
				if tumbling, ok := at.Assigner.(TumblingAssigner); ok {
					a = assignElements[vectorElement]{tumbling.Pin(in.ProcessingTime, 0)}
				}
			}
			got, err := a.Assign(nil, vectorElement{in.Key, in.Value}, in.timestamp(), in.ProcessingTime)
			if (err != nil) != (in.Error != "") {
				t.Fatalf("input %d: error %v, want %q", i, err, in.Error)
			}
			var want []TimeWindow
			for _, w := range in.Windows {
				want = append(want, TimeWindow(w))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("input %d (-want +got):\n%s", i, diff)
			}
			if a, ok := a.(assignElements[vectorElement]); ok && err == nil {
				checkSpan(t, a.Assigner, in)
			}
		}
	})
}

// flinkTrigger names the default trigger as Flink does.
func flinkTrigger(a ElementAssigner[vectorElement]) string {
	return strings.TrimSuffix(strings.TrimPrefix(DefaultTrigger(a).String(), "window."), "()")
}

// checkSpan checks that the bounds of the span around an input are assigned
// the same windows as the input.
func checkSpan(t *testing.T, a Assigner, in assignerInput) {
	t.Helper()
	at := in.timestamp()
	if !a.IsEventTime() {
		at = in.ProcessingTime
	}
	span := a.Span(at)
	if uint64(at-span.Start) >= uint64(span.End-span.Start) {
		t.Fatalf("span %v does not hold %d", span, at)
	}
	if a.Merging() || span.End < span.Start {
		return
	}
	assign := func(at int64) []TimeWindow {
		got, err := a.Assign(nil, at, at)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, other := range []int64{span.Start, span.End - 1} {
		if diff := cmp.Diff(assign(at), assign(other)); diff != "" && other != noTimestamp {
			t.Errorf("windows of %d and of %d in its span %v:\n%s", at, other, span, diff)
		}
	}
}

type windowStartCase struct {
	caseHead
	Inputs []struct {
		Timestamp int64 `json:"ts"`
		Offset    int64 `json:"offset"`
		Size      int64 `json:"size"`
		Start     int64 `json:"start"`
	} `json:"inputs"`
}

func TestConformanceWindowStart(t *testing.T) {
	replay(t, "window_start", func(t *testing.T, c windowStartCase) {
		for _, in := range c.Inputs {
			if got := Start(in.Timestamp, in.Offset, in.Size); got != in.Start {
				t.Errorf("Start(%d, %d, %d) = %d, want %d", in.Timestamp, in.Offset, in.Size, got, in.Start)
			}
		}
	})
}

type windowMergeCase struct {
	caseHead
	Windows []vectorWindow `json:"windows"`
	Merges  []struct {
		Merged []vectorWindow `json:"merged"`
		Into   vectorWindow   `json:"into"`
	} `json:"merges"`
}

func TestConformanceWindowMerge(t *testing.T) {
	replay(t, "window_merge", func(t *testing.T, c windowMergeCase) {
		var windows []TimeWindow
		for _, w := range c.Windows {
			windows = append(windows, TimeWindow(w))
		}
		var want []Merged
		for _, m := range c.Merges {
			merged := Merged{Into: TimeWindow(m.Into)}
			for _, w := range m.Merged {
				merged.From = append(merged.From, TimeWindow(w))
			}
			want = append(want, merged)
		}
		if diff := cmp.Diff(want, Merge(windows)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestValidateNamesCallValueAndLimit(t *testing.T) {
	for _, test := range []struct {
		assigner Assigner
		want     string
	}{
		{Tumbling(0), "window.Tumbling: size 0s: must be at least 1ms"},
		{Tumbling(500 * time.Microsecond), "window.Tumbling: size 500µs: must be at least 1ms"},
		{Tumbling(1500 * time.Microsecond), "window.Tumbling: size 1.5ms: must be a whole number of milliseconds"},
		{Tumbling(time.Hour).Offset(-time.Hour), "window.Tumbling: offset -1h0m0s: must lie between -1h0m0s and 1h0m0s, the size, exclusive"},
		{Tumbling(time.Hour).Offset(time.Microsecond), "window.Tumbling: offset 1µs: must be a whole number of milliseconds"},
		{Tumbling(time.Hour).Stagger(9), "window.Tumbling: stagger 9: must be StaggerNone, StaggerRandom or StaggerNatural"},
		{Sliding(time.Hour, 0), "window.Sliding: slide 0s: must be at least 1ms"},
		{Sliding(-time.Hour, time.Hour), "window.Sliding: size -1h0m0s: must be at least 1ms"},
		{Sliding(time.Hour, time.Minute).Offset(time.Minute), "window.Sliding: offset 1m0s: must lie between -1m0s and 1m0s, the slide, exclusive"},
		{Session(0), "window.Session: gap 0s: must be at least 1ms"},
		{Cumulating(time.Hour, 7*time.Minute), "window.Cumulating: step 7m0s: must divide the size 1h0m0s"},
		{Cumulating(time.Hour, time.Minute).Offset(2 * time.Hour), "window.Cumulating: offset 2h0m0s: must lie between -1h0m0s and 1h0m0s, the size, exclusive"},
		{Cumulating(time.Hour, time.Minute).Offset(5 * time.Minute), ""},
		{Sliding(time.Minute, time.Hour).Offset(-59 * time.Minute), ""},
		{Global(), ""},
	} {
		got := ""
		if err := test.assigner.Validate(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v:\n got %q\nwant %q", test.assigner, got, test.want)
		}
	}
}

func TestStringIsTheExpression(t *testing.T) {
	for _, test := range []struct {
		assigner fmt.Stringer
		want     string
	}{
		{Tumbling(time.Minute), "window.Tumbling(1m0s)"},
		{Tumbling(24 * time.Hour).Offset(-8 * time.Hour).Stagger(StaggerRandom).ProcessingTime(),
			"window.Tumbling(24h0m0s).Offset(-8h0m0s).Stagger(window.StaggerRandom).ProcessingTime()"},
		{Sliding(time.Minute, time.Second).ProcessingTime(), "window.Sliding(1m0s, 1s).ProcessingTime()"},
		{Cumulating(time.Hour, time.Minute).Offset(time.Second), "window.Cumulating(1h0m0s, 1m0s).Offset(1s)"},
		{Session(time.Second).ProcessingTime(), "window.Session(1s).ProcessingTime()"},
		{DynamicSession(func(int) time.Duration { return 0 }), "window.DynamicSession(func)"},
		{Global(), "window.Global()"},
		{GlobalEndOfStream(), "window.GlobalEndOfStream()"},
	} {
		if got := test.assigner.String(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestStagger(t *testing.T) {
	const size = 5000
	base := Tumbling(millis(size)).Offset(millis(100))
	for _, test := range []struct {
		stagger Stagger
		now     int64
		random  uint64
		start   int64
	}{
		{StaggerNone, 150, 7, 100},
		{StaggerNatural, 150, 7, 250},
		{StaggerNatural, 4999, 7, 5099 % size},
		{StaggerRandom, 150, 3 * size, 100},
		{StaggerRandom, 150, 3*size + 42, 142},
	} {
		a := base.Stagger(test.stagger).Pin(test.now, test.random)
		if got := a.Span(test.start); got.Start != test.start {
			t.Errorf("%v at %d: window %v, want start %d", test.stagger, test.now, got, test.start)
		}
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
	}
	if _, err := base.Stagger(StaggerRandom).Assign(nil, 0, 0); err == nil || !strings.Contains(err.Error(), "not pinned") {
		t.Errorf("assigning with a stagger that is not pinned: %v", err)
	}
}
