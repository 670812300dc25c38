package keyedop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/state"
)

// refusing is a writer of a checkpoint that is given up before it has all parts.
type refusing struct {
	snapshot.Writer
	part  string
	later []func(context.Context) error
}

type ignored struct{ snapshot.PartWriter }

func (ignored) Append(int, []byte) error { return nil }
func (ignored) Close() error             { return nil }

var errRefused = errors.New("refused")

func (w *refusing) Part(p snapshot.Part) (snapshot.PartWriter, error) {
	if strings.HasSuffix(p.Name, w.part) {
		return nil, errRefused
	}
	return ignored{}, nil
}

func (w *refusing) Incremental() bool                   { return false }
func (w *refusing) Later(f func(context.Context) error) { w.later = append(w.later, f) }

// A snapshot that fails when it has been begun in part lets go of what it holds: the subtask
// changes as much as it likes, and the disk is cleared up at the end.
func TestSnapshotThatFailsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a subtask that waits for nobody is found out
		h, dir := newHarness(t), t.TempDir()
		rt := h.runtime()
		rt.Checkpointing, rt.StateMemory, rt.StateDir = true, 256<<10, dir
		h.op = NewProcess(func(c *Context[string], _ *operator.Emitter[row]) (Function[row], error) {
			first, second := c.Value(state.Value[string]("first")), c.Value(state.Value[int]("second"))
			return Function[row]{Element: func(r row) error {
				first.Set(strings.Repeat("x", r.Value))
				second.Set(r.Value)
				return nil
			}}, nil
		})
		must(t, h.op.Open(rt, &h.out))
		write := func(size int) {
			for i := range 4000 {
				must(t, h.send(0, fmt.Sprint(i%1000), size, 0))
			}
		}
		write(1000)
		if h.metrics.State.SpilledEntries.Value() == 0 {
			t.Fatal("nothing is on disk")
		}
		w := &refusing{part: "second"}
		if err := h.op.(operator.Stateful).Snapshot(w); !errors.Is(err, errRefused) {
			t.Fatalf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, f := range w.later {
			if err := f(ctx); err == nil {
				t.Error("a snapshot that was given up has no error")
			}
		}
		write(1001)
		must(t, h.op.Close())
		h.op = nil
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}
