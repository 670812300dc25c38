package eventtime_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/eventtime"
)

// log records what a generator emits.
type log struct{ calls []int64 }

func (l *log) EmitWatermark(t int64) { l.calls = append(l.calls, t) }
func (l *log) MarkIdle()             { panic("a generator does not mark itself idle") }
func (l *log) MarkActive()           { panic("a generator does not mark itself active") }

func TestGenerators(t *testing.T) {
	tests := []struct {
		name       string
		strategy   eventtime.WatermarkStrategy[string]
		timestamps []int64
		want       int64
		silent     bool
	}{
		{
			name:     "bounded before any event",
			strategy: eventtime.ForBoundedOutOfOrderness[string](10 * time.Millisecond),
			want:     math.MinInt64,
		},
		{
			name:       "bounded keeps the largest",
			strategy:   eventtime.ForBoundedOutOfOrderness[string](10 * time.Millisecond),
			timestamps: []int64{100, 50, 99},
			want:       89,
		},
		{
			name:       "a fraction of a millisecond is cut off",
			strategy:   eventtime.ForBoundedOutOfOrderness[string](10*time.Millisecond + 900*time.Microsecond),
			timestamps: []int64{100},
			want:       89,
		},
		{
			name:       "a record without timestamp changes nothing",
			strategy:   eventtime.ForBoundedOutOfOrderness[string](time.Hour),
			timestamps: []int64{eventtime.MinTimestamp},
			want:       math.MinInt64,
		},
		{
			name:       "monotonous",
			strategy:   eventtime.ForMonotonousTimestamps[string](),
			timestamps: []int64{7},
			want:       6,
		},
		{
			name:       "none",
			strategy:   eventtime.NoWatermarks[string](),
			timestamps: []int64{7},
			silent:     true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out log
			g := tt.strategy.NewGenerator()
			for _, ts := range tt.timestamps {
				g.OnEvent("", ts, &out)
			}
			if len(out.calls) > 0 {
				t.Fatalf("emitted %v on events", out.calls)
			}
			g.OnPeriodicEmit(&out)
			want := []int64{tt.want}
			if tt.silent {
				want = nil
			}
			if diff := cmp.Diff(want, out.calls); diff != "" {
				t.Errorf("periodic call (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGeneratorsOfOneStrategyShareNothing(t *testing.T) {
	s := eventtime.ForMonotonousTimestamps[int]()
	first, second := s.NewGenerator(), s.NewGenerator()
	var out log
	first.OnEvent(0, 100, &out)
	second.OnPeriodicEmit(&out)
	if diff := cmp.Diff([]int64{math.MinInt64}, out.calls); diff != "" {
		t.Errorf("the second generator (-want +got):\n%s", diff)
	}
}

// TestBatchEqualsEvents: OnBatch is OnEvent for each record.
func TestBatchEqualsEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.Int64Range(0, 1000).Draw(t, "bound")
		batches := rapid.SliceOf(rapid.SliceOf(rapid.Int64())).Draw(t, "batches")
		s := eventtime.ForBoundedOutOfOrderness[int](time.Duration(bound) * time.Millisecond)
		single, batched := s.NewGenerator(), s.NewGenerator()
		var want, got log
		for _, timestamps := range batches {
			for _, ts := range timestamps {
				single.OnEvent(0, ts, &want)
			}
			batched.(eventtime.BatchGenerator[int]).OnBatch(make([]int, len(timestamps)), timestamps)
			single.OnPeriodicEmit(&want)
			batched.OnPeriodicEmit(&got)
		}
		if diff := cmp.Diff(want.calls, got.calls); diff != "" {
			t.Fatalf("batched (-single +batched):\n%s", diff)
		}
	})
}

func TestStrategyIsAValue(t *testing.T) {
	base := eventtime.ForMonotonousTimestamps[int]()
	full := base.
		WithTimestampAssigner(func(v int, millis int64) int64 { return int64(v) + millis }).
		WithIdleness(time.Minute).
		WithWatermarkAlignment("g", 20*time.Second, eventtime.DefaultAlignmentInterval)

	if base.TimestampAssigner() != nil || base.Idleness() != 0 {
		t.Error("With methods changed their receiver")
	}
	if _, on := base.Alignment(); on {
		t.Error("WithWatermarkAlignment changed its receiver")
	}
	if got := full.TimestampAssigner()(2, eventtime.RecordTime{Millis: 40}); got != 42 {
		t.Errorf("assigned %d, want 42", got)
	}
	got, on := full.Alignment()
	want := eventtime.Alignment{Group: "g", MaxDrift: 20 * time.Second, UpdateInterval: time.Second}
	if !on || got != want {
		t.Errorf("Alignment() = %v, %t, want %v, true", got, on, want)
	}
	if err := full.Validate(); err != nil {
		t.Errorf("Validate() = %v", err)
	}
	if got := full.WithIdleness(time.Hour).Idleness(); got != time.Hour {
		t.Errorf("the last WithIdleness does not count: %v", got)
	}
}

func TestRecordTimestampAssignerSeesTheType(t *testing.T) {
	s := eventtime.NoWatermarks[int]().WithRecordTimestampAssigner(func(_ int, r eventtime.RecordTime) int64 {
		if r.Type != eventtime.LogAppendTime {
			return eventtime.MinTimestamp
		}
		return r.Millis
	})
	assign := s.TimestampAssigner()
	if got := assign(0, eventtime.RecordTime{Millis: 5, Type: eventtime.LogAppendTime}); got != 5 {
		t.Errorf("log append time: %d, want 5", got)
	}
	if got := assign(0, eventtime.RecordTime{Millis: 5, Type: eventtime.CreateTime}); got != eventtime.MinTimestamp {
		t.Errorf("create time: %d, want MinTimestamp", got)
	}
}

func TestStrategyString(t *testing.T) {
	identity := func(v int64, _ int64) int64 { return v }
	tests := []struct {
		strategy eventtime.WatermarkStrategy[int64]
		want     string
	}{
		{eventtime.ForBoundedOutOfOrderness[int64](20 * time.Second).WithIdleness(time.Minute), "bounded-out-of-orderness 20s, idleness 1m"},
		{eventtime.ForBoundedOutOfOrderness[int64](0), "bounded-out-of-orderness 0s"},
		{eventtime.ForMonotonousTimestamps[int64]().WithTimestampAssigner(identity), "monotonous-timestamps, timestamp assigner"},
		{eventtime.NoWatermarks[int64]().WithIdleness(2 * time.Hour), "no-watermarks, idleness 2h"},
		{eventtime.NoWatermarks[int64]().WithIdleness(90 * time.Second), "no-watermarks, idleness 1m30s"},
		{
			eventtime.ForGenerator(func() eventtime.WatermarkGenerator[int64] { return nil }).
				WithWatermarkAlignment("g", 30*time.Second, time.Second),
			"custom generator, alignment in group g with drift 30s every 1s",
		},
		{eventtime.WatermarkStrategy[int64]{}, "no strategy"},
	}
	for _, tt := range tests {
		if got := tt.strategy.String(); got != tt.want {
			t.Errorf("String() = %q, want %q", got, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	ok := eventtime.NoWatermarks[int]()
	tests := []struct {
		name     string
		strategy eventtime.WatermarkStrategy[int]
		// want are parts of the message; none means valid.
		want []string
	}{
		{"bound", eventtime.ForBoundedOutOfOrderness[int](-time.Second), []string{"ForBoundedOutOfOrderness(-1s)", "0 or more"}},
		{"no generator", eventtime.ForGenerator[int](nil), []string{"ForGenerator(nil)"}},
		{"no assigner", ok.WithTimestampAssigner(nil), []string{"WithTimestampAssigner(nil)"}},
		{"no record assigner", ok.WithRecordTimestampAssigner(nil), []string{"WithRecordTimestampAssigner(nil)"}},
		{"idleness", ok.WithIdleness(0), []string{"WithIdleness(0s)", "more than 0"}},
		{"group", ok.WithWatermarkAlignment("", 0, time.Second), []string{`WithWatermarkAlignment("", 0s, 1s)`, "must have a name"}},
		{"drift", ok.WithWatermarkAlignment("g", -1, time.Second), []string{"drift must be 0 or more"}},
		{"interval", ok.WithWatermarkAlignment("g", 0, time.Microsecond), []string{"interval must be 1ms or more"}},
		{"all at once", eventtime.ForBoundedOutOfOrderness[int](-1).WithIdleness(-1), []string{"ForBoundedOutOfOrderness(-1ns)", "WithIdleness(-1ns)"}},
		{"zero value", eventtime.WatermarkStrategy[int]{}, []string{"zero value", "NoWatermarks"}},
		{"zero value with wrappers", eventtime.WatermarkStrategy[int]{}.WithIdleness(time.Second), []string{"zero value"}},
		{"zero drift is allowed", ok.WithWatermarkAlignment("g", 0, time.Millisecond), nil},
		{"idleness below a millisecond is allowed", ok.WithIdleness(1), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.strategy.Validate()
			if len(tt.want) == 0 {
				if err != nil {
					t.Fatalf("Validate() = %v, want nil", err)
				}
				return
			}
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("Validate() = %v, want it to say %q", err, part)
				}
			}
		})
	}
}
