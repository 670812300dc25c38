package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/progress"
)

// sourceUnit is the subject source: a source subtask driven call by call.
type sourceUnit struct {
	out    *log
	source *progress.Source[event]
	reader *reader
	now    int64
	// hard and soft back pressure.
	hard, soft bool
}

// reader logs which splits it must pause and resume.
type reader struct {
	out    *log
	paused map[string]bool
}

func (r *reader) PauseSplits(ids []string) {
	for _, id := range ids {
		r.paused[id] = true
	}
	r.out.add(Event{Pause: slices.Sorted(slices.Values(ids))})
}

func (r *reader) ResumeSplits(ids []string) {
	for _, id := range ids {
		delete(r.paused, id)
	}
	r.out.add(Event{Resume: slices.Sorted(slices.Values(ids))})
}

type sourceSetup struct {
	generatorSetup
	Progressive *bool `json:"progressive"`
	Gate        bool  `json:"gate"`
	Alignment   *struct {
		BufferSize int `json:"bufferSize"`
	} `json:"alignment"`
	PauseUnsupported bool   `json:"pauseUnsupported"`
	AllowUnaligned   bool   `json:"allowUnaligned"`
	StartMs          *int64 `json:"startMs"`
}

func newSource(setup json.RawMessage, rules progress.Rules, out *log) (unit, error) {
	s, err := decode[sourceSetup](setup)
	if err != nil {
		return nil, err
	}
	strategy, err := s.strategy()
	if err != nil {
		return nil, err
	}
	u := &sourceUnit{out: out, reader: &reader{out, map[string]bool{}}, now: 1000}
	if s.StartMs != nil {
		u.now = *s.StartMs
	}
	cfg := progress.SourceConfig{
		Rules:                rules,
		Batch:                s.Progressive != nil && !*s.Progressive,
		AllowUnalignedSplits: s.AllowUnaligned,
		Pauser:               pauser(u.reader, s.PauseUnsupported),
		Report:               func(t int64) { out.add(Event{Report: &t}) },
	}
	if s.Alignment != nil {
		// Limits come as events, so drift and interval do not matter.
		strategy = strategy.WithWatermarkAlignment("group", 0, time.Second)
		cfg.Samples = s.Alignment.BufferSize
	}
	var behind progress.Output = out
	if s.Gate {
		behind = progress.NewGate(out)
	}
	u.source, err = progress.NewSource(strategy, cfg, u.now, behind)
	return u, err
}

// pauser returns nil for a reader that cannot pause splits.
func pauser(r *reader, unsupported bool) connector.SplitPauser {
	if unsupported {
		return nil
	}
	return r
}

type sourceEvent struct {
	Op        string  `json:"op"`
	Split     *string `json:"split"`
	Timestamp *int64  `json:"timestamp"`
	Marker    bool    `json:"marker"`
	Watermark *int64  `json:"watermark"`
	Ms        int64   `json:"ms"`
	On        bool    `json:"on"`
	Drain     bool    `json:"drain"`
}

func (u *sourceUnit) step(in json.RawMessage) error {
	e, err := decode[sourceEvent](in)
	if err != nil {
		return err
	}
	switch e.Op {
	case "advance":
		u.now += e.Ms
		return nil
	case "periodic":
		return u.source.Periodic(u.now)
	case "backpressure":
		u.hard = e.On
		u.source.BackPressure(u.now, u.hard, u.soft)
		return nil
	case "softBackpressure":
		u.soft = e.On
		u.source.BackPressure(u.now, u.hard, u.soft)
		return nil
	case "maxAllowed":
		limit, err := need(e.Watermark, "watermark")
		if err != nil {
			return err
		}
		return u.source.MaxAllowed(limit, u.now)
	case "sample":
		return u.source.Sample(u.now)
	case "addSplit":
		id, err := need(e.Split, "split")
		if err != nil {
			return err
		}
		_, err = u.source.AddSplit(id, u.now)
		return err
	case "stop":
		return u.source.End(e.Drain)
	}
	return u.poll(e)
}

// poll is an event that only happens if the reader may be polled.
func (u *sourceUnit) poll(e sourceEvent) error {
	if u.source.Blocked() {
		u.out.add(Event{Blocked: true})
		return nil
	}
	u.source.Tick(u.now)
	switch e.Op {
	case "endOfInput":
		return u.source.End(true)
	case "releaseSplit":
		id, err := need(e.Split, "split")
		if err != nil {
			return err
		}
		split := u.source.Split(id)
		if split == nil {
			return fmt.Errorf("no split %q", id)
		}
		u.source.ReleaseSplit(split)
		return nil
	}
	output, err := u.output(e.Split)
	if err != nil {
		return err
	}
	switch e.Op {
	case "record":
		t, err := need(e.Timestamp, "timestamp")
		if err != nil {
			return err
		}
		u.out.record(t)
		return output.OnEvent(event{t, e.Marker}, t)
	case "idle":
		return output.MarkIdle()
	case "active":
		return output.MarkActive()
	case "emitWatermark":
		t, err := need(e.Watermark, "watermark")
		if err != nil {
			return err
		}
		return output.EmitWatermark(t)
	}
	return malformed("no such op", e.Op)
}

// readerOutput is what a reader sees of a split or of the main output.
type readerOutput interface {
	OnEvent(value event, timestamp int64) error
	EmitWatermark(t int64) error
	MarkIdle() error
	MarkActive() error
}

func (u *sourceUnit) output(id *string) (readerOutput, error) {
	if id == nil {
		return u.source.Main(), nil
	}
	if split := u.source.Split(*id); split != nil {
		return split, nil
	}
	return u.source.AddSplit(*id, u.now)
}

type sourceCheck struct {
	Waiting          *bool             `json:"waiting,omitempty"`
	Paused           *[]string         `json:"paused,omitempty"`
	Splits           map[string]string `json:"splits,omitempty"`
	CurrentWatermark map[string]int64  `json:"currentWatermark,omitempty"`
}

func (u *sourceUnit) check(asked json.RawMessage) (json.RawMessage, error) {
	c, err := decode[sourceCheck](asked)
	if err != nil {
		return nil, err
	}
	if c.Waiting != nil {
		blocked := u.source.Blocked()
		c.Waiting = &blocked
	}
	if c.Paused != nil {
		ids := append([]string{}, slices.Sorted(maps.Keys(u.reader.paused))...)
		c.Paused = &ids
	}
	for id := range c.Splits {
		if split := u.source.Split(id); split != nil {
			c.Splits[id] = split.State().String()
		}
	}
	for id := range c.CurrentWatermark {
		if split := u.source.Split(id); split != nil {
			c.CurrentWatermark[id] = split.Watermark()
		}
	}
	return encode(c)
}
