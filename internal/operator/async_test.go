package operator

import (
	"context"
	"testing"
	"testing/synctest"
)

// openAsync opens an operator that answers a number when it is told to.
func openAsync(t *testing.T, options AsyncOptions) (op Operator, out *logged, answer func(n int)) {
	answers := map[int]chan struct{}{}
	for n := range 10 {
		answers[n] = make(chan struct{})
	}
	op = NewAsync(func(ctx context.Context, n int) (int, error) {
		select {
		case <-answers[n]:
			return -n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, options)
	out = &logged{}
	rt, _ := testRuntime(t)
	mail := make(chan func() error, 16)
	rt.Post = func(_ context.Context, f func() error) bool { mail <- f; return true }
	must(t, op.Open(rt, out))
	return op, out, func(n int) {
		close(answers[n])
		synctest.Wait()
		for len(mail) > 0 {
			must(t, (<-mail)())
		}
	}
}

func TestAsyncWatermarks(t *testing.T) {
	tests := []struct {
		name      string
		unordered bool
		// after is what is emitted after each of the answers 2, 4, 1, 3.
		after [4][]string
	}{
		{"ordered", false, [4][]string{
			nil,
			nil,
			{"[-1@10#1 -2@20#2]", "watermark 25", "idle true", "idle false"},
			{"[-3@30#3 -4@40#4]", "watermark 60"},
		}},
		{"unordered", true, [4][]string{
			{"[-2@20#2]"},
			nil,
			{"[-1@10#1]", "watermark 25", "idle true", "idle false", "[-4@40#4]"},
			{"[-3@30#3]", "watermark 60"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op, out, answer := openAsync(t, AsyncOptions{Capacity: 4, Unordered: tt.unordered})
				must(t, op.Watermark(5)) // nothing is under way
				out.expect(t, "watermark 5")
				must(t, op.Process(0, batchOf(1, 2)))
				must(t, op.Watermark(22))
				must(t, op.Watermark(25)) // with no record between
				must(t, op.Status(true))
				must(t, op.Status(false))
				must(t, op.Process(0, batchOf(3, 4)))
				must(t, op.Watermark(60))
				out.expect(t)
				for i, n := range []int{2, 4, 1, 3} {
					answer(n)
					out.expect(t, tt.after[i]...)
				}
				must(t, op.Finish())
				must(t, op.Close())
				out.expect(t)
			})
		})
	}
}
