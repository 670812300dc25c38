package recovery

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/state"
	"github.com/lowwater/lowwater/window"
)

// checkpointed returns an environment with checkpoints at an address.
func checkpointed(address string, options ...lowwater.CheckpointOption) *lowwater.Environment {
	return lowwater.NewEnvironment(
		lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithParallelism(2),
		lowwater.WithCheckpoints(address, time.Second, options...), lowwater.WithRestart(nil),
	)
}

// bubble runs f in virtual time, and a small trial with it.
func bubble(t *testing.T, f func(t *testing.T, trial *trial)) {
	synctest.Test(t, func(t *testing.T) {
		trial := newTrial(1)
		trial.faults.Store(0)
		trial.slow = 0
		f(t, trial)
	})
}

func runs(t *testing.T, env *lowwater.Environment) {
	t.Helper()
	if err := env.Execute(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
}

// fails wants Execute to fail with all of the words.
func fails(t *testing.T, env *lowwater.Environment, words ...string) {
	t.Helper()
	err := env.Execute(t.Context(), "job")
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// What the checkpoints in a directory mean to a new run is the author's to say.
func TestStartsAreDecided(t *testing.T) {
	bubble(t, func(t *testing.T, trial *trial) {
		const address = "mem://starts"
		build := func(options ...lowwater.CheckpointOption) (*lowwater.Environment, *ledger) {
			env, l := checkpointed(address, options...), newLedger(trial)
			trial.job(env, l)
			return env, l
		}
		results := len(trial.reference())

		env, l := build()
		runs(t, env)
		if len(l.visible) != results {
			t.Fatalf("%d results, want %d", len(l.visible), results)
		}
		env, _ = build()
		fails(t, env, "ResumeLatest", "StartFresh", address)

		again := checkpointed(address, lowwater.ResumeLatest())
		trial.job(again, l)
		runs(t, again)
		if len(l.visible) != results {
			t.Errorf("a job that had ended gave %d results again", len(l.visible)-results)
		}
		env, l = build(lowwater.StartFresh())
		runs(t, env)
		if len(l.visible) != results {
			t.Errorf("started anew it gave %d results, want %d", len(l.visible), results)
		}
		env, _ = build(lowwater.ResumeLatest(), lowwater.StartFresh())
		fails(t, env, "exclude each other")
		env, _ = build(lowwater.ResumeFrom("mem://starts/chk-999"))
		fails(t, env, "chk-999")
	})
}

// State that nobody takes is not dropped unless the author says so.
func TestStateIsNotLostInSilence(t *testing.T) {
	bubble(t, func(t *testing.T, trial *trial) {
		const address = "mem://lost"
		source := func(env *lowwater.Environment) *lowwater.KeyedStream[int, event] {
			return lowwater.FromSource(env, &tickerSource{trial}, eventtime.ForMonotonousTimestamps[event](), "events").
				UID("events").KeyBy(func(e event) int { return e.Key })
		}
		env := checkpointed(address)
		source(env).Process(func() *counter { return &counter{trial: trial} }).UID("counter").PrintTo(io.Discard).UID("out")
		j, err := env.Start(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(2500 * time.Millisecond)
		j.Cancel() // in the middle, so that there is state
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}

		env = checkpointed(address, lowwater.ResumeLatest())
		source(env).Window(window.Tumbling(size)).Aggregate(lowwater.Count[event]()).UID("windows").PrintTo(io.Discard).UID("out")
		fails(t, env, "counter", "state", "AllowNonRestoredState")

		env = checkpointed(address, lowwater.ResumeLatest())
		source(env).Process(func() *forgetful { return &forgetful{} }).UID("counter").PrintTo(io.Discard).UID("out")
		fails(t, env, "counts", "AllowNonRestoredState")

		env = checkpointed(address, lowwater.ResumeLatest(), lowwater.AllowNonRestoredState())
		source(env).Process(func() *forgetful { return &forgetful{} }).UID("counter").PrintTo(io.Discard).UID("out")
		runs(t, env)
	})
}

// forgetful is counter after its state was taken out of the code.
type forgetful struct {
	lowwater.KeyedBase[int, string]
	other state.ValueState[int]
}

func (f *forgetful) Open(ctx *lowwater.OpenContext[int]) error {
	f.other = ctx.Value(state.Value[int]("other"))
	return nil
}

func (f *forgetful) ProcessElement(*lowwater.KeyedContext[int], event, *lowwater.Collector[string]) error {
	return nil
}

// OnTimer has nothing to do with the timers of the state that is gone.
func (f *forgetful) OnTimer(*lowwater.TimerContext[int], int64, *lowwater.Collector[string]) error {
	return nil
}

// A job whose operators cannot be opened is not tried again and again: it never ran.
func TestWhatCannotBeOpenedIsNotRestarted(t *testing.T) {
	bubble(t, func(t *testing.T, trial *trial) {
		env := lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.DiscardHandler)), lowwater.WithCheckpoints("mem://unopened", time.Second))
		lowwater.FromSource(env, &tickerSource{trial}, eventtime.ForMonotonousTimestamps[event](), "events").
			KeyBy(func(e event) int { return e.Key }).Process(func() *unstorable { return &unstorable{} }).PrintTo(io.Discard)
		began := time.Now()
		fails(t, env, "channels", "cannot be stored")
		if took := time.Since(began); took > time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// unstorable has a state that no checkpoint can hold.
type unstorable struct {
	lowwater.KeyedBase[int, string]
}

func (*unstorable) Open(ctx *lowwater.OpenContext[int]) error {
	ctx.Value(state.Value[chan int]("channels"))
	return nil
}

func (*unstorable) ProcessElement(*lowwater.KeyedContext[int], event, *lowwater.Collector[string]) error {
	return nil
}

// A run that ends before its first checkpoint is the newest all the same: what was there
// before it was told where to begin does not come back.
func TestResumeLatestOfARunWithoutCheckpoints(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fresh   bool
		unopens bool
		want    int64 // the checkpoint that is gone on from, 0 if none
	}{{"fresh", true, false, 0}, {"from an older one", false, false, 2}, {"fresh, but it could not be opened", true, true, 3}} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, trial *trial) {
				address := "mem://" + strings.ReplaceAll(t.Name(), "/", "-")
				trial.pace, trial.batch, trial.events = 100*time.Millisecond, 1, 1000
				run := func(lasts time.Duration, options ...lowwater.CheckpointOption) (from int64) {
					env := checkpointed(address, options...)
					trial.job(env, newLedger(trial))
					j, err := env.Start(t.Context(), "job")
					if err != nil {
						t.Fatal(err)
					}
					<-time.After(lasts)
					if records, _ := j.Checkpoints(); records.RestoredFrom != nil {
						from = records.RestoredFrom.ID
					}
					j.Cancel()
					if err := j.Wait(); err != nil {
						t.Fatal(err)
					}
					return from
				}
				run(3500 * time.Millisecond)
				begin := lowwater.ResumeFrom(address + "/chk-2")
				if tt.fresh {
					begin = lowwater.StartFresh()
				}
				if tt.unopens {
					env := checkpointed(address, begin)
					lowwater.FromSource(env, &tickerSource{trial}, eventtime.ForMonotonousTimestamps[event](), "events").UID("events").
						KeyBy(func(e event) int { return e.Key }).Process(func() *unstorable { return &unstorable{} }).PrintTo(io.Discard)
					fails(t, env, "channels")
				} else {
					run(500*time.Millisecond, begin)
				}
				for range 2 { // nor does it after another such run
					if from := run(500*time.Millisecond, lowwater.ResumeLatest()); from != tt.want {
						t.Errorf("went on from checkpoint %d, want %d", from, tt.want)
					}
				}
				run(1500*time.Millisecond, lowwater.ResumeLatest())
				if from := run(0, lowwater.ResumeLatest()); from != 4 {
					t.Errorf("went on from checkpoint %d, want the first one since, 4", from)
				}
			})
		})
	}
}

