package keyedop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSorter(t *testing.T) {
	h := newHarness(t)
	h.open(t, NewSorter[string, row](""))
	for i, at := range []int64{30, 10, 20, 10, 30} {
		must(t, h.send(0, "a", i, at))
	}
	must(t, h.send(0, "b", 5, 15))
	must(t, h.op.Watermark(20))
	must(t, h.send(0, "a", 6, 20)) // late: its turn has passed
	must(t, h.send(0, "a", 7, 21))
	must(t, h.op.Watermark(math.MaxInt64))
	var got []string
	for _, r := range h.out.take() {
		got = append(got, asJSON(t, []result{r})...)
	}
	want := []string{
		`{"row":["a",1],"ts":10}`, `{"row":["a",3],"ts":10}`, `{"row":["b",5],"ts":15}`, `{"row":["a",2],"ts":20}`, `{"watermark":20}`,
		`{"row":["a",7],"ts":21}`, `{"row":["a",0],"ts":30}`, `{"row":["a",4],"ts":30}`, `{"watermark":9223372036854775807}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
	if m := h.metrics; m.NumLateRecords.Value() != 1 || m.NumLateRecordsDropped.Value() != 1 || m.Late.Latest()[0].Timestamp != 20 {
		t.Errorf("%d late, %d dropped: %v", m.NumLateRecords.Value(), m.NumLateRecordsDropped.Value(), m.Late.Latest())
	}
	if n := h.op.(*sorter[string, row]).keys.Len(); n != 0 {
		t.Errorf("%d keys left", n)
	}
	wantError(t, h.send(0, "a", 1, math.MinInt64), "no timestamp", "key a")
}

func TestSorterLateOutput(t *testing.T) {
	h := newHarness(t)
	h.open(t, NewSorter[string, row]("late"))
	must(t, h.op.Watermark(20))
	must(t, h.send(0, "a", 6, 20))
	if diff := cmp.Diff([]string{`{"late":["a",6],"ts":20}`, `{"watermark":20}`}, asJSON(t, h.out.take())); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
	if m := h.metrics; m.NumLateRecords.Value() != 1 || m.NumLateRecordsDropped.Value() != 0 {
		t.Errorf("%d late, %d dropped", m.NumLateRecords.Value(), m.NumLateRecordsDropped.Value())
	}
}

// Whatever the order of arrival and the watermarks between, what is not late comes out
// sorted and whole.
func TestSorterSortsEverything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 100 {
		h := newHarness(t)
		h.open(t, NewSorter[string, row](""))
		watermark, late := int64(math.MinInt64), 0
		var want []string
		for n := range 300 {
			if r.IntN(10) == 0 {
				watermark = max(watermark, int64(n)-r.Int64N(20))
				must(t, h.op.Watermark(watermark))
				continue
			}
			key, at := string(rune('a'+r.IntN(4))), int64(n)+r.Int64N(30)-15
			must(t, h.send(0, key, n, at))
			if at <= watermark {
				late++
				continue
			}
			want = append(want, fmt.Sprint(key, n, at))
		}
		must(t, h.op.Watermark(math.MaxInt64))
		var got []string
		var times []int64
		for _, r := range h.out.take() {
			if v, ok := r["row"].([]any); ok {
				got = append(got, fmt.Sprint(v[0], v[1], r["ts"]))
				times = append(times, r["ts"].(int64))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.IsSorted(times) || !slices.Equal(got, want) || h.metrics.NumLateRecords.Value() != int64(late) {
			t.Fatalf("sorted: %v; %d late, want %d; records (-want +got):\n%s", slices.IsSorted(times), h.metrics.NumLateRecords.Value(), late, cmp.Diff(want, got))
		}
	}
}
