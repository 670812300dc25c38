package operator

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/metric"
)

func TestFutureLimitKeepsAndCounts(t *testing.T) {
	f := newFutureLimit(eventtime.NoWatermarks[string]().WithMaxFutureSkew(time.Minute))
	limit := f.at(1_000_000)
	if limit != 1_060_000 {
		t.Fatalf("the limit is %d", limit)
	}
	rt := &Runtime{Splits: &SplitRegistry{}}
	origin := func(offset int64) connector.Origin {
		return connector.MakeOrigin(rt.Splits.Number(0, "orders", "orders-2"), offset)
	}
	b := connector.NewPool[string]().Get()
	b.Append("now", 1_000_000, origin(1))
	b.Append("just within", limit, origin(2))
	if f.exceeded(b, limit) {
		t.Error("a timestamp at the limit exceeds it")
	}
	b.Append("tomorrow", 1_000_000+86_400_000, origin(3))
	b.Append("before", 5, origin(4))
	if !f.exceeded(b, limit) {
		t.Fatal("tomorrow does not exceed the limit")
	}
	var counted metric.Sampled
	values, times := f.within(b, limit, rt, &counted)
	if !slices.Equal(values, []string{"now", "just within", "before"}) || !slices.Equal(times, []int64{1_000_000, limit, 5}) {
		t.Errorf("kept %v at %v", values, times)
	}
	got := counted.Value()
	if got.Count != 1 || len(got.Latest) != 1 {
		t.Fatalf("counted %+v", got)
	}
	for _, part := range []string{"record 3 of orders orders-2", "24h0m0s ahead"} {
		if !strings.Contains(got.Latest[0], part) {
			t.Errorf("the sample %q does not say %q", got.Latest[0], part)
		}
	}
}

func TestWithoutFutureLimitNothingExceeds(t *testing.T) {
	f := newFutureLimit(eventtime.NoWatermarks[string]())
	b := connector.NewPool[string]().Get()
	b.Append("end of time", math.MaxInt64, 0)
	if limit := f.at(0); f.exceeded(b, limit) || b.Timestamps[0] > limit {
		t.Error("there is no limit, but MaxTimestamp exceeds it")
	}
}
