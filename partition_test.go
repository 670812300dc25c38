package lowwater_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lowwater/lowwater"
)

func TestPartitionBy(t *testing.T) {
	env := newEnv()
	got := lowwater.FromSlice(env, upTo(3000)).
		PartitionBy(func(v, subtasks int) int { return v * subtasks / 3000 }).
		Process(func(ctx *lowwater.ProcessContext, v int, out *lowwater.Collector[string]) error {
			if v%500 == 0 {
				out.Emit(fmt.Sprint(v, " at ", ctx.Subtask()))
			}
			return nil
		}).Parallelism(3).Collect()
	execute(t, env)
	expect(t, "subtasks", got.Values(), "0 at 0", "500 at 0", "1000 at 1", "1500 at 1", "2000 at 2", "2500 at 2")
}

func TestPartitionByOutOfRange(t *testing.T) {
	for _, result := range []int{-1, 3} {
		env := newEnv()
		lowwater.FromSlice(env, []string{"good", "bad"}).Name("words").PartitionBy(func(v string, _ int) int {
			if v == "bad" {
				return result
			}
			return 0
		}).Map(func(v string) string { return v }).Parallelism(3).Collect()
		err := env.Execute(t.Context(), "test")
		var where *lowwater.OperatorError
		if !errors.As(err, &where) || where.Operator != "words" {
			t.Fatalf("error %v, want one of the sender", err)
		}
		if want := fmt.Sprintf("the partitioner returned %d for the record bad: it must return a number from 0 to 2", result); !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestPartitionByMistakes(t *testing.T) {
	env := newEnv()
	lowwater.FromSlice(env, upTo(3)).PartitionBy(nil).Collect()
	wantBuildError(t, env, "PartitionBy: the function is nil")
	env = newEnv()
	lowwater.FromSlice(env, upTo(3)).PartitionBy(func(int, int) int { return 0 }).KeyBy(func(v int) int { return v }).Reduce(func(a, b int) int { return a }).Collect()
	wantBuildError(t, env, "KeyBy: CUSTOM has no effect before KeyBy")
}
