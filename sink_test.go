package lowwater_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// recorder is a sink that notes what each of its writers is asked to do, and does what a
// test wants meanwhile.
type recorder struct {
	openErr, flushErr, closeErr error
	// onWrite, if not nil, is called by every Write.
	onWrite func(ctx context.Context, b *connector.Batch[event]) error
	onFlush func(ctx context.Context) error

	mu      sync.Mutex
	calls   map[int][]string
	records int
}

func (r *recorder) Validate() error { return nil }

func (r *recorder) NewWriter(_ context.Context, rt connector.WriterRuntime) (connector.Writer[event], error) {
	r.note(rt.Subtask, fmt.Sprintf("open %s %d/%d", rt.Operator, rt.Subtask, rt.Parallelism))
	if r.openErr != nil {
		return nil, r.openErr
	}
	return &recordingWriter{r, rt.Subtask}, nil
}

func (r *recorder) note(subtask int, call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[int][]string{}
	}
	r.calls[subtask] = append(r.calls[subtask], call)
}

// written returns the number of records whose Write has returned.
func (r *recorder) written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.records
}

// of returns a subtask's calls.
func (r *recorder) of(subtask int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls[subtask])
}

type recordingWriter struct {
	r       *recorder
	subtask int
}

func (w *recordingWriter) Write(ctx context.Context, b *connector.Batch[event]) error {
	w.r.note(w.subtask, fmt.Sprint("write ", b.Len()))
	if w.r.onWrite != nil {
		if err := w.r.onWrite(ctx, b); err != nil {
			return err
		}
	}
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	w.r.records += b.Len()
	return nil
}

func (w *recordingWriter) WriteWatermark(_ context.Context, t int64) error {
	if t == eventtime.MaxTimestamp {
		w.r.note(w.subtask, "watermark max")
	} else {
		w.r.note(w.subtask, fmt.Sprint("watermark ", t))
	}
	return nil
}

func (w *recordingWriter) Flush(ctx context.Context) error {
	w.r.note(w.subtask, "flush")
	if w.r.onFlush != nil {
		return w.r.onFlush(ctx)
	}
	return w.r.flushErr
}

func (w *recordingWriter) Close() error {
	w.r.note(w.subtask, "close")
	return w.r.closeErr
}

func TestWriterLife(t *testing.T) {
	for _, chained := range []bool{true, false} {
		t.Run(fmt.Sprint("chained=", chained), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv(lowwater.WithParallelism(2))
				r := &recorder{}
				sink := from(env, &script[event]{splits: [][]step[event]{
					{{0, timeline[:2]}, {time.Second, timeline[2:]}},
					{{0, timeline[:1]}},
				}}, bounded(0)).SinkTo(r).Name("Save")
				if !chained {
					sink.DisableChaining()
				}
				execute(t, env)
				// Subtask 1 has read its split in the first moment.
				inOrder(t, "calls", r.of(0), "open Save 0/2", "write 2", "watermark 1998", "write 4", "watermark max", "flush", "close")
				inOrder(t, "calls of subtask 1", r.of(1), "open Save 1/2", "write 1", "watermark max", "flush", "close")
			})
		})
	}
}

func TestWriterErrors(t *testing.T) {
	broken := errors.New("disk full")
	tests := []struct {
		name string
		sink *recorder
		want string
		// calls are those of the writer after its Write.
		calls []string
	}{
		{"open", &recorder{openErr: broken}, `job "test": operator "Save" (HERE), subtask 0: open: disk full`, nil},
		{"write", &recorder{onWrite: func(context.Context, *connector.Batch[event]) error { return broken }}, `job "test": operator "Save" (HERE), subtask 0: disk full`, []string{"write 6", "close"}},
		{"flush", &recorder{flushErr: broken}, `job "test": operator "Save" (HERE), subtask 0: disk full`, []string{"write 6", "watermark max", "flush", "close"}},
		{"close", &recorder{closeErr: broken}, `job "test": operator "Save" (HERE), subtask 0: close: disk full`, []string{"write 6", "watermark max", "flush", "close"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv(lowwater.WithParallelism(1))
				from(env, splitsOf(10, timeline), bounded(0)).SinkTo(tt.sink).Name("Save")
				err := env.Execute(t.Context(), "test")
				if !errors.Is(err, broken) || placeless(err) != tt.want {
					t.Errorf("got %q, want %q", err, tt.want)
				}
				inOrder(t, "calls", tt.sink.of(0), append([]string{"open Save 0/1"}, tt.calls...)...)
			})
		})
	}
}

func TestSinkFunc(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		var mu sync.Mutex
		var got []int
		lowwater.FromSlice(env, upTo(3000)).SinkFunc(func(ctx context.Context, v int) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, v)
			return ctx.Err()
		})
		execute(t, env)
		expect(t, "values", got, upTo(3000)...)
	})
}

// lineWriter refuses writes that are not whole lines.
type lineWriter struct {
	bytes.Buffer
	broken error
}

func (w *lineWriter) Write(p []byte) (int, error) {
	if w.broken != nil {
		return 0, w.broken
	}
	if bytes.IndexByte(p, '\n') != len(p)-1 {
		return 0, fmt.Errorf("%q is not one line", p)
	}
	return w.Buffer.Write(p)
}

func TestPrint(t *testing.T) {
	for _, parallelism := range []int{1, 3} {
		t.Run(fmt.Sprint("parallelism=", parallelism), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env := newEnv()
				var w lineWriter
				from(env, splitsOf(2, timeline), bounded(time.Second)).KeyBy(keyOf).Window(window2s).
					Aggregate(lowwater.Count[event]()).Parallelism(1).Rebalance().PrintTo(&w).Parallelism(parallelism)
				execute(t, env)
				want := []string{
					"a [1970-01-01T00:00:00Z, 1970-01-01T00:00:02Z) 2", "b [1970-01-01T00:00:00Z, 1970-01-01T00:00:02Z) 1",
					"a [1970-01-01T00:00:02Z, 1970-01-01T00:00:04Z) 2", "b [1970-01-01T00:00:06Z, 1970-01-01T00:00:08Z) 1",
				}
				if parallelism > 1 {
					for i := range want {
						want[i] = fmt.Sprintf("%d> %s", i%parallelism+1, want[i])
					}
				}
				expect(t, "lines", strings.Split(strings.TrimSpace(w.String()), "\n"), want...)
			})
		})
	}
}

func TestPrintErrorNamesTheOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv()
		lowwater.FromSlice(env, upTo(3)).PrintTo(&lineWriter{broken: errors.New("broken pipe")})
		err := env.Execute(t.Context(), "test")
		if err == nil || !strings.Contains(err.Error(), `operator "Print"`) || !strings.Contains(err.Error(), "print: broken pipe") {
			t.Errorf("got %v", err)
		}
	})
}

// TestCollectedIsACopy: what Values returned does not change when more arrives.
func TestCollectedIsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(lowwater.WithParallelism(1))
		got := from(env, &script[event]{splits: [][]step[event]{{{0, timeline[:1]}, {time.Minute, timeline[1:2]}}}}, bounded(0)).Collect()
		job, err := env.Start(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		early := got.Values()
		early[0].Key = "changed"
		if err := job.Wait(); err != nil {
			t.Fatal(err)
		}
		inOrder(t, "early", early, event{"changed", 1000, 1})
		inOrder(t, "all", got.Values(), timeline[:2]...)
	})
}
