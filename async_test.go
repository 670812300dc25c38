package lowwater_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/window"
)

// slowly answers after a time that is the longer the smaller n is.
func slowly(ctx context.Context, e event) (event, error) {
	return e, wait(ctx, time.Duration(100-e.N)*time.Millisecond)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAsyncMapOrder(t *testing.T) {
	var events []event
	var n, reversed []int
	for i := range 10 {
		events = append(events, event{"a", int64(1000 * i), i})
		n, reversed = append(n, i), append(reversed, 9-i)
	}
	for _, tt := range []struct {
		options lowwater.Async
		want    []int
		took    time.Duration
	}{
		{lowwater.Async{}, n, 100 * time.Millisecond},
		{lowwater.Async{Unordered: true}, reversed, 100 * time.Millisecond},
		{lowwater.Async{Capacity: 1, Unordered: true}, n, 955 * time.Millisecond},
		{lowwater.Async{Capacity: 1}, n, 955 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%+v", tt.options), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				env := newEnv(lowwater.WithParallelism(1))
				got := from(env, splitsOf(10, events), bounded(time.Hour)).AsyncMap(slowly, tt.options).Collect()
				execute(t, env)
				var order []int
				for i, e := range got.Values() {
					order = append(order, e.N)
					if got.Timestamps()[i] != e.At {
						t.Errorf("%v has timestamp %d", e, got.Timestamps()[i])
					}
				}
				inOrder(t, "results", order, tt.want...)
				if took := time.Since(started); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
			})
		})
	}
}

// Results never overtake a watermark, nor a watermark results: windows behind are complete.
func TestAsyncMapKeepsWatermarks(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		for _, unordered := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var events []event
				for i := range 50 {
					events = append(events, event{string(rune('a' + i%3)), int64(100 * i), i})
				}
				env := newEnv(lowwater.WithParallelism(parallelism))
				windows := timed(env, events...).Rebalance().
					AsyncMap(slowly, lowwater.Async{Capacity: 7, Unordered: unordered}).
					KeyBy(keyOf).Window(window.Tumbling(time.Second)).Aggregate(lowwater.Count[event]())
				got := windows.Collect()
				j, err := env.Start(t.Context(), "test")
				if err != nil {
					t.Fatal(err)
				}
				if err := j.Wait(); err != nil {
					t.Fatal(err)
				}
				total := int64(0)
				for _, p := range got.Values() {
					total += p.Value
				}
				if total != 50 || len(got.Values()) != 15 {
					t.Errorf("%d events in %d windows, want 50 in 15", total, len(got.Values()))
				}
			})
		}
	}
}

func TestAsyncMapRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		started := time.Now()
		env := newEnv()
		got := lowwater.FromSlice(env, []int{7}).AsyncMap(func(context.Context, int) (int64, error) {
			if n := calls.Add(1); n < 4 {
				return 0, fmt.Errorf("call %d", n)
			}
			return calls.Load(), nil
		}, lowwater.Async{Retry: lowwater.AsyncRetry{
			Attempts: 5,
			Pause:    func(attempt int) time.Duration { return time.Duration(attempt) * time.Second },
		}}).Collect()
		execute(t, env)
		inOrder(t, "results", got.Values(), 4)
		if took := time.Since(started); took != 9*time.Second {
			t.Errorf("paused for %v, want 2s + 3s + 4s", took)
		}
	})
}

