package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// TestCheckpointScripts runs the command on checkpoints 1 to 4 in $WORK/store: 2 has a
// damaged block, 3 a manifest that is cut, 4 was not completed.
func TestCheckpointScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/checkpoint", RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error { return writeCheckpoints(t, filepath.Join(env.WorkDir, "store")) },
	})
}

func TestCheckpointExitCodes(t *testing.T) {
	dir := t.TempDir()
	if err := writeCheckpoints(t, dir); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		want int
	}{
		{"list " + t.TempDir(), exitOK},
		{"list " + dir, exitFailed},
		{"list", exitUsage},
		{"inspect " + dir + "/chk-1", exitOK},
		{"inspect --verify " + dir + "/chk-1", exitOK},
		{"inspect --verify " + dir + "/chk-2", exitFailed},
		{"inspect " + dir, exitFailed},
		{"inspect --entries=some " + dir, exitUsage},
	} {
		if got := cli(append([]string{"checkpoint"}, strings.Fields(test.args)...), io.Discard, io.Discard); got != test.want {
			t.Errorf("lowwater checkpoint %s: exit code %d, want %d", test.args, got, test.want)
		}
	}
}

func writeCheckpoints(t *testing.T, dir string) error {
	store, err := checkpoint.Open(t.Context(), dir)
	if err != nil {
		return err
	}
	for id := range int64(3) {
		if err := writeCheckpoint(store, id+1); err != nil {
			return err
		}
	}
	if err := store.Close(); err != nil {
		return err
	}
	segment := filepath.Join(dir, "chk-2", "2-0.seg")
	data, err := os.ReadFile(segment)
	if err != nil {
		return err
	}
	data[40]++
	if err := os.WriteFile(segment, data, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(filepath.Join(dir, "chk-3", "manifest"), 100); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "chk-4"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "chk-4", "2-0.seg.part"), []byte("half"), 0o600)
}

func writeCheckpoint(store *checkpoint.Store, id int64) error {
	p, err := store.Begin(id, checkpoint.KindCheckpoint, "")
	if err != nil {
		return err
	}
	for subtask := range 2 {
		segment, err := p.Segment("2", subtask)
		if err != nil {
			return err
		}
		info := checkpoint.OperatorInfo{ID: "a1", UID: "orders", Name: "Source: orders", Subtask: subtask, Parallelism: 2, MaxParallelism: 128}
		splits := snapshot.Part{Name: "splits", Kind: snapshot.List, Version: 1, Schemas: map[string]string{"text": "json"}}
		if err := writePart(segment.Operator(info, nil), splits, 0, fmt.Sprintf(`{"split":{"topic":"orders","partition":%d,"offset":%d}}`, subtask, 100*id)); err != nil {
			return err
		}
		info.ID, info.UID, info.Name = "b2", "", "Count"
		keys := snapshot.Part{Name: "state/count", Kind: snapshot.Keyed, Version: 2, Schemas: map[string]string{"key": `"string"`, "value": `"long"`}}
		if err := writePart(segment.Operator(info, nil), keys, 64*subtask, "a", "b", "c"); err != nil {
			return err
		}
		if _, err := segment.Finish(); err != nil {
			return err
		}
	}
	_, err = p.Complete(checkpoint.Manifest{
		Job: "shop", Version: "v1.2.3",
		Triggered: time.Unix(1_800_000_000, 0), Completed: time.Unix(1_800_000_000, 35e6),
		Operators: []checkpoint.Operator{
			{ID: "a1", UID: "orders", Name: "Source: orders", Parallelism: 2, MaxParallelism: 128, Finished: []int{1}, Enumerator: []byte(`["orders/0","orders/1"]`)},
			{ID: "b2", Name: "Count", Parallelism: 2, MaxParallelism: 128},
			{ID: "c3", Name: "Sink: out", Parallelism: 2, MaxParallelism: 128},
		},
	})
	return err
}

func writePart(w snapshot.Writer, part snapshot.Part, group int, entries ...string) error {
	p, err := w.Part(part)
	if err != nil {
		return err
	}
	for i, e := range entries {
		if part.Kind == snapshot.Keyed {
			group += i
		}
		if err := p.Append(group, []byte(e)); err != nil {
			return err
		}
	}
	return p.Close()
}
