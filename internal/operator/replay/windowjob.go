package replay

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/keyed"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/windowed"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

// maxParallelism is the number of key groups.
const maxParallelism = 128

// windowJob is a window operator in one or several subtasks.
type windowJob struct {
	description *Operator
	path        Path
	log         *triggerLog
	clock       *clock
	subtasks    []*windowSubtask
	hash        func(string) uint64
	pool        *exchange.KeyedPool[string, Element]
	// watermark is the last one, MinInt64 if there was none.
	watermark int64
	// dropped is the number of late records that were dropped before the last restart.
	dropped int64
}

type windowSubtask struct {
	recorder
	op      operator.Operator
	metrics *metric.Operator
}

func newWindowJob(description *Operator, path Path) (*windowJob, error) {
	hash, err := keyed.HasherFor[string]()
	if err != nil {
		return nil, err
	}
	j := &windowJob{
		description: description, path: path, log: &triggerLog{}, clock: &clock{}, watermark: math.MinInt64,
		hash: hash, pool: exchange.NewKeyedPool[string, Element](),
	}
	return j, j.open([]snapshot.Reader{nil})
}

// open opens a subtask for each reader, nil for one without state.
func (j *windowJob) open(from []snapshot.Reader) error {
	j.subtasks = nil
	for i, r := range from {
		op, err := j.description.build(j.path, j.log)
		if err != nil {
			return err
		}
		s := &windowSubtask{op: op, metrics: metric.NewOperator("windows", "")}
		rt := operator.Runtime{
			Name: "windows", Subtask: i, Parallelism: len(from), MaxParallelism: maxParallelism, Context: context.Background(),
			Logger: slog.New(slog.DiscardHandler), Metrics: s.metrics, Timers: j.clock, Splits: &operator.SplitRegistry{},
			Checkpointing: true, Restored: r,
		}
		if j.path.spills() {
			rt.StateMemory = memory
		}
		if err := op.Open(&rt, s); err != nil {
			return err
		}
		j.subtasks = append(j.subtasks, s)
	}
	return nil
}

func (j *windowJob) close() error {
	for _, s := range j.subtasks {
		if err := s.op.Close(); err != nil {
			return err
		}
	}
	return nil
}

// step does one thing. An error says that there is no such thing; a failure of the
// operator is an answer.
func (j *windowJob) step(s Step) (Step, error) {
	answer := s.question()
	failure, err := j.do(s)
	if err != nil {
		return answer, err
	}
	if failure != nil {
		answer.Error = failure.Error()
	}
	calls := j.log.take()
	for _, subtask := range j.subtasks {
		out := subtask.take()
		if s.Do == "watermark" && failure == nil && !slices.Equal(out.watermarks, []int64{s.Timestamp.Millis()}) {
			answer.Broken = fmt.Sprintf("forwarded the watermarks %v", out.watermarks)
		}
		if s.Do != "element" && j.description.Trigger == nil && !firedInOrder(out.emitted) {
			answer.Broken = "windows fired out of order"
		}
		answer.Emit = append(answer.Emit, out.emitted...)
	}
	answer.Emit = append(answer.Emit, calls...)
	return answer, nil
}

func (j *windowJob) do(s Step) (failure, err error) {
	switch s.Do {
	case "element":
		value, err := need(s.Value, "value")
		if err != nil {
			return nil, err
		}
		return j.element(Element{s.Key, value}, s.Timestamp.Millis()), nil
	case "watermark":
		return j.advance(s.Timestamp.Millis()), nil
	case "processing_time":
		t, err := need(s.Time, "t")
		if err != nil {
			return nil, err
		}
		return j.clock.set(t), nil
	case "checkpoint_restore":
		return nil, j.restoreAsFlink(s)
	default:
		return nil, malformed("no such step", s.Do)
	}
}

func (j *windowJob) element(e Element, timestamp int64) error {
	b := j.pool.Get()
	b.Append(e, timestamp, 0)
	hash := j.hash(e.Key)
	b.Keys, b.Hashes = append(b.Keys, e.Key), append(b.Hashes, hash)
	group := keyed.KeyGroup(hash, maxParallelism)
	return j.subtasks[keyed.SubtaskOf(group, len(j.subtasks), maxParallelism)].op.Process(0, b)
}

func (j *windowJob) advance(t int64) error {
	j.watermark = t
	for _, s := range j.subtasks {
		if err := s.op.Watermark(t); err != nil {
			return err
		}
	}
	return nil
}

