package why

import "testing"

// TestLongestPause: a pause is as long as was seen, not as long as the time between two looks
// with records of which nobody knows when they came.
func TestLongestPause(t *testing.T) {
	const start = 1_900_000_000_000
	for name, test := range map[string]struct {
		looks   []int64 // in seconds
		records []int64 // when they come
		want    int64   // ms, 0 for unknown
	}{
		"every ten seconds, seen every five":   {[]int64{60, 65, 70, 75, 80, 85, 90}, []int64{52, 62, 72, 82}, 10_000},
		"every ten seconds, seen every minute": {[]int64{60, 120}, []int64{54, 64, 74, 84, 94, 104, 114}, 6000},
		"a batch after a long pause":           {[]int64{60, 120}, []int64{10, 95, 96, 97}, 87_000},
		"no record since":                      {[]int64{60, 120}, []int64{10}, 0},
	} {
		e := &Evidence{StartedMillis: Know[int64](start), Operators: []Operator{{ID: "s", Kind: KindSource, Parallelism: 1, Source: &Source{}}}}
		for _, at := range test.looks {
			sp := Split{Source: "s", Topic: "t", Subtask: Know(0), LastReadMillis: Know(Never), Records: Know[int64](0)}
			for _, r := range test.records {
				if r <= at {
					sp.LastReadMillis, sp.Records.Value = Know(start+1000*r), sp.Records.Value+1
				}
			}
			e.AtMillis = start + 1000*at
			e.History = append(e.History, Snapshot{AtMillis: e.AtMillis, Splits: []Split{sp}})
		}
		if got := newView(e).sources[0].splits[0].longestPause(); got.Value != test.want || got.OK != (test.want > 0) {
			t.Errorf("%s: %v, want %d ms", name, got, test.want)
		}
	}
}
