package lowwater_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowwater/lowwater"
)

func TestConnectCallsAFunctionPerInput(t *testing.T) {
	for _, parallelism := range []int{1, 2} {
		env := lowwater.NewEnvironment(lowwater.WithParallelism(parallelism))
		numbers, words := lowwater.FromSlice(env, []int{1, 2, 3}), lowwater.FromSlice(env, []string{"a", "b"})
		both := numbers.Connect(words)
		mapped := both.Map(func(n int) string { return fmt.Sprint("n", n) }, strings.ToUpper).Collect()
		flat := both.FlatMap(
			func(n int, emit func(string)) {
				for range n {
					emit(fmt.Sprint(n))
				}
			},
			func(string, func(string)) {}).Collect()
		tag := lowwater.NewOutputTag[string]("words")
		processed := both.Process(
			func(_ *lowwater.ProcessContext, n int, out *lowwater.Collector[int]) error { out.Emit(-n); return nil },
			func(ctx *lowwater.ProcessContext, w string, _ *lowwater.Collector[int]) error {
				ctx.Output(tag, w)
				return nil
			})
		negated, side := processed.Collect(), processed.SideOutput(tag).Collect()
		if err := env.Execute(t.Context(), "connect"); err != nil {
			t.Fatal(err)
		}
		sorted(t, mapped.Values(), "A", "B", "n1", "n2", "n3")
		sorted(t, flat.Values(), "1", "2", "2", "3", "3", "3")
		sorted(t, negated.Values(), -3, -2, -1)
		sorted(t, side.Values(), "a", "b")
	}
}

func sorted[T interface{ ~int | ~string }](t *testing.T, got []T, want ...T) {
	t.Helper()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