func (j *windowJob) end() *End {
	end := &End{LateDropped: j.dropped}
	event, clock := 0, 0
	for _, s := range j.subtasks {
		end.LateDropped += s.metrics.NumLateRecordsDropped.Value()
		if t, ok := s.op.(windowed.WithTimers); ok {
			e, c := t.TimersLeft()
			event, clock = event+e, clock+c
			end.EventTimers, end.ProcessingTimers = &event, &clock
		}
	}
	return end
}

// restoreAsFlink goes on with a new operator from a snapshot, as Flink does: without
// watermark and clock.
func (j *windowJob) restoreAsFlink(s Step) error {
	if !j.path.isGeneral() {
		return malformed("checkpoint_restore needs the general operator")
	}
	readers, err := j.checkpoint(1, func() (bool, error) { return false, nil })
	if err != nil {
		return err
	}
	j.dropped = j.end().LateDropped
	var now int64
	if s.ProcessingTime != nil {
		now = *s.ProcessingTime
	}
	return j.restart(now, math.MinInt64, []snapshot.Reader{withoutTime{readers[0]}})
}

// withoutTime is a snapshot without the part that has the time of windows.
type withoutTime struct{ snapshot.Reader }

// Part implements snapshot.Reader.
func (r withoutTime) Part(name string) (snapshot.PartReader, bool) {
	if name == windowed.EndedPart {
		return nil, false
	}
	return r.Reader.Part(name)
}

// failOver lets the operators take a snapshot, goes on with them while it is written, and
// then goes back to where it was taken, with new operators. It returns the answers to the
// steps that will now be taken again.
func (j *windowJob) failOver(next []Step, random *rand.Rand) (ahead []Step, err error) {
	now, watermark, dropped := j.clock.now, j.watermark, j.end().LateDropped
	steps := random.IntN(4)
	readers, err := j.checkpoint(1+random.IntN(4), func() (bool, error) {
		if random.IntN(3) > 0 {
			return true, nil // the background is faster
		}
		failed := len(ahead) > 0 && ahead[len(ahead)-1].Error != ""
		if len(ahead) == min(steps, len(next)) || failed || next[len(ahead)].Do == "checkpoint_restore" {
			return false, nil
		}
		answered, err := j.step(next[len(ahead)])
		ahead = append(ahead, answered)
		return true, err
	})
	if err != nil {
		return nil, err
	}
	j.dropped = dropped
	if err := j.restart(now, watermark, readers); err != nil {
		return nil, err
	}
	for _, s := range j.subtasks {
		if out := s.take(); len(out.emitted) > 0 {
			return nil, fmt.Errorf("restoring has emitted %v", out.emitted)
		}
	}
	if calls := j.log.take(); len(calls) > 0 {
		return nil, fmt.Errorf("restoring has called the trigger: %v", calls)
	}
	return ahead, nil
}

// checkpoint takes a snapshot of all subtasks and returns it dealt out over another
// number of them. Between two blocks that are written meanwhile is called, until it
// reports that it has no more to do.
func (j *windowJob) checkpoint(parallelism int, meanwhile func() (more bool, err error)) (readers []snapshot.Reader, err error) {
	var taken []*snapshottest.Snapshot
	for _, s := range j.subtasks {
		stateful, ok := s.op.(operator.Stateful)
		if !ok {
			return nil, fmt.Errorf("%T has no snapshots", s.op)
		}
		t, err := snapshottest.Take(1, stateful.Snapshot)
		if err != nil {
			return nil, err
		}
		taken = append(taken, t)
	}
	for busy := true; busy; {
		if busy, err = meanwhile(); err != nil {
			return nil, err
		}
		for _, t := range taken {
			more, err := t.Step()
			if err != nil {
				return nil, err
			}
			busy = busy || more
		}
	}
	shares, err := snapshottest.Readers(taken, parallelism, maxParallelism)
	for _, s := range shares {
		readers = append(readers, s)
	}
	return readers, err
}

// restart replaces the operators and the clock by new ones.
func (j *windowJob) restart(now, watermark int64, from []snapshot.Reader) error {
	if err := j.close(); err != nil {
		return err
	}
	j.clock = &clock{now: now}
	j.watermark = math.MinInt64
	if err := j.open(from); err != nil {
		return err
	}
	for _, r := range from {
		if s, ok := r.(*snapshot.Share); ok && len(s.Unclaimed()) > 0 {
			return fmt.Errorf("parts %q were not restored", s.Unclaimed())
		}
	}
	if watermark == math.MinInt64 {
		return nil
	}
	return j.advance(watermark)
}
