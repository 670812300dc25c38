package windowed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
	"github.com/lowwater/lowwater/window"
)

// imageKinds are operators of each kind, with windows that take the records of spillKeys.
var imageKinds = map[string]func() operator.Operator{
	"panes": func() operator.Operator { return listsOf(window.Tumbling(time.Hour)) },
	"slices": func() operator.Operator {
		return aggregateLists(Options{Assigner: window.Sliding(time.Hour, time.Minute)}, concat{})
	},
	"sessions": func() operator.Operator { return listsOf(window.Session(time.Hour)) },
	"general": func() operator.Operator {
		return generalKinds["records"](Options{Assigner: window.Tumbling(time.Hour)})
	},
}

// spillKeys sends a record of each of some keys, whose names do not compress.
func spillKeys(t *testing.T, h *harness, random *rand.Rand, keys int, timestamp int64) {
	t.Helper()
	for range keys / 100 {
		var records []timed
		for range 100 {
			key := fmt.Sprintf("%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64())
			records = append(records, timed{element: element{Key: key, Value: 1}, Timestamp: timestamp})
		}
		must(t, h.process(records...))
	}
}

// openForImages opens an operator of a kind that keeps next to nothing in memory.
func openForImages(t *testing.T, kind string) *harness {
	return openSpilling(t, imageKinds[kind](), func(rt *operator.Runtime) { rt.StateMemory, rt.Checkpointing = 64<<10, true })
}

func takeImage(t *testing.T, h *harness, files *snapshottest.Files) *snapshottest.Snapshot {
	t.Helper()
	taken, err := snapshottest.TakeIncremental(1, files, h.op.(operator.Stateful).Snapshot)
	must(t, err)
	must(t, taken.Finish())
	return taken
}

// A snapshot that is incremental stores what is new on disk, and has no entries of it.
func TestIncrementalSnapshots(t *testing.T) {
	for kind := range imageKinds {
		t.Run(kind, func(t *testing.T) {
			h := openForImages(t, kind)
			random, files := rand.New(rand.NewPCG(1, 2)), &snapshottest.Files{}
			spillKeys(t, h, random, 50_000, 1000)
			takeImage(t, h, files)
			first := files.Written()
			spillKeys(t, h, random, 500, 1000)
			taken := takeImage(t, h, files)
			more := files.Written() - first
			t.Logf("%d bytes, then %d more", first, more)
			if first < 1<<20 || more == 0 || more > first/5 {
				t.Errorf("the first snapshot stores %d bytes and the second %d more", first, more)
			}
			if _, ok := taken.Entries(runsPart); ok {
				t.Error("there are entries of what is on disk")
			}
			if entries, _ := taken.Entries(windowsPart); len(entries) > 5000 {
				t.Errorf("there are %d entries", len(entries))
			}
			must(t, h.closeNow())
		})
	}
}

// Files of windows that have fired, and of sums of slices that nobody stores, are left out.
func TestImagesWithoutWhatHasFired(t *testing.T) {
	for name, assigner := range map[string]window.Assigner{
		"panes": window.Tumbling(time.Second), "slices": window.Sliding(3*time.Second, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			h := openSpilling(t, listsOf(assigner), func(rt *operator.Runtime) { rt.StateMemory, rt.Checkpointing = 64<<10, true })
			random := rand.New(rand.NewPCG(1, 2))
			var first, last int64
			for round := range int64(10) {
				spillKeys(t, h, random, 10_000, round*1000)
				files := &snapshottest.Files{}
				takeImage(t, h, files)
				if last = files.Written(); round == 0 {
					first = last
				}
				must(t, h.op.Watermark(round*1000+999))
				h.take()
			}
			t.Logf("%d bytes first, %d after ten windows", first, last)
			if first < 256<<10 || last > 4*first {
				t.Errorf("%d bytes first, %d after ten windows", first, last)
			}
			must(t, h.closeNow())
		})
	}
}

// What is wrong with the files is an error that says where, and the context ends a restore.
func TestRestoringImagesFails(t *testing.T) {
	for kind, build := range imageKinds {
		t.Run(kind, func(t *testing.T) {
			h := openForImages(t, kind)
			files := &snapshottest.Files{}
			spillKeys(t, h, rand.New(rand.NewPCG(1, 2)), 5000, 1000)
			taken := takeImage(t, h, files)
			must(t, h.closeNow())
			restore := func(ctx context.Context) error {
				shares, err := snapshottest.Readers([]*snapshottest.Snapshot{taken}, 1, maxParallelism)
				must(t, err)
				h.op, h.adjust = build(), func(rt *operator.Runtime) {
					rt.Context, rt.Checkpointing, rt.Restored, rt.StateDir = ctx, true, shares[0], t.TempDir()
				}
				return errors.Join(h.op.Open(h.runtime(), h.out), h.closeNow())
			}
			must(t, restore(t.Context()))
			ended, end := context.WithCancelCause(t.Context())
			end(errors.New("the job was cancelled"))
			if err := restore(ended); err == nil || !strings.Contains(err.Error(), "the job was cancelled") {
				t.Errorf("with a context that has ended: %v", err)
			}
			files.Damage(func(string, []byte) []byte { return nil })
			if err := restore(t.Context()); err == nil || !strings.Contains(err.Error(), ".sst") || !strings.Contains(err.Error(), "key groups 0 to 127") {
				t.Errorf("without the files: %v", err)
			}
		})
	}
}
