package window_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/window"
)

type trade struct {
	Symbol string
	Price  float64
	Volume int32
}

var trades = []trade{{"A", 10.5, 3}, {"B", 7, 10}, {"A", 12, 5}}

// result is what agg makes of a window with the given records.
func result[T, A, R any](agg window.Aggregator[T, A, R], records []T) R {
	acc := agg.New()
	for _, r := range records {
		acc = agg.Add(acc, r)
	}
	return agg.Result(acc)
}

func ExampleSum() {
	fmt.Println(result(window.Sum(func(t trade) int32 { return t.Volume }), trades))
	// Output: 18
}

func ExampleMin() {
	fmt.Println(result(window.Min(func(t trade) float64 { return t.Price }), trades))
	// Output: 7
}

func ExampleMax() {
	fmt.Println(result(window.Max(func(t trade) string { return t.Symbol }), trades))
	// Output: B
}

func ExampleAverage() {
	fmt.Println(result(window.Average(func(t trade) int32 { return t.Volume }), trades))
	// Output: 6
}

// Turnover is a sum of products.
func ExampleFold() {
	turnover := window.Fold(
		func() float64 { return 0 },
		func(sum float64, t trade) float64 { return sum + t.Price*float64(t.Volume) },
		func(a, b float64) float64 { return a + b })
	fmt.Println(result(turnover, trades))
	// Output: 161.5
}

func TestReadyAggregatorsOfNothing(t *testing.T) {
	volume := func(t trade) int32 { return t.Volume }
	if n := result(window.Sum(volume), nil); n != 0 {
		t.Errorf("sum %d, want 0", n)
	}
	if n := result(window.Min(volume), nil); n != 0 {
		t.Errorf("min %d, want 0", n)
	}
	if n := result(window.Average(volume), nil); n != 0 {
		t.Errorf("average %v, want 0", n)
	}
}

func TestMinAndMaxOfNaN(t *testing.T) {
	same := func(v float64) float64 { return v }
	for _, values := range [][]float64{{math.NaN(), 1}, {1, math.NaN()}} {
		if v := result(window.Min(same), values); !math.IsNaN(v) {
			t.Errorf("min of %v is %v, want NaN", values, v)
		}
		if v := result(window.Max(same), values); v != 1 {
			t.Errorf("max of %v is %v, want 1", values, v)
		}
	}
}

// TestReadyAggregatorsMerge: however records are split into accumulators, and although
// what is merged goes on to be used, the result is that of all of them.
func TestReadyAggregatorsMerge(t *testing.T) {
	same := func(v int64) int64 { return v }
	rapid.Check(t, func(r *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-100, 100), 0, 20).Draw(r, "values")
		cut := rapid.IntRange(0, len(values)).Draw(r, "cut")
		checkMerge(r, "sum", window.Sum(same), values, cut)
		checkMerge(r, "min", window.Min(same), values, cut)
		checkMerge(r, "max", window.Max(same), values, cut)
		checkMerge(r, "average", window.Average(same), values, cut)
		checkMerge(r, "fold", window.Fold(
			func() int64 { return 0 },
			func(acc, v int64) int64 { return acc ^ v },
			func(a, b int64) int64 { return a ^ b }), values, cut)
	})
}

func checkMerge[A any, R comparable](r *rapid.T, name string, agg window.Aggregator[int64, A, R], values []int64, cut int) {
	a, b := agg.New(), agg.New()
	for _, v := range values[:cut] {
		a = agg.Add(a, v)
	}
	for _, v := range values[cut:] {
		b = agg.Add(b, v)
	}
	before := agg.Result(b)
	got := agg.Result(agg.Merge(a, b))
	if want := result(agg, values); got != want || agg.Result(b) != before {
		r.Fatalf("%s of %v cut at %d: %v, want %v", name, values, cut, got, want)
	}
}
