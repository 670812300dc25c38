package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

// watermarkMakers are the operators that make watermarks behind a source.
var watermarkMakers = map[string]func() Operator{
	"generator": func() Operator { return NewTimestamps(eventtime.ForBoundedOutOfOrderness[int](0)) },
	"rows": func() Operator {
		return NewTimestamps(eventtime.ForRowWatermarks(func(n int) (int64, bool) { return int64(10 * n), true }))
	},
}

func openMaker(t *testing.T, op Operator, subtask, parallelism int, from snapshot.Reader) (*logged, *handClock) {
	out := &logged{}
	rt, clock := testRuntime(t)
	rt.Subtask, rt.Parallelism, rt.Restored, rt.Checkpointing = subtask, parallelism, from, true
	rt.WatermarkInterval = 200 * time.Millisecond
	must(t, op.Open(rt, out))
	return out, clock
}

// makerSnapshot lets an operator see some records and takes a snapshot of it.
func makerSnapshot(t *testing.T, make func() Operator, numbers ...int) *snapshottest.Snapshot {
	op := make()
	_, clock := openMaker(t, op, 0, 1, nil)
	if len(numbers) > 0 {
		must(t, op.Process(0, batchOf(numbers...)))
	}
	clock.advance(t, 1500)
	s, err := snapshottest.Take(3, op.(Stateful).Snapshot)
	must(t, err)
	must(t, s.Finish())
	must(t, op.Close())
	return s
}

// watermarksOf returns the watermarks among lines.
func watermarksOf(out *logged) (watermarks []string) {
	for _, line := range out.lines {
		if strings.HasPrefix(line, "watermark") {
			watermarks = append(watermarks, line)
		}
	}
	return watermarks
}

func TestMadeWatermarksAreRestored(t *testing.T) {
	for name, make := range watermarkMakers {
		t.Run(name, func(t *testing.T) {
			before := makerSnapshot(t, make, 1, 9, 5)
			reached := "watermark 89"
			if name == "rows" {
				reached = "watermark 90"
			}

			op := make()
			out, clock := openMaker(t, op, 0, 1, shares(t, 1, before)[0])
			clock.advance(t, 1000) // without any input
			out.expect(t, reached)
			must(t, op.Process(0, batchOf(3, 4)))
			clock.advance(t, 2000)
			if w := watermarksOf(out); len(w) > 0 {
				t.Errorf("%v are behind %s", w, reached)
			}
			must(t, op.Process(0, batchOf(20)))
			clock.advance(t, 3000)
			if w := watermarksOf(out); len(w) != 1 {
				t.Errorf("watermarks %v, want one", w)
			}
			must(t, op.Close())

			op = make()
			out, _ = openMaker(t, op, 0, 1, shares(t, 1, before)[0])
			must(t, op.Process(0, batchOf(3)))
			if len(out.lines) != 2 || out.lines[0] != reached {
				t.Errorf("got %v, want %s before the record", out.lines, reached)
			}
			must(t, op.Close())
		})
	}
}

func TestMadeWatermarksAreRescaled(t *testing.T) {
	make := watermarkMakers["generator"]
	fast, slow, none := makerSnapshot(t, make, 9), makerSnapshot(t, make, 4), makerSnapshot(t, make)
	for _, test := range []struct {
		name                 string
		from                 []*snapshottest.Snapshot
		subtask, parallelism int
		want                 []string
	}{
		{"same", []*snapshottest.Snapshot{fast, slow}, 1, 2, []string{"watermark 39"}},
		{"fewer", []*snapshottest.Snapshot{fast, slow}, 0, 1, []string{"watermark 39"}},
		{"more", []*snapshottest.Snapshot{fast}, 2, 3, []string{"watermark 89"}},
		{"one had none", []*snapshottest.Snapshot{fast, none}, 0, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := make()
			out, clock := openMaker(t, op, test.subtask, test.parallelism, shares(t, test.parallelism, test.from...)[test.subtask])
			clock.advance(t, 1000)
			out.expect(t, test.want...)
			must(t, op.Close())
			if len(clock.due) > 1 { // the generator's
				t.Errorf("%d timers are left", len(clock.due))
			}
		})
	}
}

// What an operator has seen and not told of yet is told before the barrier: it is not in the
// snapshot, and on a quiet stream nothing else would tell it.
func TestMadeWatermarksBeforeABarrier(t *testing.T) {
	for name, make := range watermarkMakers {
		t.Run(name, func(t *testing.T) {
			op := make()
			out, clock := openMaker(t, op, 0, 1, nil)
			must(t, op.Process(0, batchOf(1)))
			clock.advance(t, 1000)
			must(t, op.Process(0, batchOf(11)))
			out.lines = nil
			prepare := op.(BeforeBarrier).PrepareBarrier
			must(t, prepare(1))
			s, err := snapshottest.Take(3, op.(Stateful).Snapshot)
			must(t, err)
			must(t, s.Finish())
			reached := watermarksOf(out)
			if len(reached) != 1 {
				t.Fatalf("watermarks %v before the barrier, want one", reached)
			}
			must(t, op.Watermark(eventtime.MaxTimestamp))
			must(t, op.Finish())
			out.lines = nil
			must(t, prepare(2))
			out.expect(t)
			must(t, op.Close())

			op = make()
			out, clock = openMaker(t, op, 0, 1, shares(t, 1, s)[0])
			clock.advance(t, 1000) // without any input
			out.expect(t, reached...)
			must(t, op.Close())
		})
	}
}