func TestAsyncMapErrors(t *testing.T) {
	broken := errors.New("broken")
	fail := func(context.Context, int) (int, error) { return 0, broken }
	hang := func(ctx context.Context, _ int) (int, error) { return 0, wait(ctx, time.Hour) }
	second := func(int) time.Duration { return time.Second }
	tests := []struct {
		name    string
		f       func(context.Context, int) (int, error)
		options lowwater.Async
		is      error
		want    string
	}{
		{"error", fail, lowwater.Async{}, broken, "broken"},
		{"error after retries", fail, lowwater.Async{Retry: lowwater.AsyncRetry{Attempts: 3}}, broken, "failed 3 times: broken"},
		{"error not worth it", fail, lowwater.Async{Retry: lowwater.AsyncRetry{Attempts: 3, If: func(error) bool { return false }}}, broken, "broken"},
		{"timeout", hang, lowwater.Async{Timeout: time.Second}, lowwater.ErrAsyncTimeout, "no result in time: 1s (attempt 1: "},
		{"timeout between attempts", fail, lowwater.Async{Timeout: 2500 * time.Millisecond, Retry: lowwater.AsyncRetry{Attempts: 9, Pause: second}},
			lowwater.ErrAsyncTimeout, "no result in time: 2.5s (attempt 3: broken)"},
		{"panic", func(context.Context, int) (int, error) { panic(broken) }, lowwater.Async{}, broken, "panic: broken"},
		{"goexit", func(context.Context, int) (int, error) { runtime.Goexit(); return 0, nil }, lowwater.Async{}, nil, "runtime.Goexit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				lowwater.FromSlice(env, upTo(50)).AsyncMap(tt.f, tt.options).Collect()
				err := env.Execute(t.Context(), "test")
				var where *lowwater.OperatorError
				if !errors.As(err, &where) || where.Operator != "Async Map" || !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %v, want one of the operator with %q", err, tt.want)
				}
			})
		})
	}
}

// Whatever is under way ends with the job; the bubble would not end otherwise.
func TestAsyncMapEndsWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		env := newEnv()
		lowwater.FromSlice(env, upTo(50)).AsyncMap(func(ctx context.Context, v int) (int, error) {
			defer ended.Add(1)
			return v, wait(ctx, time.Hour)
		}, lowwater.Async{Capacity: 20}).Collect()
		j, err := env.Start(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // in virtual time, as below: all calls are under way
		j.Cancel()
		_ = j.Wait() // cancelled
		if ended.Load() != 20 {
			t.Errorf("%d calls have ended, want 20", ended.Load())
		}
	})
}

// A graceful stop waits for what is under way.
func TestAsyncMapFlushesOnStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(1))
		source := &script[event]{splits: [][]step[event]{{{0, []event{{"a", 1, 1}, {"a", 2, 2}}}}}, unbounded: true}
		got := from(env, source, bounded(0)).AsyncMap(func(ctx context.Context, e event) (int, error) {
			return e.N, wait(ctx, 10*time.Second)
		}, lowwater.Async{}).Collect()
		j, err := env.Start(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // the records have come, their calls have not ended
		j.Stop()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		inOrder(t, "results", got.Values(), 1, 2)
	})
}

// Results come out without further input.
func TestAsyncMapResultsComeOutByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(1))
		source := &script[event]{splits: [][]step[event]{{{0, []event{{"a", 1, 1}}}}}, unbounded: true}
		got := from(env, source, bounded(0)).AsyncMap(slowly, lowwater.Async{}).Collect()
		j, err := env.Start(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // all there is has been done
		if !slices.Equal(got.Values(), []event{{"a", 1, 1}}) {
			t.Errorf("results %v while the job runs", got.Values())
		}
		j.Cancel()
		_ = j.Wait() // cancelled
	})
}

func TestAsyncMapBuildErrors(t *testing.T) {
	tests := []struct {
		options lowwater.Async
		want    string
	}{
		{lowwater.Async{Capacity: -1}, "AsyncMap: Async.Capacity is -1"},
		{lowwater.Async{Timeout: -1}, "AsyncMap: Async.Timeout is -1ns"},
		{lowwater.Async{Retry: lowwater.AsyncRetry{Attempts: -1}}, "AsyncMap: Async.Retry.Attempts is -1"},
	}
	for _, tt := range tests {
		env := newEnv()
		timed(env, event{}).AsyncMap(slowly, tt.options).Collect()
		wantBuildError(t, env, tt.want)
	}
	env := newEnv()
	timed(env, event{}).AsyncMap[int](nil, lowwater.Async{}).Collect()
	wantBuildError(t, env, "AsyncMap: the function is nil")
}
