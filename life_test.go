package lowwater_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// TestBoundedJobLosesNothingAtItsEnd: also with splits, subtasks or all of the job idle when the
// input ends, every window fires once and the job ends by itself.
func TestBoundedJobLosesNothingAtItsEnd(t *testing.T) {
	const end = 10 * time.Minute
	early, later := []event{{"a", 1000, 1}, {"b", 1500, 2}}, []event{{"a", 100_000, 3}, {"c", 130_000, 4}}
	busy := []step[event]{{0, early}, {end, later}} // busy when the input ends
	silent := []step[event]{{0, early}}             // idle when the input ends
	empty := []step[event]{}
	busyPanes := []string{"a 1000..2000 1", "b 1000..2000 1", "a 100000..101000 1", "c 130000..131000 1"}
	tests := []struct {
		name   string
		splits [][]step[event]
		want   []string
	}{
		{"all idle", [][]step[event]{silent, silent}, []string{"a 1000..2000 2", "b 1000..2000 2"}},
		{"one idle", [][]step[event]{busy, silent}, []string{"a 1000..2000 2", "b 1000..2000 2", "a 100000..101000 1", "c 130000..131000 1"}},
		{"one never had a record", [][]step[event]{busy, empty}, busyPanes},
		{"nobody ever had a record", [][]step[event]{empty, empty, empty}, nil},
		{"more subtasks than splits", [][]step[event]{busy}, busyPanes},
		{"no splits", nil, nil},
	}
	for _, tt := range tests {
		for _, parallelism := range []int{1, 2, 3} {
			for _, idleness := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/parallelism=%d/idleness=%v", tt.name, parallelism, idleness), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						started := time.Now()
						env := newEnv(lowwater.WithParallelism(parallelism))
						strategy := bounded(time.Second)
						if idleness {
							strategy = strategy.WithIdleness(time.Minute)
						}
						s := from(env, &script[event]{splits: tt.splits, endAfter: end}, strategy).Parallelism(parallelism)
						results := sumByKey(s).Collect()
						execute(t, env)
						expect(t, "panes", results.Values(), tt.want...)
						if took := time.Since(started); len(tt.splits) > 0 && took != end {
							t.Errorf("the job took %v, want %v", took, end)
						}
					})
				})
			}
		}
	}
}

// TestBoundedAndIdleBehindTheSource: the same for a strategy behind the source, and a union with a stream that
// ended long before.
func TestBoundedAndIdleBehindTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(1))
		first := from(env, splitsOf(1, []event{{"a", 1000, 1}}), bounded(0))
		second := from(env, &script[event]{splits: [][]step[event]{{{0, []event{{"a", 1001, 2}, {"b", 5000, 3}}}}}, endAfter: time.Hour}, eventtime.NoWatermarks[event]()).
			AssignTimestampsAndWatermarks(bounded(0).WithIdleness(time.Minute))
		results := sumByKey(first.Union(second)).Collect()
		execute(t, env)
		expect(t, "panes", results.Values(), "a 1000..2000 2", "b 5000..6000 1")
	})
}

// stopping runs an unbounded job behind a slow sink, stops it after a minute, and returns
// the sink and the job's error.
func stopping(t *testing.T, stop func(job *lowwater.Job, cancel context.CancelFunc)) (r *recorder, delivered int, panes []string, err error) {
	t.Helper()
	var steps []step[event]
	for i := range 1000 {
		steps = append(steps, step[event]{time.Duration(i) * time.Second, []event{{"a", int64(i * 1000), i}, {"b", int64(i * 1000), i}}})
	}
	env := newEnv(lowwater.WithParallelism(1), lowwater.WithStopTimeout(time.Hour))
	source := &script[event]{splits: [][]step[event]{steps}, unbounded: true, delivered: func(_ int, s step[event]) { delivered += len(s.values) }}
	s := from(env, source, bounded(0))
	r = &recorder{onWrite: func(_ context.Context, b *connector.Batch[event]) error {
		<-time.After(time.Duration(b.Len()) * time.Second) // twice as slow as the source
		return nil
	}}
	s.Rebalance().SinkTo(r)
	results := s.KeyBy(keyOf).Window(windowDay).Aggregate(lowwater.Count[event]()).Map(text).Collect()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	job, err := env.Start(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	stop(job, cancel)
	err = job.Wait()
	return r, delivered, results.Values(), err
}

func TestGracefulStop(t *testing.T) {
	for name, stop := range map[string]func(*lowwater.Job, context.CancelFunc){
		"by the context": func(_ *lowwater.Job, cancel context.CancelFunc) { cancel() },
		"by Stop":        func(job *lowwater.Job, _ context.CancelFunc) { job.Stop() },
		"by both":        func(job *lowwater.Job, cancel context.CancelFunc) { cancel(); job.Stop(); job.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, delivered, panes, err := stopping(t, stop)
				if err != nil {
					t.Fatalf("got %v, want nil", err)
				}
				if r.written() != delivered || delivered < 20 {
					t.Errorf("%d of %d records that were read reached the sink", r.written(), delivered)
				}
				calls := r.of(0)
				inOrder(t, "the last calls", calls[len(calls)-2:], "flush", "close")
				if strings.Contains(fmt.Sprint(calls), "watermark max") {
					t.Error("a stop in the middle sent the end of time")
				}
				if len(panes) > 0 {
					t.Errorf("open windows fired: %q", panes)
				}
			})
		})
	}
}

func TestCancelDropsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, delivered, panes, err := stopping(t, func(job *lowwater.Job, _ context.CancelFunc) { job.Cancel() })
		if err != nil {
			t.Fatalf("got %v, want nil", err)
		}
		if r.written() >= delivered || len(panes) > 0 {
			t.Errorf("%d of %d records reached the sink, and panes %q", r.written(), delivered, panes)
		}
		calls := r.of(0)
		if last := calls[len(calls)-1]; last != "close" || strings.Contains(fmt.Sprint(calls), "flush") {
			t.Errorf("got calls %q, want a close at the end and no flush", calls)
		}
	})
}

func TestStopTimeout(t *testing.T) {
	for _, where := range []string{"write", "flush"} {
		t.Run(where, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				blocked := func(ctx context.Context) error {
					<-ctx.Done()
					return fmt.Errorf("gave up: %w", ctx.Err())
				}
				r := &recorder{onFlush: blocked}
				if where == "write" {
					r = &recorder{onWrite: func(ctx context.Context, _ *connector.Batch[event]) error { return blocked(ctx) }}
				}
				env := newEnv(lowwater.WithStopTimeout(7 * time.Second))
				from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}, unbounded: true}, bounded(0)).Rebalance().SinkTo(r)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				started := time.Now()
				err := env.Execute(ctx, "test")
				if !errors.Is(err, lowwater.ErrStopTimeout) || !strings.Contains(err.Error(), "7s") {
					t.Errorf("got %v, want ErrStopTimeout with the timeout", err)
				}
				if took := time.Since(started); took != time.Minute+7*time.Second {
					t.Errorf("took %v", took)
				}
				for _, subtask := range []int{0, 1} {
					if calls := r.of(subtask); calls[len(calls)-1] != "close" {
						t.Errorf("the last call of subtask %d is %q, want close", subtask, calls[len(calls)-1])
					}
				}
			})
		})
	}
}

// TestStopBeforeTheFirstRecord: a context that is done when the job starts stops it at once.
func TestStopBeforeTheFirstRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		env := newEnv()
		r := &recorder{}
		from(env, &script[event]{splits: [][]step[event]{{{time.Second, timeline}}}, unbounded: true}, bounded(0)).SinkTo(r)
		if err := env.Execute(ctx, "test"); err != nil {
			t.Fatal(err)
		}
		inOrder(t, "calls", r.of(0), "open Sink 0/1", "flush", "close")
	})
}

// TestStopAfterTheEnd: nothing that is asked of a job that has ended blocks or changes its
// result.
func TestStopAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		lowwater.FromSlice(env, upTo(3)).Collect()
		job, err := env.Start(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		<-job.Done()
		job.Stop()
		job.Cancel()
		for range 2 {
			if err := job.Wait(); err != nil {
				t.Error(err)
			}
		}
		if s := job.Status(); s.Running || s.Name != "test" {
			t.Errorf("the job %q is running: %v", s.Name, s.Running)
		}
	})
}

// TestFirstErrorWins: the others fail because of it, or later.
func TestFirstErrorWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(3))
		s := from(env, &script[event]{splits: [][]step[event]{{{0, timeline[:1]}}}, unbounded: true}, bounded(0)).Broadcast()
		failAfter := func(name string, d time.Duration) {
			s.SinkFunc(func(ctx context.Context, _ event) error {
				select {
				case <-time.After(d):
					return errors.New(name + " failed")
				case <-ctx.Done():
					return fmt.Errorf("%s gave up: %w", name, ctx.Err())
				}
			}).Name(name)
		}
		failAfter("slow", time.Minute)
		failAfter("fast", time.Second)
		failAfter("slower", time.Hour)
		err := env.Execute(t.Context(), "test")
		if err == nil || !strings.HasPrefix(placeless(err), `job "test": operator "fast" (HERE), subtask `) || !strings.HasSuffix(err.Error(), ": fast failed") {
			t.Errorf("got %v, want the error of fast", err)
		}
	})
}

