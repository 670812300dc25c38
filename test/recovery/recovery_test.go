package recovery

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/window"
)

var (
	seeds = flag.Int("seeds", 120, "how many trials")
	first = flag.Uint64("seed", 1, "the first trial's seed")
)

const (
	size   = 10 * time.Second
	jitter = 3000
)

// trial is one job with its input, its faults and what it must give.
type trial struct {
	seed   uint64
	random *rand.Rand
	splits int
	events int64
	keys   int
	batch  int64
	pace   time.Duration
	step   int64
	// interval bounds the time between checkpoints.
	interval time.Duration
	// slow is how long the process function takes for one record.
	slow time.Duration
	// commitLater has output appear one checkpoint later, so that the newest checkpoint
	// may be damaged.
	commitLater bool

	// faults is how many more failures there are to be, one in about odds chances. Only
	// faults may change once the job runs.
	faults atomic.Int64
	odds   int
	rolls  atomic.Uint64
	// endedWaiting says that the last run was ended when it had failed and waited for its
	// restart: then not all of its output is out, however far it was.
	endedWaiting bool
	// images is how many images of state on disk are slow to be taken at the moment,
	// behindImages how many records have come meanwhile.
	images, behindImages atomic.Int64
	// ran, if it is set, is called when a run of the program has ended.
	ran func(*lowwater.Job)

	seen seen
}

// seen counts what happened, so that a test that tests nothing is noticed.
type seen struct{ faults, restores, cancels, stops, savepoints, intermediate, checkpoints, unaligned, overtaken, incremental atomic.Int64 }

func newTrial(seed uint64) *trial {
	r := rand.New(rand.NewPCG(seed, 0))
	t := &trial{
		seed: seed, random: r, splits: 1 + r.IntN(5), events: 200 + r.Int64N(400), keys: 1 + r.IntN(20),
		batch: 1 + r.Int64N(20), pace: time.Duration(20+r.IntN(200)) * time.Millisecond, step: 50 + r.Int64N(400),
		odds: 20 + r.IntN(400), interval: 2 * time.Second,
	}
	if r.IntN(2) == 0 {
		t.slow = time.Duration(r.IntN(20)) * time.Millisecond
	}
	t.commitLater = r.IntN(3) == 0
	t.faults.Store(int64(r.IntN(8)))
	return t
}

// event returns event n of a split: a pure function of the seed.
func (t *trial) event(split int, n int64) event {
	r := rand.New(rand.NewPCG(t.seed, uint64(split)<<32|uint64(n)))
	return event{Split: split, N: n, Key: r.IntN(t.keys), At: n*t.step + r.Int64N(jitter)}
}

// chance fails now and then.
func (t *trial) chance(what string) error {
	roll := rand.New(rand.NewPCG(t.seed, t.rolls.Add(1)+1<<60))
	if roll.IntN(t.odds) != 0 || t.faults.Add(-1) < 0 {
		return nil
	}
	t.seen.faults.Add(1)
	return errors.New("a fault in " + what)
}

// reference is what the job must make visible.
func (t *trial) reference() []string {
	counts := map[[2]int64]int{}
	for split := range t.splits {
		for n := range t.events {
			e := t.event(split, n)
			counts[[2]int64{int64(e.Key), e.At / size.Milliseconds()}]++
		}
	}
	var all []string
	for at, n := range counts {
		start := at[1] * size.Milliseconds()
		all = append(all, line("window", int(at[0]), start, n), line("process", int(at[0]), start, n))
	}
	slices.Sort(all)
	return all
}

func line(kind string, key int, start int64, n int) string {
	return fmt.Sprintf("%s: key %d from %d: %d", kind, key, start, n)
}

// counter counts the events of each key by bucket, with a timer at its end: what the
// window does, in state of its own.
type counter struct {
	trial  *trial
	counts state.MapState[int64, int]
}

func (c *counter) Open(ctx *lowwater.OpenContext[int]) error {
	c.counts = ctx.Map(state.Map[int64, int]("counts"))
	return nil
}

func (c *counter) ProcessElement(ctx *lowwater.KeyedContext[int], e event, _ *lowwater.Collector[string]) error {
	start := e.At - e.At%size.Milliseconds()
	n, _ := c.counts.Get(start)
	c.counts.Put(start, n+1)
	if c.trial.slow > 0 {
		<-time.After(c.trial.slow)
	}
	ctx.RegisterEventTimeTimer(start + size.Milliseconds() - 1)
	return c.trial.chance("a process function")
}

