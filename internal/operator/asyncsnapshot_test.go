package operator

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

// asyncUnderTest is an asynchronous operator that answers a number when it is told to.
type asyncUnderTest struct {
	Operator
	out     *logged
	clock   *handClock
	answers map[int]chan struct{}
	mail    chan func() error
}

func openAsyncFrom(t *testing.T, options AsyncOptions, parallelism int, from snapshot.Reader) *asyncUnderTest {
	a := &asyncUnderTest{out: &logged{}, answers: map[int]chan struct{}{}, mail: make(chan func() error, 16)}
	for n := range 10 {
		a.answers[n] = make(chan struct{})
	}
	a.Operator = NewAsync(func(ctx context.Context, n *int) (int, error) {
		asked := *n
		*n = 77 // the function owns its record: a snapshot must not see this
		select {
		case <-a.answers[asked]:
			return -asked, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, options)
	var rt *Runtime
	rt, a.clock = testRuntime(t)
	rt.Checkpointing, rt.Parallelism, rt.Restored = true, parallelism, from
	rt.Post = func(_ context.Context, f func() error) bool { a.mail <- f; return true }
	must(t, a.Open(rt, a.out))
	return a
}

func (a *asyncUnderTest) process(t *testing.T, numbers ...int) {
	b := &connector.Batch[*int]{}
	for _, n := range numbers {
		b.Append(&n, int64(10*n), connector.MakeOrigin(1, int64(n)))
	}
	must(t, a.Process(0, b))
}

func (a *asyncUnderTest) answer(t *testing.T, n int) {
	close(a.answers[n])
	synctest.Wait()
	for len(a.mail) > 0 {
		must(t, (<-a.mail)())
	}
}

func (a *asyncUnderTest) snapshot(t *testing.T) *snapshottest.Snapshot {
	synctest.Wait()
	s, err := snapshottest.Take(3, a.Operator.(Stateful).Snapshot)
	must(t, err)
	must(t, s.Finish())
	return s
}

func shares(t *testing.T, parallelism int, taken ...*snapshottest.Snapshot) []*snapshot.Share {
	shares, err := snapshottest.Readers(taken, parallelism, 128)
	must(t, err)
	return shares
}

// What had no result at a checkpoint is tried again after a restart, in its order and with
// the signals in their places.
func TestAsyncIsRestored(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		t.Run(fmt.Sprintf("unordered %t", unordered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := AsyncOptions{Capacity: 5, Unordered: unordered}
				a := openAsyncFrom(t, options, 1, nil)
				a.process(t, 1, 2)
				must(t, a.Watermark(22))
				must(t, a.Status(true))
				must(t, a.Status(false))
				a.process(t, 3, 4)
				must(t, a.Watermark(60))
				a.answer(t, 1)
				a.answer(t, 4) // waits for the watermark before it
				a.out.expect(t, "[-1@10#1]")
				taken := a.snapshot(t)
				must(t, a.Close())

				b := openAsyncFrom(t, options, 1, shares(t, 1, taken)[0])
				must(t, b.Watermark(60)) // the task's
				b.process(t, 5)
				b.answer(t, 2)
				b.answer(t, 5)
				b.answer(t, 3)
				b.answer(t, 4)
				must(t, b.Finish())
				must(t, b.Close())
				b.out.expect(t, "[-2@20#0]", "watermark 22", "idle true", "idle false", "[-3@30#0]", "[-4@40#0]", "watermark 60", "[-5@50#5]")
			})
		})
	}
}

// A restored operator begins although nothing arrives, and another snapshot that comes
// before that holds the same.
func TestAsyncIsRestoredWithoutInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := AsyncOptions{Capacity: 5}
		a := openAsyncFrom(t, options, 1, nil)
		a.process(t, 1)
		must(t, a.Watermark(12))
		a.process(t, 2)
		taken := a.snapshot(t)
		must(t, a.Close())

		b := openAsyncFrom(t, options, 1, shares(t, 1, taken)[0])
		again := b.snapshot(t)
		want, _ := taken.Entries("under-way")
		got, _ := again.Entries("under-way")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the second snapshot (-first +second):\n%s", diff)
		}
		b.clock.advance(t, b.clock.now)
		b.answer(t, 1)
		b.answer(t, 2)
		b.out.expect(t, "[-1@10#0]", "watermark 12", "[-2@20#0]")
		must(t, b.Close())
		if len(b.clock.due) > 0 {
			t.Errorf("%d timers are left", len(b.clock.due))
		}
	})
}

// With another parallelism the places of signals are lost: all records come first.
func TestAsyncIsRescaled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := AsyncOptions{Capacity: 2}
		var taken []*snapshottest.Snapshot
		for i := range 2 {
			a := openAsyncFrom(t, options, 2, nil)
			a.process(t, 2*i+1)
			must(t, a.Watermark(int64(12-i)))
			a.process(t, 2*i+2)
			taken = append(taken, a.snapshot(t))
			must(t, a.Close())
		}
		b := openAsyncFrom(t, options, 1, shares(t, 1, taken...)[0])
		for n := 1; n <= 4; n++ {
			close(b.answers[n]) // there are more records than there is room for
		}
		must(t, b.Watermark(11))
		must(t, b.Finish())
		must(t, b.Close())
		text := strings.Join(b.out.lines, " ")
		if want := "-1@10#0 -2@20#0 -3@30#0 -4@40#0 watermark 11"; strings.NewReplacer("[", "", "]", "").Replace(text) != want {
			t.Errorf("got %s, want %s", text, want)
		}
	})
}

func TestAsyncRecordsMustBeStorable(t *testing.T) {
	op := NewAsync(func(context.Context, chan int) (int, error) { return 0, nil }, AsyncOptions{Capacity: 1})
	rt, _ := testRuntime(t)
	must(t, op.Open(rt, &logged{}))
	must(t, op.Close())
	rt.Checkpointing = true
	if err := op.Open(rt, &logged{}); err == nil || !strings.Contains(err.Error(), "asynchronous function") {
		t.Errorf("a channel: %v", err)
	}
	must(t, op.Close())
}
