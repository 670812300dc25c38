package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

// outside is an outside system with transactions, and a sink to it.
type outside struct {
	guarantee connector.SinkGuarantee
	visible   []int
	// open are the transactions that are neither committed nor given up, by subtask and number.
	open map[string][]int
	next int
	// plain makes the writers unable to prepare.
	plain bool
	calls []string
}

func (o *outside) Guarantee() connector.SinkGuarantee { return o.guarantee }
func (o *outside) Validate() error                    { return nil }

func (o *outside) NewWriter(_ context.Context, rt connector.WriterRuntime) (connector.Writer[int], error) {
	w := &outsideWriter{outside: o, rt: rt}
	if o.plain {
		return struct{ connector.Writer[int] }{w}, nil
	}
	return w, nil
}

type outsideWriter struct {
	*outside
	rt      connector.WriterRuntime
	written []int
}

func (w *outsideWriter) call(format string, args ...any) {
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

func (w *outsideWriter) Write(_ context.Context, b *connector.Batch[int]) error {
	w.written = append(w.written, b.Values...)
	return nil
}

func (w *outsideWriter) Flush(context.Context) error {
	w.call("flush")
	w.visible = append(w.visible, w.written...)
	w.written = nil
	return nil
}

func (w *outsideWriter) Close() error { return nil }

func (w *outsideWriter) Recover(ctx context.Context, prepared, undecided [][]byte) error {
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	for id := range w.open {
		if slices.ContainsFunc(undecided, func(p []byte) bool { return string(p) == id }) {
			continue
		}
		var subtask, n int
		if _, err := fmt.Sscanf(id, "%d/%d", &subtask, &n); err != nil {
			return err
		}
		if subtask%w.rt.Parallelism == w.rt.Subtask {
			delete(w.open, id)
		}
	}
	return nil
}

func (w *outsideWriter) Prepare(_ context.Context, checkpoint int64) ([]byte, error) {
	w.call("prepare %d", checkpoint)
	if len(w.written) == 0 {
		return nil, nil
	}
	id := fmt.Sprintf("%d/%d", w.rt.Subtask, w.next)
	w.next++
	w.open[id] = w.written
	w.written = nil
	return []byte(id), nil
}

func (w *outsideWriter) Commit(_ context.Context, prepared []byte) error {
	w.call("commit %s", prepared)
	w.visible = append(w.visible, w.open[string(prepared)]...)
	delete(w.open, string(prepared))
	return nil
}

// openSink opens a sink; what was prepared later than upTo is not decided yet.
func openSink(t testing.TB, o *outside, subtask, parallelism int, restored snapshot.Reader, upTo int64) (*Sink[int], error) {
	rt, _ := testRuntime(t)
	rt.Subtask, rt.Parallelism, rt.Checkpointing, rt.Restored = subtask, parallelism, true, restored
	rt.CommitUpTo = upTo
	sink := NewSink[int](o)
	return sink, sink.Open(rt, nil)
}

// TestExactlyOnceSink runs jobs that crash and are restored, now with more, now with fewer
// subtasks; every record that a restored checkpoint covers is visible once.
func TestExactlyOnceSink(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := &outside{guarantee: connector.ExactlyOnce, open: map[string][]int{}}
		var taken []*snapshottest.Snapshot // the last completed checkpoint
		covered, completed, checkpoint := 0, int64(0), int64(0)
		// A job may commit one checkpoint later than it could.
		delay := rapid.Int64Range(0, 1).Draw(r, "delay")
		for range rapid.IntRange(1, 5).Draw(r, "runs") {
			sinks := make([]*Sink[int], rapid.IntRange(1, 4).Draw(r, "parallelism"))
			shares := make([]*snapshot.Share, len(sinks))
			if taken != nil {
				var err error
				shares, err = snapshottest.Readers(taken, len(sinks), 128)
				must(t, err)
			}
			for i := range sinks {
				var restored snapshot.Reader
				if shares[i] != nil {
					restored = shares[i]
				}
				var err error
				sinks[i], err = openSink(t, o, i, len(sinks), restored, completed-delay)
				must(t, err)
			}
			written := covered
			for range rapid.IntRange(0, 4).Draw(r, "checkpoints") {
				for range rapid.IntRange(0, 6).Draw(r, "records") {
					must(t, sinks[rapid.IntRange(0, len(sinks)-1).Draw(r, "subtask")].Process(0, batchOf(written)))
					written++
				}
				checkpoint++
				var now []*snapshottest.Snapshot
				for _, s := range sinks {
					now = append(now, takeSnapshot(t, s, checkpoint))
				}
				switch rapid.SampledFrom([]string{"complete", "fail", "crash before telling", "crash while telling"}).Draw(r, "outcome") {
				case "fail":
					continue
				case "complete":
					taken, covered, completed = now, written, checkpoint
					for _, s := range sinks {
						must(t, s.CheckpointCompleted(checkpoint-delay))
					}
				case "crash while telling":
					taken, covered, completed = now, written, checkpoint
					must(t, sinks[0].CheckpointCompleted(checkpoint-delay))
				case "crash before telling":
					taken, covered, completed = now, written, checkpoint
				}
			}
		}
		if taken == nil {
			return
		}
		shares, err := snapshottest.Readers(taken, 2, 128)
		must(t, err)
		for i, share := range shares {
			_, err := openSink(t, o, i, 2, share, completed)
			must(t, err)
			if left := share.Unclaimed(); len(left) > 0 {
				t.Errorf("nobody claimed %v", left)
			}
		}
		var want []int
		for i := range covered {
			want = append(want, i)
		}
		slices.Sort(o.visible)
		if diff := cmp.Diff(want, o.visible); diff != "" || len(o.open) > 0 {
			r.Fatalf("visible (-want +got):\n%s\nopen: %v", diff, o.open)
		}
	})
}

