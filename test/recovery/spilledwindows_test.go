package recovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/checkpoint"
	"github.com/lowwater/lowwater/window"
)

// spilledWindows is a trial of tumbling or sliding windows that are larger than the memory budget, which changes
// from run to run, as the parallelism does; at times there is none. Many records come when
// their windows have fired, but not too late.
type spilledWindows struct {
	*trial
	address, dir string
	assigner     window.Assigner
	l            *ledger
	spilled      spilledSeen
}

// spilledSeen counts what happened, so that a test that tests nothing is noticed.
type spilledSeen struct {
	written, read int64 // runs
	// restored are starts from a checkpoint with runs, unlimited those of them without a budget.
	restored, unlimited int64
	restores, late      int64 // late firings
}

const (
	lateness = 5 * time.Second
	// bound is so much less than the jitter that many records are late.
	bound = 500 * time.Millisecond
)

func newSpilledWindows(seed uint64, address, dir string) *spilledWindows {
	s := &spilledWindows{trial: newTrial(seed), address: address, dir: dir}
	s.splits, s.keys, s.events, s.batch, s.slow = 4, 400, 2500, 20, 0
	s.step = 10 + s.random.Int64N(30)
	s.spread(4000)
	s.assigner = window.Tumbling(size)
	if seed%2 == 1 {
		s.assigner = window.Sliding(size, size/4)
	}
	s.l = newLedger(s.trial)
	return s
}

// firing is a result: what a window held at one moment.
type firing struct {
	Kind  string
	Key   int
	Start int64
	N     int
	// Elements are those of a list, as split and number.
	Elements [][2]int64 `json:",omitempty"`
}

// pane is what firings belong to.
type pane struct {
	kind  string
	key   int
	start int64
}

func (f firing) String() string {
	text, _ := json.Marshal(f) // never fails
	return string(text)
}

// build builds the job for one more run.
func (s *spilledWindows) build(tb testing.TB, env *lowwater.Environment) {
	memory := []int64{0, 16 << 10, 16 << 10, 32 << 10, 128 << 10}[s.random.IntN(5)]
	lowwater.WithStateMemory(memory, s.dir)(env)
	if s.hasRuns(tb) {
		s.spilled.restored++
		if memory == 0 {
			s.spilled.unlimited++
		}
	}
	strategy := eventtime.ForBoundedOutOfOrderness[event](bound)
	windows := lowwater.FromSource(env, &tickerSource{s.trial}, strategy, "events").UID("events").
		KeyBy(func(e event) int { return e.Key }).Window(s.assigner).AllowedLateness(lateness)
	counts := windows.Aggregate(lowwater.Count[event]()).UID("counts").Map(func(p window.Pane[int, int64]) string {
		return firing{Kind: "count", Key: p.Key, Start: p.Window.Start, N: int(p.Value)}.String()
	}).UID("text")
	lists := windows.Process(s.list).UID("lists")
	counts.Union(lists).SinkTo(s.l).UID("ledger")
}

// list tells all elements of a window.
func (s *spilledWindows) list(ctx *lowwater.WindowContext[int], elements iter.Seq[event], out *lowwater.Collector[string]) error {
	f := firing{Kind: "list", Key: ctx.Key(), Start: ctx.Window().Start}
	for e := range elements {
		f.N++
		f.Elements = append(f.Elements, [2]int64{int64(e.Split), e.N})
	}
	out.Emit(f.String())
	return s.chance("a window function")
}

// count counts what a run of the program has read and written.
func (s *spilledWindows) count(j *lowwater.Job) {
	for _, v := range j.Status().Vertices {
		for _, subtask := range v.Subtasks {
			for _, o := range subtask.Operators {
				s.spilled.written += o.State.SpillWrites
				s.spilled.read += o.State.SpillReads
			}
		}
	}
}