// What another job has left is refused, also if its operators happen to fit. A job may be
// renamed: its uids say that it is the same, or its author does.
func TestCheckpointOfAnotherJob(t *testing.T) {
	bubble(t, func(t *testing.T, trial *trial) {
		address := "mem://" + t.Name()
		build := func(uid string, env *lowwater.Environment) *lowwater.Environment {
			s := lowwater.FromSource(env, &tickerSource{trial}, eventtime.ForMonotonousTimestamps[event](), "events")
			if uid != "" {
				s.UID(uid)
			}
			s.PrintTo(io.Discard)
			return env
		}
		run := func(name string, env *lowwater.Environment) {
			t.Helper()
			j, err := env.Start(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(1500 * time.Millisecond)
			j.Cancel()
			if err := j.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		run("payments", build("", checkpointed(address)))
		fails(t, build("", checkpointed(address, lowwater.ResumeLatest())), `"payments"`, `"job"`, "ResumeFrom", "AllowNonRestoredState")
		run("payments", build("", checkpointed(address, lowwater.ResumeLatest())))

		var log bytes.Buffer
		run("orders", build("", lowwater.NewEnvironment(lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), lowwater.WithParallelism(2),
			lowwater.WithCheckpoints(address, time.Second, lowwater.ResumeFrom(address+"/chk-1")))))
		if !strings.Contains(log.String(), "of=payments job=orders") {
			t.Errorf("the log does not name both jobs:\n%s", &log)
		}
		run("invoices", build("", checkpointed(address, lowwater.ResumeLatest(), lowwater.AllowNonRestoredState())))

		run("one", build("events", checkpointed(address+"-uid")))
		run("two", build("events", checkpointed(address+"-uid", lowwater.ResumeLatest())))
	})
}
