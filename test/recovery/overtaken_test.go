package recovery

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/status"
)

// busyTrial is a job whose slow operators always have a backlog.
func busyTrial(seed uint64) *trial {
	t := calmTrial(seed)
	t.events, t.batch = 400, 20
	return t
}

// interruptOvertaken runs a job until its newest checkpoint has overtaken records, and ends
// it there.
func interruptOvertaken(t *testing.T, j *lowwater.Job) {
	t.Helper()
	var last status.Checkpoint
	for range 3000 {
		<-time.After(10 * time.Millisecond)
		records, _ := j.Checkpoints()
		for _, c := range records.History {
			if c.State == status.CheckpointFailed {
				t.Fatal(c.Failure)
			}
			if c.State == status.CheckpointCompleted {
				last = c
			}
		}
		for _, v := range last.Vertices {
			if slices.ContainsFunc(v.Subtasks, func(s status.SubtaskCheckpoint) bool { return s.OvertakenRecords > 0 }) {
				j.Cancel()
				if err := j.Wait(); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatal("no records have been overtaken")
}

// sees wants the job to show each event so many times.
func sees(t *testing.T, trial *trial, l *ledger, times int) {
	t.Helper()
	var want []string
	for _, e := range trial.all() {
		for range times {
			want = append(want, fmt.Sprint(e))
		}
	}
	slices.Sort(want)
	slices.Sort(l.visible)
	if diff := cmp.Diff(want, l.visible); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// overtakenThen interrupts a job whose operator, which slow puts behind the source, runs three
// times, has it go on with another parallelism, and checks that all is seen once.
func overtakenThen(t *testing.T, to int, slow func(source *lowwater.DataStream[event], parallelism int) *lowwater.DataStream[string]) {
	trial := busyTrial(1)
	l := newLedger(trial)
	build := func(parallelism int, resume lowwater.CheckpointOption) *lowwater.Job {
		env := environment("mem://"+t.Name(), lowwater.AlignedCheckpointTimeout(time.Millisecond), resume)
		source := lowwater.FromSource(env, &tickerSource{trial}, strategy(), "a").UID("a").Parallelism(2)
		slow(source, parallelism).UID("slow").Parallelism(parallelism).SinkTo(l).UID("ledger").Parallelism(parallelism)
		j, err := env.Start(t.Context(), "case")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	interruptOvertaken(t, build(3, lowwater.StartFresh()))
	if err := build(to, lowwater.ResumeLatest()).Wait(); err != nil {
		t.Fatal(err)
	}
	sees(t, trial, l, 1)
}

// What barriers have overtaken finds its way when the operators are chained otherwise.
func TestOvertakenOnEdgesThatAreGone(t *testing.T) {
	for _, to := range []int{3, 2, 1} {
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				overtakenThen(t, to, func(source *lowwater.DataStream[event], _ int) *lowwater.DataStream[string] {
					return source.Map(func(e event) string { time.Sleep(10 * time.Millisecond); return fmt.Sprint(e) })
				})
			})
		})
	}
}

// Records that were on their way to subtasks that a partitioner has chosen arrive there if the
// parallelism is the same, and anywhere, once, if it is not.
func TestOvertakenBehindAPartitioner(t *testing.T) {
	for _, to := range []int{4, 3, 2} {
		t.Run(fmt.Sprint(to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var astray atomic.Int64
				overtakenThen(t, to, func(source *lowwater.DataStream[event], parallelism int) *lowwater.DataStream[string] {
					return source.PartitionBy(func(e event, subtasks int) int { return e.Key % subtasks }).
						Process(func(ctx *lowwater.ProcessContext, e event, out *lowwater.Collector[string]) error {
							if ctx.Subtask() != e.Key%parallelism {
								astray.Add(1)
							}
							time.Sleep(10 * time.Millisecond)
							out.Emit(fmt.Sprint(e))
							return nil
						})
				})
				if n := astray.Load(); n > 0 && to == 3 {
					t.Errorf("%d records at a subtask that was not chosen", n)
				}
			})
		})
	}
}

// Two edges between the same operators are told apart.
func TestOvertakenOnParallelEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := busyTrial(2)
		l := newLedger(trial)
		build := func(parallelism int, resume lowwater.CheckpointOption) *lowwater.Job {
			env := environment("mem://"+t.Name(), lowwater.AlignedCheckpointTimeout(time.Millisecond), resume)
			a := lowwater.FromSource(env, &tickerSource{trial}, strategy(), "a").UID("a").Parallelism(1)
			a.Union(a).
				Map(func(e event) string { time.Sleep(10 * time.Millisecond); return fmt.Sprint(e) }).UID("slow").Parallelism(parallelism).
				SinkTo(l).UID("ledger").Parallelism(parallelism)
			j, err := env.Start(t.Context(), "case")
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		interruptOvertaken(t, build(4, lowwater.StartFresh()))
		if err := build(3, lowwater.ResumeLatest()).Wait(); err != nil {
			t.Fatal(err)
		}
		sees(t, trial, l, 2)
	})
}

// A task that waits for the one behind it hears of barriers all the same.
func TestBarriersWakeTasksUnderBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trial := busyTrial(3)
		env := environment("mem://"+t.Name(), lowwater.AlignedCheckpointTimeout(time.Millisecond), lowwater.TolerableCheckpointFailures(100))
		lowwater.FromSource(env, &tickerSource{trial}, strategy(), "a").UID("a").Parallelism(1).
			Filter(func(event) bool { return true }).UID("between").Parallelism(3).
			Map(func(e event) string { time.Sleep(time.Second); return fmt.Sprint(e) }).UID("slow").Parallelism(1).
			SinkTo(newLedger(trial)).UID("ledger").Parallelism(1)
		j, err := env.Start(t.Context(), "case")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		records, _ := j.Checkpoints()
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Fatal(err)
		}
		// Late are only those that were in the middle of sending a batch.
		late, all := 0, 0
		for _, c := range records.History {
			for _, s := range c.Vertices[1].Subtasks {
				if s.Ack.IsZero() {
					continue
				}
				if all++; s.StartDelay > 10*time.Millisecond {
					late++
				}
			}
		}
		if all < 10 || late > all/4 {
			t.Errorf("%d of %d tasks began late", late, all)
		}
	})
}