// TestLaterErrorsAreLogged: only the first can be returned, but none is swallowed.
func TestLaterErrorsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		env := lowwater.NewEnvironment(lowwater.WithParallelism(1), lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		first, second := errors.New("disk full"), errors.New("connection lost")
		s := from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}, unbounded: true}, bounded(0)).Rebalance()
		s.SinkFunc(func(context.Context, event) error { return first }).Name("first")
		s.SinkTo(&recorder{closeErr: second, onWrite: func(ctx context.Context, _ *connector.Batch[event]) error {
			<-ctx.Done()
			return nil
		}}).Name("second")
		if err := env.Execute(t.Context(), "test"); !errors.Is(err, first) || errors.Is(err, second) {
			t.Errorf("got %v, want %v alone", err, first)
		}
		if !strings.Contains(log.String(), "connection lost") {
			t.Errorf("the second error is not in the log:\n%s", log.String())
		}
	})
}

// TestOwnCancellationIsAnError: an operator that gives up by itself has not done its
// work, whatever it calls that.
func TestOwnCancellationIsAnError(t *testing.T) {
	for _, wrapped := range []error{context.Canceled, fmt.Errorf("call: %w", context.Canceled), context.DeadlineExceeded} {
		synctest.Test(t, func(t *testing.T) {
			env := newEnv()
			from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}, unbounded: true}, bounded(0)).
				SinkFunc(func(context.Context, event) error { return wrapped }).Name("Save")
			err := env.Execute(t.Context(), "test")
			if !errors.Is(err, wrapped) || !strings.Contains(fmt.Sprint(err), `operator "Save"`) {
				t.Errorf("got %v, want %v with the operator's name", err, wrapped)
			}
		})
	}
}

// TestErrorAfterStopIsReported: a stop is graceful only if everything went well.
func TestErrorAfterStopIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("disk full")
		env := newEnv()
		from(env, &script[event]{splits: [][]step[event]{{{0, timeline}}}, unbounded: true}, bounded(0)).SinkTo(&recorder{flushErr: broken})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := env.Execute(ctx, "test"); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
	})
}

func TestStartErrors(t *testing.T) {
	broken := errors.New("unknown topic")
	tests := []struct {
		name   string
		source script[event]
		want   string
	}{
		{"enumerator", script[event]{discoverErr: broken}, `job "test": operator "events" (HERE): unknown topic`},
		{"reader", script[event]{openErr: broken}, `job "test": operator "events" (HERE), subtask 0: open: unknown topic`},
		{"poll", script[event]{pollErr: broken}, `job "test": operator "events" (HERE), subtask 0: unknown topic`},
		{"close", script[event]{closeErr: broken}, `job "test": operator "events" (HERE), subtask 0: close: unknown topic`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.source.splits = [][]step[event]{{{0, timeline}}}
				env := newEnv()
				healthy := from(env, &script[event]{splits: [][]step[event]{{}}}, bounded(0))
				results := sumByKey(from(env, &tt.source, bounded(0)).Union(healthy)).Collect()
				err := env.Execute(t.Context(), "test")
				if !errors.Is(err, broken) || placeless(err) != tt.want {
					t.Errorf("got %q, want %q", err, tt.want)
				}
				if tt.name != "close" && len(results.Values()) > 0 {
					t.Errorf("there are results: %q", results.Values())
				}
			})
		})
	}
}

// TestNoGoroutineIsLeft checks outside a bubble what bubbles check in all other tests.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		env := newEnv(lowwater.WithParallelism(4))
		s := lowwater.FromSource(env, splitsOf(100, upTo(1000), upTo(1000)), eventtime.NoWatermarks[int](), "numbers")
		s.Rebalance().Map(func(v int) int { return v }).Broadcast().Collect()
		execute(t, env)
	}
	// The timers of scripts run in goroutines that live for a moment.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

var place = regexp.MustCompile(`[^ ()]+_test\.go:\d+`)

// placeless is the text of an error with HERE for places in these tests.
func placeless(err error) string {
	if err == nil {
		return "no error"
	}
	return place.ReplaceAllString(err.Error(), "HERE")
}
