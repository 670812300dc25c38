package gaps

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/status"
	"github.com/lowwater/lowwater/window"
)

// Choice is a bound and an idle timeout; an Idle of 0 is none.
type Choice struct {
	Bound, Idle time.Duration
}

func (c Choice) String() string {
	if c.Idle == 0 {
		return fmt.Sprintf("bound %s, no idleness", format(c.Bound))
	}
	return fmt.Sprintf("bound %s, idleness %s", format(c.Bound), format(c.Idle))
}

// Outcome is what a choice would have meant for the data.
type Outcome struct {
	Choice
	// Records were replayed.
	Records int64
	// Behind are the records at or behind the watermark when they came; Late are those of
	// them whose window had fired.
	Behind, Late int64
	// Wait is the time from the end of a window that has records to its result, by append
	// time.
	Wait Histogram
	// Held are the windows that the largest event time had passed by more than the bound
	// when the data ended, and that had no result. HeldBy are the partitions with the
	// smallest watermark then, if there are such windows.
	Held   int
	HeldBy []int32
	// Untracked are windows that were not followed because too many were open at once.
	Untracked int64
	// Partitions are in the order of Data's.
	Partitions []PartitionOutcome
}

// PartitionOutcome is what a choice would have meant for one partition.
type PartitionOutcome struct {
	Partition int32
	Behind    int64
	Late      int64
	// Idled is how often the partition went idle, Returned how often it came back with a
	// record, ReturnedLate how often that record was late.
	Idled, Returned, ReturnedLate int64
	// LateAfterIdle are the late records from a return until the partition has caught up
	// with the watermark.
	LateAfterIdle int64
}

// LateShare is the share of late records, 0 to 1.
func (o *Outcome) LateShare() float64 { return float64(o.Late) / float64(max(o.Records, 1)) }

// total adds up the partitions.
func (o *Outcome) total() PartitionOutcome {
	var t PartitionOutcome
	for _, p := range o.Partitions {
		t.Idled += p.Idled
		t.Returned += p.Returned
		t.ReturnedLate += p.ReturnedLate
		t.LateAfterIdle += p.LateAfterIdle
	}
	return t
}

// ReplayOptions says how the job would be that reads the topic.
type ReplayOptions struct {
	// Window is the size of its tumbling windows.
	Window time.Duration
	// Interval is its auto-watermark interval.
	Interval time.Duration
	// Progress, if not nil, is told the share of the work that is done, by several
	// goroutines.
	Progress func(done float64)
}

// openLimit is how many windows a replay follows at once.
const openLimit = 1 << 17

