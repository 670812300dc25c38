package progress

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// DefaultAlignmentSamples is Flink's pipeline.watermark-alignment.buffer-size.
const DefaultAlignmentSamples = 3

// SourceConfig is what a source subtask's event time needs beside the strategy.
type SourceConfig struct {
	Rules Rules
	// Batch switches watermarks and idleness off, but for the final
	// MaxTimestamp (spec watermarks 5.5).
	Batch bool
	// Samples is the number of alignment samples that limits are compared
	// with; 0 means the latest watermark.
	Samples int
	// Pauser is the reader if it can pause splits, else nil. Alignment needs
	// it unless AllowUnalignedSplits.
	Pauser connector.SplitPauser
	// AllowUnalignedSplits lets alignment work on whole readers only where
	// splits cannot be paused.
	AllowUnalignedSplits bool
	// Report sends the subtask's watermark to the alignment coordinator.
	// Needed if the strategy aligns.
	Report func(watermark int64)
	// SplitState, if not nil, is told about every change of a split's state,
	// the last being status.SplitFinished.
	SplitState func(splitID string, state status.SplitState)
}

// Source is the event time of one source subtask (spec watermarks 5, and the
// subtask's side of 6): the generators of its splits and of its main output,
// their idleness, how they combine, and when alignment stops reading.
//
// For each record the caller emits it and then tells the split or main output
// about it. Watermarks come out of these and of the other calls; the Output must
// send what was emitted before, so that records stay in front of them.
//
// Calls without a time happen at the time of the last call that had one; call
// Tick before each poll. Times are milliseconds and must not fall.
type Source[T any] struct {
	strategy eventtime.WatermarkStrategy[T]
	cfg      SourceConfig
	aligned  bool

	output      *SubtaskOutput
	mainBranch  branch
	splitBranch branch
	splits      []*Split[T]
	byID        map[string]*Split[T]
	mux         *Multiplexer
	main        *Main[T]

	now int64
	// clock stands still under back pressure. The clocks of the main output and
	// the splits run on its time, so that back pressure costs the same for
	// any number of splits.
	clock      PausableClock
	hard, soft bool
	downstream bool

	// limit is the largest watermark that alignment allows.
	limit    int64
	sampler  Sampler
	blocked  bool
	finished bool
	settled  bool
	toPause  []*Split[T]
	toResume []*Split[T]
	ids      []string
}

var errNilGenerator = errors.New("the function given to eventtime.ForGenerator returned nil instead of a generator")

// NewSource returns the event time of a subtask without splits.
func NewSource[T any](strategy eventtime.WatermarkStrategy[T], cfg SourceConfig, now int64, out Output) (*Source[T], error) {
	if err := strategy.Validate(); err != nil {
		return nil, err
	}
	alignment, aligned := strategy.Alignment()
	switch {
	case !aligned:
		cfg.Samples = 0
	case cfg.Report == nil:
		return nil, fmt.Errorf("alignment group %q: no way to report watermarks", alignment.Group)
	case cfg.Samples < 0:
		return nil, fmt.Errorf("alignment samples %d: must be 0 or more", cfg.Samples)
	}
	if strategy.NewGenerator() == nil {
		return nil, errNilGenerator
	}
	if cfg.Batch {
		strategy = eventtime.NoWatermarks[T]()
	}
	s := &Source[T]{
		strategy: strategy,
		cfg:      cfg,
		aligned:  aligned,
		output:   NewSubtaskOutput(out),
		byID:     map[string]*Split[T]{},
		now:      now,
		limit:    maxTime,
		sampler:  NewSampler(cfg.Samples),
	}
	s.mainBranch = branch{out: s.output, other: &s.splitBranch, idle: true}
	s.splitBranch = branch{out: s.output, other: &s.mainBranch, idle: true}
	s.mux = NewMultiplexer(&s.splitBranch)
	s.main = &Main[T]{lane[T]{source: s, generator: NewGenerator(strategy), immediate: &s.mainBranch, periodic: &s.mainBranch}}
	return s, nil
}

// Tick tells the time.
func (s *Source[T]) Tick(now int64) { s.now = now }

// Main returns the output of records that belong to no split.
func (s *Source[T]) Main() *Main[T] { return s.main }