func (c *counter) OnTimer(ctx *lowwater.TimerContext[int], at int64, out *lowwater.Collector[string]) error {
	start := at + 1 - size.Milliseconds()
	n, _ := c.counts.Get(start)
	c.counts.Remove(start)
	out.Emit(line("process", ctx.Key(), start, n))
	return nil
}

// job builds the trial's job on an environment.
func (t *trial) job(env *lowwater.Environment, l *ledger) {
	strategy := eventtime.ForBoundedOutOfOrderness[event](jitter * time.Millisecond)
	t.results(lowwater.FromSource(env, &tickerSource{t}, strategy, "events").UID("events")).SinkTo(l).UID("ledger")
}

// results computes what the trial is about from its events.
func (t *trial) results(stream *lowwater.DataStream[event]) *lowwater.DataStream[string] {
	events := stream.KeyBy(func(e event) int { return e.Key })
	windows := events.Window(window.Tumbling(size)).Aggregate(lowwater.Count[event]()).UID("windows").
		Map(func(p window.Pane[int, int64]) string { return line("window", p.Key, p.Window.Start, int(p.Value)) }).UID("text")
	counted := events.Process(func() *counter { return &counter{trial: t} }).UID("counter")
	return windows.Union(counted)
}

// run runs the job until its input has ended, interrupting it in all ways.
func (t *trial) run(tb testing.TB, build func(*lowwater.Environment)) error {
	address := "mem://" + strings.ReplaceAll(tb.Name(), "/", "-")
	resume := lowwater.StartFresh()
	starts := int64(0)
	for attempt := 0; ; attempt++ {
		// Barriers that overtake records must be alone.
		concurrent := lowwater.MaxConcurrentCheckpoints(1 + t.random.IntN(2))
		if t.commitLater || t.random.IntN(2) == 0 {
			concurrent = lowwater.AlignedCheckpointTimeout(time.Duration(1+t.random.IntN(20)) * time.Millisecond)
		}
		later := lowwater.RetainCheckpoints(3)
		if t.commitLater {
			later = lowwater.CommitOneCheckpointLater()
		}
		env := lowwater.NewEnvironment(
			lowwater.WithLogger(slog.New(slog.DiscardHandler)),
			lowwater.WithParallelism(1+t.random.IntN(4)),
			lowwater.WithMaxParallelism(16),
			lowwater.WithCheckpoints(address, 100*time.Millisecond+time.Duration(t.random.Int64N(int64(t.interval))),
				resume, lowwater.TolerableCheckpointFailures(t.random.IntN(3)),
				concurrent, later),
			lowwater.WithRestart(lowwater.FixedDelay{Attempts: 1000, Delay: time.Duration(t.random.IntN(500)) * time.Millisecond}),
		)
		build(env)
		j, err := env.Start(tb.Context(), "trial")
		switch {
		case err == nil:
		case t.seen.faults.Load() > starts:
			starts = t.seen.faults.Load()
			continue // a fault while it connected
		default:
			return err
		}
		resume, t.endedWaiting = lowwater.ResumeLatest(), false
		savepoint := ""
		if t.random.IntN(3) > 0 && attempt < 5 {
			<-time.After(time.Duration(t.random.IntN(8000)) * time.Millisecond)
			savepoint = t.interrupt(j, address)
		}
		// A job that fails while it is being stopped does not run again by itself, and one
		// with much under way may not stop in time.
		if err := j.Wait(); err != nil && !errors.Is(err, lowwater.ErrStopTimeout) && t.seen.faults.Load() == 0 {
			return err
		}
		if savepoint != "" && t.random.IntN(2) == 0 && isLatest(j, savepoint) {
			resume = lowwater.ResumeFrom(savepoint)
		}
		t.look(j)
		if t.ran != nil {
			t.ran(j)
		}
		if ended(j) && !t.endedWaiting {
			return nil
		}
	}
}

// look counts what a run of the program did.
func (t *trial) look(j *lowwater.Job) {
	records, _ := j.Checkpoints()
	t.seen.restores.Add(records.Restored)
	t.seen.checkpoints.Add(records.Completed)
	for _, c := range records.History {
		if c.WrittenBytes < c.StateBytes {
			t.seen.incremental.Add(1)
		}
		for _, v := range c.Vertices {
			for _, s := range v.Subtasks {
				if s.Unaligned {
					t.seen.unaligned.Add(1)
				}
				t.seen.overtaken.Add(s.OvertakenRecords)
			}
		}
	}
}