// Replay runs the data through a source subtask that has all partitions, once for each
// choice. Records are read at their append times, without delay or back pressure. It
// ends early if ctx does.
func Replay(ctx context.Context, d *Data, choices []Choice, o ReplayOptions) ([]Outcome, error) {
	outcomes := make([]Outcome, len(choices))
	errs := make([]error, len(choices))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for i, c := range choices {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			outcomes[i], errs[i] = replay(ctx, d, c, o)
			mu.Lock()
			defer mu.Unlock()
			if done++; o.Progress != nil {
				o.Progress(float64(done) / float64(len(choices)))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// replay replays the data for one choice.
func replay(ctx context.Context, d *Data, c Choice, o ReplayOptions) (Outcome, error) {
	r, err := newReplayer(d, c, o)
	if err != nil {
		return Outcome{}, err
	}
	horizon := d.horizon()
	for m := newMerge(d.Partitions); ; m.advance() {
		record := m.head()
		if record == nil || record.appendTime > horizon {
			break
		}
		if r.outcome.Records%4096 == 0 && ctx.Err() != nil {
			return Outcome{}, ctx.Err()
		}
		if err := r.record(record); err != nil {
			return Outcome{}, err
		}
	}
	if err := r.tick(horizon + 1); err != nil {
		return Outcome{}, err
	}
	r.end(d)
	return r.outcome, nil
}

// replayer is one job in virtual time. It is the progress.Output of its source: what the
// windows see.
type replayer struct {
	outcome  Outcome
	source   *progress.Source[struct{}]
	splits   []split
	interval int64
	window   int64
	idle     int64
	started  int64
	// probe is the time of the next periodic call, fresh says that records came since the
	// last.
	probe, now int64
	fresh      bool

	watermark int64
	// open are the starts of the windows that have records and have not fired, next the
	// end of the first of them to fire.
	open     map[int64]struct{}
	next     int64
	maxEvent int64
}

// split is what a replayer remembers of a partition.
type split struct {
	progress *progress.Split[struct{}]
	last     int64
	idle     bool
	// returning says that it has come back from idleness and is not known to have caught
	// up.
	returning bool
}

func newReplayer(d *Data, c Choice, o ReplayOptions) (*replayer, error) {
	strategy := eventtime.ForBoundedOutOfOrderness[struct{}](c.Bound)
	if c.Idle > 0 {
		strategy = strategy.WithIdleness(c.Idle)
	}
	start := d.start()
	r := &replayer{
		outcome: Outcome{Choice: c}, interval: o.Interval.Milliseconds(), window: o.Window.Milliseconds(), idle: c.Idle.Milliseconds(),
		started: start, now: start, probe: start + o.Interval.Milliseconds(),
		watermark: eventtime.MinTimestamp, maxEvent: eventtime.MinTimestamp,
		open: map[int64]struct{}{}, next: math.MaxInt64,
	}
	index := map[string]int{}
	var err error
	r.source, err = progress.NewSource(strategy, progress.SourceConfig{
		SplitState: func(id string, state status.SplitState) {
			if i := index[id]; state == status.SplitIdle {
				r.splits[i].idle = true
				r.outcome.Partitions[i].Idled++
			}
		},
	}, start, r)
	if err != nil {
		return nil, err
	}
	for i, p := range d.Partitions {
		id := strconv.Itoa(int(p.Number))
		index[id] = i
		sp, err := r.source.AddSplit(id, start)
		if err != nil {
			return nil, err
		}
		r.splits = append(r.splits, split{progress: sp, last: start})
		r.outcome.Partitions = append(r.outcome.Partitions, PartitionOutcome{Partition: p.Number})
	}
	return r, nil
}

// record reads a record. One that is read at the time of a periodic call is read before
// it.
func (r *replayer) record(c *cursor) error {
	if err := r.tick(c.appendTime); err != nil {
		return err
	}
	r.now = c.appendTime
	r.source.Tick(r.now)
	r.outcome.Records++
	r.maxEvent = max(r.maxEvent, c.eventTime)
	sp, out := &r.splits[c.partition], &r.outcome.Partitions[c.partition]
	late := r.take(c.eventTime)
	if c.eventTime <= r.watermark {
		r.outcome.Behind++
		out.Behind++
	} else {
		sp.returning = false
	}
	if sp.idle {
		sp.idle = false
		sp.returning = c.eventTime <= r.watermark
		out.Returned++
		if late {
			out.ReturnedLate++
		}
	}
	if late {
		r.outcome.Late++
		out.Late++
		if sp.returning {
			out.LateAfterIdle++
		}
	}
	sp.last, r.fresh = r.now, true
	return sp.progress.OnEvent(struct{}{}, c.eventTime)
}

// take puts a record into its window and reports whether that has fired.
func (r *replayer) take(event int64) (late bool) {
	start := window.Start(event, 0, r.window)
	end := start + r.window
	if end-1 <= r.watermark {
		return true
	}
	if _, known := r.open[start]; !known {
		if len(r.open) >= openLimit {
			r.outcome.Untracked++
			return false
		}
		r.open[start] = struct{}{}
		r.next = min(r.next, end)
	}
	return false
}

// tick makes the periodic calls that are due before now. Calls that cannot change
// anything are left out: without records since the last, the next that matters is when
// an idle timer can run out.
func (r *replayer) tick(now int64) error {
	for r.probe < now {
		r.now = r.probe
		quiet := !r.fresh
		r.fresh = false
		if err := r.source.Periodic(r.probe); err != nil {
			return err
		}
		next := r.probe + r.interval
		switch {
		case r.source.Settled():
			next = max(next, r.gridAt(now))
		case quiet:
			next = max(next, r.gridAt(min(now, r.earliestIdle())))
		}
		r.probe = next
	}
	return nil
}

// earliestIdle is a time before which no idle timer runs out.
func (r *replayer) earliestIdle() int64 {
	earliest := int64(math.MaxInt64)
	if main := r.started + r.idle; r.probe <= main {
		earliest = main // the main output has a timer too, and no records
	}
	for i := range r.splits {
		if sp := &r.splits[i]; !sp.idle {
			earliest = min(earliest, sp.last+r.idle)
		}
	}
	return earliest
}

// gridAt is the time of the first periodic call at or after t.
func (r *replayer) gridAt(t int64) int64 {
	return r.started + (t-r.started+r.interval-1)/r.interval*r.interval
}

// Watermark fires the windows that it passes.
func (r *replayer) Watermark(t int64) error {
	r.watermark = t
	if t < r.next-1 {
		return nil
	}
	r.next = math.MaxInt64
	for start := range r.open {
		end := start + r.window
		if end-1 > t {
			r.next = min(r.next, end)
			continue
		}
		r.outcome.Wait.Add(r.now - end)
		delete(r.open, start)
	}
	return nil
}

// Status is of no concern to windows.
func (r *replayer) Status(bool) error { return nil }

// end finds what is left.
func (r *replayer) end(d *Data) {
	passed := r.maxEvent - r.outcome.Bound.Milliseconds() - 1
	for start := range r.open {
		if start+r.window-1 <= passed {
			r.outcome.Held++
		}
	}
	if r.outcome.Held == 0 {
		return
	}
	lowest := eventtime.MaxTimestamp
	for i := range r.splits {
		if sp := &r.splits[i]; !sp.idle {
			lowest = min(lowest, sp.progress.Watermark())
		}
	}
	for i, p := range d.Partitions {
		if sp := &r.splits[i]; !sp.idle && sp.progress.Watermark() == lowest {
			r.outcome.HeldBy = append(r.outcome.HeldBy, p.Number)
		}
	}
}
