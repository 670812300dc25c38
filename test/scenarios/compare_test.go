package scenarios

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// difference compares results as the README says: all of them exactly but the times at
// which windows fire, which may differ by three watermark intervals or one second.
func difference(want, got *Results, watermarkIntervalMillis int64) string {
	tolerance := max(3*watermarkIntervalMillis, 1000)
	return gocmp.Diff(sorted(want), sorted(got), cmpopts.EquateEmpty(), gocmp.Comparer(func(a, b FiredWindow) bool {
		if apart := a.FiredAtMillis - b.FiredAtMillis; apart < -tolerance || apart > tolerance {
			return false
		}
		a.FiredAtMillis = b.FiredAtMillis
		return a == b
	}))
}

// sorted returns r with its windows in order.
func sorted(r *Results) Results {
	s := *r
	s.Windows = slices.SortedFunc(slices.Values(r.Windows), func(a, b FiredWindow) int {
		return cmp.Or(cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.FiredAtMillis, b.FiredAtMillis))
	})
	return s
}

func TestDifference(t *testing.T) {
	results := func() *Results {
		return &Results{
			Windows: []FiredWindow{
				{"w", "a", 0, 1000, 3, 5000},
				{"w", "b", 0, 1000, 2, 5000},
				{"w", "a", 1000, 2000, 1, 9000},
			},
			LateTotal:       2,
			LateByPartition: map[string]map[int32]int64{"t": {0: 1, 1: 1}},
			OpenWindows:     map[string]int64{"w": 1},
			Watermark:       map[string]Instant{"w": 2500},
		}
	}
	tests := []struct {
		name   string
		change func(*Results)
		// want is part of the difference, empty if there must be none.
		want string
	}{
		{"nothing", func(*Results) {}, ""},
		{"order", func(r *Results) { slices.Reverse(r.Windows) }, ""},
		{"fired a second later", func(r *Results) { r.Windows[0].FiredAtMillis += 1000 }, ""},
		{"fired more than a second later", func(r *Results) { r.Windows[0].FiredAtMillis += 1001 }, "at 6001"},
		{"fired more than a second earlier", func(r *Results) { r.Windows[0].FiredAtMillis -= 1001 }, "at 3999"},
		{"count", func(r *Results) { r.Windows[0].Count++ }, "count 4"},
		{"key", func(r *Results) { r.Windows[0].Key = "c" }, "w c"},
		{"missing window", func(r *Results) { r.Windows = r.Windows[1:] }, "w a [0, 1000)"},
		{"window twice", func(r *Results) { r.Windows = append(r.Windows, r.Windows[0]) }, "w a [0, 1000)"},
		{"late", func(r *Results) { r.LateTotal++ }, "LateTotal"},
		{"late elsewhere", func(r *Results) { r.LateByPartition["t"] = map[int32]int64{0: 2} }, "LateByPartition"},
		{"open", func(r *Results) { r.OpenWindows["w"] = 0 }, "OpenWindows"},
		{"watermark", func(r *Results) { r.Watermark["w"]++ }, "Watermark"},
		{"no watermark", func(r *Results) { r.Watermark["w"] = Min }, "min"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := results()
			test.change(got)
			diff := difference(results(), got, 200)
			if (diff != "") != (test.want != "") || !strings.Contains(diff, test.want) {
				t.Errorf("the difference is %q, want %q in it", diff, test.want)
			}
		})
	}
	slow := results()
	slow.Windows[0].FiredAtMillis += 3000
	if diff := difference(results(), slow, 1000); diff != "" {
		t.Errorf("three intervals later is different:\n%s", diff)
	}
}
