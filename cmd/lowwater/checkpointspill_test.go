package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/state"
)

// perKey is a function that keeps a text of every key.
type perKey struct{ text state.ValueState[string] }

func (f *perKey) Open(ctx *lowwater.OpenContext[int64]) error {
	f.text = ctx.Value(state.Value[string]("text"))
	return nil
}

func (f *perKey) ProcessElement(_ *lowwater.KeyedContext[int64], n int64, _ *lowwater.Collector[int64]) error {
	f.text.Set(fmt.Sprint("text ", n))
	return nil
}

func (f *perKey) OnTimer(*lowwater.TimerContext[int64], int64, *lowwater.Collector[int64]) error {
	return nil
}

// What the command says of the checkpoints of a job with state on disk is so: how many shared
// files there are, how large, and how much of them is new. In the end, after a restart, none is
// there that the checkpoint which is kept does not refer to.
func TestInspectStateOnDisk(t *testing.T) {
	dir, last := t.TempDir(), ""
	for run, resume := range []lowwater.CheckpointOption{lowwater.StartFresh(), lowwater.ResumeLatest()} {
		env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(1+run),
			lowwater.WithStateMemory(16<<10, t.TempDir()),
			lowwater.WithCheckpoints(dir, 0, resume, lowwater.RetainCheckpoints(1)))
		source := datagen.NewSource(func(n int64) int64 { return n }, datagen.RatePerSecond(20_000))
		lowwater.FromSource(env, source, eventtime.NoWatermarks[int64](), "numbers").UID("numbers").
			KeyBy(func(n int64) int64 { return n % 5000 }).Process(func() *perKey { return &perKey{} }).UID("texts").
			PrintTo(io.Discard)
		j, err := env.Start(t.Context(), "texts")
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 3; {
			if last, err = j.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			if checkShared(t, last, n == 0) { // else nothing is on disk yet
				n++
			}
		}
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	// What the run was restored from was kept as long as it ran.
	s, err := checkpoint.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Retain(1), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, refs := manifestOf(t, last)
	files, err := filepath.Glob(filepath.Join(dir, "shared", "*"))
	if err != nil || len(files) != len(refs) {
		t.Errorf("there are %q, and the last checkpoint refers to %v: %v", files, refs, err)
	}
}

// manifestOf returns how much is new in a checkpoint, and the sizes of its shared files by name.
func manifestOf(t *testing.T, path string) (fresh int64, refs map[string]int64) {
	t.Helper()
	c, err := checkpoint.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	refs = map[string]int64{}
	for _, s := range c.Manifest().Segments {
		fresh += s.NewShared
		for _, ref := range s.Shared {
			refs[ref.Name] = ref.Size
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return fresh, refs
}

// checkShared compares what the command says with the manifest, and reports whether the
// checkpoint has shared files. The first one of a run has no old ones.
func checkShared(t *testing.T, path string, first bool) bool {
	t.Helper()
	var out bytes.Buffer
	if code := cli([]string{"checkpoint", "inspect", "--verify", path}, &out, io.Discard); code != exitOK {
		t.Fatalf("inspect: exit code %d\n%s", code, &out)
	}
	fresh, refs := manifestOf(t, path)
	size := int64(0)
	for _, n := range refs {
		size += n
	}
	want := fmt.Sprintf("%d shared files with %d bytes, of which %d are new in this checkpoint\n", len(refs), size, fresh)
	if strings.Contains(out.String(), want) != (len(refs) > 0) {
		t.Errorf("it does not say %q:\n%s", want, &out)
	}
	if first && fresh != size {
		t.Errorf("%d bytes are new in the first checkpoint of a run, of %d", fresh, size)
	}
	return len(refs) > 0
}