// AddSplit registers a split, which holds the watermark back from now on. It is
// an error if a split of that id is registered.
func (s *Source[T]) AddSplit(id string, now int64) (*Split[T], error) {
	s.now = now
	if s.byID[id] != nil {
		return nil, fmt.Errorf("split %q is assigned to this subtask already", id)
	}
	sp := &Split[T]{id: id, sampler: NewSampler(s.cfg.Samples)}
	sp.output = s.mux.Add(sp.changed)
	sp.lane = lane[T]{source: s, generator: NewGenerator(s.strategy), immediate: sp.output, periodic: sp.output.Deferred()}
	sp.wake = sp.wakeUp
	s.splits = append(s.splits, sp)
	s.byID[id] = sp
	return sp, nil
}

// ReleaseSplit removes a split that was read to its end. Its watermark no longer
// counts from the next periodic call on.
func (s *Source[T]) ReleaseSplit(sp *Split[T]) {
	if !s.mux.Remove(sp.output) {
		return
	}
	delete(s.byID, sp.id)
	i := slices.Index(s.splits, sp)
	s.splits = slices.Delete(s.splits, i, i+1)
	sp.setState(status.SplitFinished)
}

// Split returns the registered split of that id, nil if there is none.
func (s *Source[T]) Split(id string) *Split[T] { return s.byID[id] }

// Splits returns the registered splits in the order of their assignment. The
// slice is valid until the next AddSplit or ReleaseSplit.
func (s *Source[T]) Splits() []*Split[T] { return s.splits }

// Periodic is the auto-watermark timer's call (spec watermarks 5.4).
func (s *Source[T]) Periodic(now int64) error {
	s.now = now
	if s.finished {
		return s.output.Err()
	}
	shared := s.clock.Time(now)
	// What is known outside may change at any time.
	s.settled = s.strategy.BrokerIdleness() == 0
	for _, sp := range s.splits {
		settled := sp.generator.OnPeriodic(sp.clock.Time(shared), sp.periodic)
		s.settled = s.settled && settled
	}
	s.mux.Combine()
	if s.strategy.BrokerIdleness() > 0 {
		// Without splits, or if all are idle, the outside knows of nothing to read.
		_, idle := s.mux.Current()
		s.main.generator.SetQuiet(len(s.splits) == 0 || idle)
	}
	settled := s.main.generator.OnPeriodic(s.main.clock.Time(shared), s.main.periodic)
	s.settled = s.settled && settled
	return s.settle()
}

// Settled reports, after Periodic, that further calls of it would change nothing until
// a split or the main output is told something, or a split is added or released.
func (s *Source[T]) Settled() bool { return s.settled }

// BackPressure tells whether the subtask is blocked in emitting (hard) and
// whether it does not poll because an output is full (soft). Meanwhile no idle
// timer runs.
func (s *Source[T]) BackPressure(now int64, hard, soft bool) {
	s.now = now
	setPaused(&s.clock, now, &s.hard, hard)
	setPaused(&s.clock, now, &s.soft, soft)
}

// Downstream tells whether the subtask is working on records that it has emitted to
// operators chained to it. Meanwhile it cannot read, so no idle timer runs. In Flink 2.3
// it does (FLINK-40234).
func (s *Source[T]) Downstream(now int64, working bool) {
	s.now = now
	setPaused(&s.clock, now, &s.downstream, working)
}

// setPaused pauses or resumes c if a reason to pause begins or ends.
func setPaused(c *PausableClock, now int64, reason *bool, on bool) {
	if *reason == on {
		return
	}
	*reason = on
	if on {
		c.Pause(now)
	} else {
		c.Resume(now)
	}
}

// MaxAllowed takes the alignment coordinator's limit: what is ahead of it is
// stopped, what is not may go on.
func (s *Source[T]) MaxAllowed(limit, now int64) error {
	s.now = now
	if s.finished {
		return s.output.Err()
	}
	s.limit = limit
	s.checkReader()
	s.checkSplits()
	return s.output.Err()
}