// ended reports whether the job's input has ended and all output is out: a run that was
// cancelled, or has failed, before its last checkpoint has not brought it out.
func ended(j *lowwater.Job) bool {
	if j.Status().Life.State != status.Finished {
		return false
	}
	for _, v := range j.Status().Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				if o.UID != "ledger" && o.CurrentOutputWatermark != eventtime.MaxTimestamp {
					return false
				}
			}
		}
	}
	return true
}

// end ends a run, and notes whether it had failed and waited to be restarted.
func (t *trial) end(j *lowwater.Job, end func()) {
	t.endedWaiting = j.Status().Life.State == status.Restarting
	end()
}

// isLatest reports whether a run may be resumed from a savepoint without repeating anything:
// nothing has been committed after it, nor what it has prepared been given up.
func isLatest(j *lowwater.Job, savepoint string) bool {
	records, _ := j.Checkpoints()
	i := slices.IndexFunc(records.History, func(c status.Checkpoint) bool { return c.Path == savepoint })
	if i < 0 || records.RestoredFrom != nil && records.RestoredFrom.At.After(records.History[i].Triggered) {
		return false
	}
	return !slices.ContainsFunc(records.History[i+1:], func(c status.Checkpoint) bool {
		return c.State == status.CheckpointCompleted && !c.Savepoint
	})
}

// interrupt ends a run in the middle, or disturbs it, with a savepoint before that now and
// then. Savepoints go into the directory of the checkpoints, or into another one.
func (t *trial) interrupt(j *lowwater.Job, address string) (savepoint string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	target := ""
	if t.random.IntN(2) == 0 {
		target = address + "-elsewhere"
	}
	if t.random.IntN(2) == 0 {
		savepoint, _ = j.Savepoint(ctx, target) // it may have ended, or have failed
		t.seen.intermediate.Add(1)
	}
	switch t.random.IntN(4) {
	case 0: // as a crash: nothing is flushed, the last checkpoint counts
		t.seen.cancels.Add(1)
		t.end(j, j.Cancel)
	case 1:
		t.seen.stops.Add(1)
		t.end(j, j.Stop)
	case 2:
		var err error
		if savepoint, err = j.StopWithSavepoint(ctx, target, false); err != nil { // it had ended, or failed and will be restarted
			t.end(j, j.Stop)
			savepoint = ""
		}
		t.seen.savepoints.Add(1)
	case 3:
		_, _ = j.Checkpoint(ctx)
	}
	return savepoint
}

// Whatever happens to a job, the outside sees each result once.
func TestInterruptionsDoNotShow(t *testing.T) {
	var all seen
	t.Cleanup(func() { all.check(t, *seeds) })
	for i := range uint64(*seeds) {
		seed := *first + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				trial := newTrial(seed)
				l := newLedger(trial)
				if err := trial.run(t, func(env *lowwater.Environment) { trial.job(env, l) }); err != nil {
					t.Fatal(err)
				}
				all.add(&trial.seen)
				slices.Sort(l.visible)
				if diff := cmp.Diff(trial.reference(), l.visible); diff != "" {
					t.Errorf("seed %d (run with -seeds 1 -seed %d), -want +got:\n%s", seed, seed, diff)
				}
			})
		})
	}
}

func (s *seen) numbers() map[string]*atomic.Int64 {
	return map[string]*atomic.Int64{
		"faults": &s.faults, "restores": &s.restores, "cancels": &s.cancels, "stops": &s.stops,
		"savepoints": &s.savepoints, "intermediate savepoints": &s.intermediate, "checkpoints": &s.checkpoints,
		"unaligned snapshots": &s.unaligned, "overtaken records": &s.overtaken,
	}
}

func (s *seen) add(other *seen) {
	mine := s.numbers()
	for name, n := range other.numbers() {
		mine[name].Add(n.Load())
	}
}

// check wants every kind of thing to have happened, far less often than it does on average.
func (s *seen) check(t *testing.T, trials int) {
	for name, n := range s.numbers() {
		t.Logf("%d %s", n.Load(), name)
		if n.Load() < int64(trials/20) {
			t.Errorf("only %d %s in %d trials", n.Load(), name, trials)
		}
	}
}
