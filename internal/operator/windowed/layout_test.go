package windowed

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/window"
)

// A layout's windows are the assigner's, and consist of its slices.
func TestLayoutIsTheAssigners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAssigner(t)
		l, ok := layoutOf(a)
		if !ok {
			return
		}
		at := rapid.Int64Range(-1000, 1000).Draw(t, "time")
		i := l.slice(at)
		span := l.span(i)
		if at < span.Start || at >= span.End || l.slice(span.Start) != i || l.slice(span.End) != i+1 {
			t.Fatalf("%v: slice %d of time %d is %v", a, i, at, span)
		}
		want, err := a.Assign(nil, at, at)
		if err != nil {
			t.Fatal(err)
		}
		var got []window.TimeWindow
		first, last := l.windows(i)
		for k := first; k <= last; k++ {
			got = append(got, l.window(k))
			lo, hi := l.slices(k)
			if l.span(lo).Start != l.window(k).Start || l.span(hi-1).End != l.window(k).End {
				t.Fatalf("%v: window %v has slices %v to %v", a, l.window(k), l.span(lo), l.span(hi-1))
			}
			end := l.maxTimestamp(k)
			if l.after(end-1) != k || l.after(end) != k+1 {
				t.Fatalf("%v: windows after %d and %d: %d and %d, want %d and the next", a, end-1, end, l.after(end-1), l.after(end), k)
			}
		}
		if !l.cumulating {
			slices.Reverse(got)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v: windows of %d (-assigner +layout):\n%s", a, at, diff)
		}
	})
}