func TestSinkCallsByGuarantee(t *testing.T) {
	tests := []struct {
		guarantee connector.SinkGuarantee
		want      []string
	}{
		{connector.NoGuarantee, []string{"flush"}},
		{connector.AtLeastOnce, []string{"flush", "flush"}},
		{connector.ExactlyOnce, []string{"prepare 1", "commit 0/0"}},
	}
	for _, tt := range tests {
		t.Run(tt.guarantee.String(), func(t *testing.T) {
			o := &outside{guarantee: tt.guarantee, open: map[string][]int{}}
			sink, err := openSink(t, o, 0, 1, nil, 0)
			must(t, err)
			must(t, sink.Process(0, batchOf(1, 2)))
			must(t, sink.Finish())
			takeSnapshot(t, sink, 1)
			must(t, sink.CheckpointCompleted(1))
			must(t, sink.CheckpointCompleted(2))
			must(t, sink.Flush())
			if diff := cmp.Diff(tt.want, o.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]int{1, 2}, o.visible); diff != "" {
				t.Errorf("visible (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPreparedEntries shows what is stored: for a sink whose bytes are JSON, text.
func TestPreparedEntries(t *testing.T) {
	for output, want := range map[string]string{
		`{"id":7}`: `{"subtask":3,"checkpoint":5,"output":{"id":7}}`,
		"id":       `{"subtask":3,"checkpoint":5,"output":"aWQ="}`,
	} {
		got, err := json.Marshal(preparedOutput{3, 5, opaque(output)})
		must(t, err)
		if string(got) != want {
			t.Errorf("stored as %s, want %s", got, want)
		}
	}
}

func TestSinkRefuses(t *testing.T) {
	exactly := func() *outside { return &outside{guarantee: connector.ExactlyOnce, open: map[string][]int{}} }
	taken := func() *snapshot.Share {
		sink, err := openSink(t, exactly(), 0, 1, nil, 0)
		must(t, err)
		must(t, sink.Process(0, batchOf(1)))
		return restoredFrom(t, takeSnapshot(t, sink, 1))
	}
	part := func(version int, entry string) *snapshot.Share {
		s, err := snapshottest.Take(1, func(w snapshot.Writer) error {
			p, err := w.Part(snapshot.Part{Name: preparedPart, Kind: snapshot.Union, Version: version})
			return errors.Join(err, p.Append(0, []byte(entry)), p.Close())
		})
		must(t, err)
		return restoredFrom(t, s)
	}
	plain := exactly()
	plain.plain = true
	less := &outside{plain: true, guarantee: connector.AtLeastOnce}
	tests := []struct {
		name     string
		sink     *outside
		restored snapshot.Reader
		want     string
	}{
		{"a writer that cannot prepare", plain, nil, "implement connector.TwoPhaseWriter"},
		{"prepared output and a sink that cannot commit it", less, taken(), "has to be committed"},
		{"another layout", exactly(), part(9, "{}"), "layout 9"},
		{"unreadable", exactly(), part(preparedVersion, "["), "unreadable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := openSink(t, tt.sink, 0, 1, tt.restored, 1); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	t.Run("no checkpoints", func(t *testing.T) {
		rt, _ := testRuntime(t)
		if err := NewSink[int](exactly()).Open(rt, nil); err == nil || !strings.Contains(err.Error(), "checkpoints are off") {
			t.Errorf("error %v", err)
		}
	})
}

// TestSinkThatIsExactlyOnceNoLonger commits what the checkpoint holds and goes on.
func TestSinkThatIsExactlyOnceNoLonger(t *testing.T) {
	o := &outside{guarantee: connector.ExactlyOnce, open: map[string][]int{}}
	sink, err := openSink(t, o, 0, 1, nil, 0)
	must(t, err)
	must(t, sink.Process(0, batchOf(1)))
	share := restoredFrom(t, takeSnapshot(t, sink, 1))
	o.guarantee = connector.AtLeastOnce
	sink, err = openSink(t, o, 0, 1, share, 1)
	must(t, err)
	must(t, sink.Process(0, batchOf(2)))
	must(t, sink.Flush())
	if diff := cmp.Diff([]int{1, 2}, o.visible); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
}