// Sample is the alignment timer's call, at every update interval of the
// strategy: it samples, checks, and reports (spec watermarks 6.1).
func (s *Source[T]) Sample(now int64) error {
	s.now = now
	if !s.aligned || s.finished {
		return s.output.Err()
	}
	for _, sp := range s.splits {
		sp.sampler.Sample()
	}
	s.sampler.Sample()
	s.checkReader()
	s.checkSplits()
	if s.sampler.Latest() == minTime {
		return s.output.Err()
	}
	if _, idle := s.output.Current(); idle {
		s.cfg.Report(maxTime)
	} else {
		s.cfg.Report(s.sampler.Latest())
	}
	return s.output.Err()
}

// Blocked reports whether alignment forbids to poll the reader. Everything else
// goes on. Look before each poll and after each batch.
func (s *Source[T]) Blocked() bool { return s.blocked }

// Limit returns the last announced limit, MaxTimestamp at first.
func (s *Source[T]) Limit() int64 { return s.limit }

// Current returns the subtask's last watermark, MinTimestamp at first, and its
// announced status.
func (s *Source[T]) Current() (watermark int64, idle bool) { return s.output.Current() }

// End says that the reader has ended. With emitMax, at the end of input and when
// the job stops with drain, event time ends too; without, when it stops with a
// savepoint, only alignment learns of it. Records must not follow; timers and
// announcements that come after it have no effect.
//
// A subtask that is idle says that it is active before it sends MaxTimestamp.
// Flink 2.3 does not, and its gate then drops it (FLINK-40499).
func (s *Source[T]) End(emitMax bool) error {
	s.finished = true
	if emitMax {
		if s.cfg.Rules == Flink23 {
			s.output.fail(s.output.out.Watermark(maxTime))
		} else {
			s.output.EmitWatermark(maxTime)
		}
	}
	if s.aligned {
		s.cfg.Report(maxTime)
	}
	return s.output.Err()
}

// settle looks at what a call did to the subtask's watermark.
func (s *Source[T]) settle() error {
	if s.aligned {
		watermark, _ := s.output.Current()
		s.sampler.SetLatest(watermark)
		s.checkReader()
	}
	return s.output.Err()
}

// checkReader blocks or unblocks the whole reader; while it is blocked the main
// output's idle clock stands still.
func (s *Source[T]) checkReader() {
	setPaused(&s.main.clock, s.clock.Time(s.now), &s.blocked, s.limit < s.sampler.Oldest())
}

// checkSplits pauses and resumes splits.
func (s *Source[T]) checkSplits() {
	s.toPause, s.toResume = s.toPause[:0], s.toResume[:0]
	for _, sp := range s.splits {
		ahead := s.limit < sp.sampler.Oldest()
		switch {
		case ahead && !sp.paused && !sp.output.Idle():
			s.toPause = append(s.toPause, sp)
		case !ahead && sp.paused && s.mayResume(sp):
			s.toResume = append(s.toResume, sp)
		}
	}
	s.pause(s.toPause)
	s.resume(s.toResume)
}

// mayResume: a split that went idle while it was paused must be read to become
// active again. Flink 2.3 leaves it paused for ever (FLINK-40093).
func (s *Source[T]) mayResume(sp *Split[T]) bool {
	return s.cfg.Rules != Flink23 || !sp.output.Idle()
}

func (s *Source[T]) pause(splits []*Split[T]) {
	if len(splits) == 0 {
		return
	}
	if s.cfg.Pauser == nil {
		if !s.cfg.AllowUnalignedSplits {
			alignment, _ := s.strategy.Alignment()
			s.output.fail(fmt.Errorf("alignment group %q must pause split %q, but the reader cannot pause splits: "+
				"implement connector.SplitPauser or allow unaligned splits", alignment.Group, splits[0].id))
		}
		return
	}
	s.cfg.Pauser.PauseSplits(s.idsOf(splits))
	for _, sp := range splits {
		setPaused(&sp.clock, s.clock.Time(s.now), &sp.paused, true)
		sp.updateState()
	}
}

func (s *Source[T]) resume(splits []*Split[T]) {
	if len(splits) == 0 {
		return
	}
	s.cfg.Pauser.ResumeSplits(s.idsOf(splits))
	for _, sp := range splits {
		setPaused(&sp.clock, s.clock.Time(s.now), &sp.paused, false)
		sp.updateState()
	}
}

func (s *Source[T]) idsOf(splits []*Split[T]) []string {
	s.ids = s.ids[:0]
	for _, sp := range splits {
		s.ids = append(s.ids, sp.id)
	}
	return s.ids
}
