package progress

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMinTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := make([]int64, rapid.IntRange(0, 9).Draw(t, "n"))
		tree := newMinTree(len(values))
		for i := range values {
			values[i] = maxTime
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(values) == 0 || rapid.IntRange(0, 9).Draw(t, "grow") == 0 {
				values = append(values, maxTime)
				tree.grow(len(values))
			}
			i := rapid.IntRange(0, len(values)-1).Draw(t, "i")
			values[i] = rapid.Int64().Draw(t, "v")
			tree.set(i, values[i])
			if got, want := tree.min(), slices.Min(values); got != want {
				t.Fatalf("min() = %d of %v", got, values)
			}
		}
	})
}