// hasRuns reports whether what the next run goes on from, the newest checkpoint or savepoint,
// has parts with runs.
func (s *spilledWindows) hasRuns(tb testing.TB) bool {
	store, err := checkpoint.View(tb.Context(), s.address)
	if err != nil {
		tb.Fatal(err)
	}
	defer store.Close()
	infos, err := store.List()
	if err != nil {
		tb.Fatal(err)
	}
	i := slices.IndexFunc(infos, func(i checkpoint.Info) bool { return i.Err == nil })
	if i < 0 {
		return false
	}
	c, err := checkpoint.Load(tb.Context(), infos[i].Path)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	for _, op := range c.Manifest().Operators {
		state, _ := c.Operator(op.ID)
		parts, err := state.Parts()
		if err != nil {
			tb.Fatal(err)
		}
		if slices.ContainsFunc(parts, func(p checkpoint.PartInfo) bool { return p.Name == "runs" && p.Entries > 0 }) {
			return true
		}
	}
	return false
}

// reference returns the last firing of each window, with its elements in order.
func (s *spilledWindows) reference() map[pane]firing {
	last := map[pane]firing{}
	for _, e := range s.all() {
		windows, _ := s.assigner.Assign(nil, e.At, 0) // never fails for a time
		for _, w := range windows {
			for _, kind := range []string{"count", "list"} {
				at := pane{kind, e.Key, w.Start}
				f := last[at]
				f.Kind, f.Key, f.Start, f.N = at.kind, at.key, at.start, f.N+1
				if kind == "list" {
					f.Elements = append(f.Elements, [2]int64{int64(e.Split), e.N})
				}
				last[at] = f
			}
		}
	}
	return last
}

// check compares what is visible with what must be. How many records are late depends on
// which split is read when, but not what comes of it: a window fires, and again for every late
// record, each time with one element more, behind those it had, until it has all.
func (s *spilledWindows) check(t *testing.T) {
	t.Helper()
	fired := map[pane][]firing{}
	for _, text := range s.l.visible {
		var f firing
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		at := pane{f.Kind, f.Key, f.Start}
		fired[at] = append(fired[at], f)
	}
	got := map[pane]firing{}
	var wrong []error
	for at, all := range fired {
		slices.SortStableFunc(all, func(a, b firing) int { return a.N - b.N })
		for i, later := range all[1:] {
			s.spilled.late++
			if before := all[i]; later.N != before.N+1 || !slices.Equal(later.Elements[:len(before.Elements)], before.Elements) {
				wrong = append(wrong, fmt.Errorf("%v is followed by %v", before, later))
			}
		}
		last := all[len(all)-1]
		slices.SortFunc(last.Elements, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
		got[at] = last
	}
	if diff := cmp.Diff(s.reference(), got, cmp.AllowUnexported(pane{})); diff != "" {
		wrong = append(wrong, fmt.Errorf("last firings, -want +got:\n%s", diff))
	}
	if len(wrong) > 0 {
		t.Errorf("seed %d (run with -seed %d): %v", s.seed, s.seed-1<<21, errors.Join(wrong[:min(len(wrong), 5)]...))
	}
}

// What interrupts a job does not show when its windows are on disk in part.
func TestInterruptionsDoNotShowWithSpilledWindows(t *testing.T) {
	var all spilledSeen
	for i := range uint64(max(*seeds/10, 1)) {
		seed := *first + i + 1<<21
		dir := t.TempDir()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpilledWindows(seed, "mem://"+strings.ReplaceAll(t.Name(), "/", "-"), dir)
				s.ran = s.count
				if err := s.run(t, func(env *lowwater.Environment) { s.build(t, env) }); err != nil {
					t.Fatal(err)
				}
				s.check(t)
				s.spilled.restores = s.seen.restores.Load()
				all.add(&s.spilled)
			})
		})
	}
	t.Logf("%+v", all)
	if *seeds >= 120 && (all.written == 0 || all.read == 0 || all.restored == 0 || all.unlimited == 0 || all.restores == 0 || all.late == 0) {
		t.Error("that is too few")
	}
}

func (s *spilledSeen) add(o *spilledSeen) {
	s.written += o.written
	s.read += o.read
	s.restored += o.restored
	s.unlimited += o.unlimited
	s.restores += o.restores
	s.late += o.late
}
