package replay

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/progress"
)

// outputCall is a call on an eventtime.WatermarkOutput.
type outputCall struct {
	Op        string `json:"op"`
	Watermark *int64 `json:"watermark"`
}

func (c outputCall) apply(out eventtime.WatermarkOutput) error {
	switch c.Op {
	case "emit":
		t, err := need(c.Watermark, "watermark")
		if err != nil {
			return err
		}
		out.EmitWatermark(t)
	case "idle":
		out.MarkIdle()
	case "active":
		out.MarkActive()
	default:
		return malformed("no such op", c.Op)
	}
	return nil
}

// multiplexerUnit is the subject multiplexer.
type multiplexerUnit struct {
	noState
	out     *log
	mux     *progress.Multiplexer
	outputs map[string]*progress.SplitOutput
}

func newMultiplexer(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	_, err := decode[struct{}](setup)
	return &multiplexerUnit{out: out, mux: progress.NewMultiplexer(out), outputs: map[string]*progress.SplitOutput{}}, err
}

func (u *multiplexerUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		ID   string `json:"id"`
		Mode string `json:"mode"`
		outputCall
	}](in)
	if err != nil {
		return err
	}
	output := u.outputs[e.ID]
	switch e.Op {
	case "register":
		if output != nil {
			return fmt.Errorf("output %s is registered already", e.ID)
		}
		u.outputs[e.ID] = u.mux.Add(nil)
		return nil
	case "unregister":
		known := output != nil && u.mux.Remove(output)
		delete(u.outputs, e.ID)
		u.out.add(Event{Returned: &known})
		return nil
	case "periodic":
		u.mux.Combine()
		return nil
	}
	if output == nil {
		return fmt.Errorf("no output %s", e.ID)
	}
	switch e.Mode {
	case "immediate":
		return e.apply(output)
	case "deferred":
		return e.apply(output.Deferred())
	}
	return malformed("no such mode", e.Mode)
}

// subtaskOutputUnit is the subject watermark_to_output.
type subtaskOutputUnit struct {
	noState
	output *progress.SubtaskOutput
}

func newSubtaskOutput(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	_, err := decode[struct{}](setup)
	return subtaskOutputUnit{output: progress.NewSubtaskOutput(out)}, err
}

func (u subtaskOutputUnit) step(in json.RawMessage) error {
	call, err := decode[outputCall](in)
	if err != nil {
		return err
	}
	return call.apply(u.output)
}

// samplerUnit is the subject alignment_sampler.
type samplerUnit struct {
	noState
	out     *log
	sampler progress.Sampler
}

func newSampler(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		Capacity int `json:"capacity"`
	}](setup)
	return &samplerUnit{out: out, sampler: progress.NewSampler(s.Capacity)}, err
}

func (u *samplerUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Latest *int64 `json:"latest"`
		Sample bool   `json:"sample"`
		Read   bool   `json:"read"`
	}](in)
	if err != nil {
		return err
	}
	switch {
	case e.Latest != nil:
		u.sampler.SetLatest(*e.Latest)
	case e.Sample:
		u.sampler.Sample()
	case e.Read:
		oldest, latest := u.sampler.Oldest(), u.sampler.Latest()
		u.out.add(Event{Oldest: &oldest, Latest: &latest})
	default:
		return malformed("no such event")
	}
	return nil
}

// coordinatorUnit is the subject alignment_coordinator.
type coordinatorUnit struct {
	noState
	out     *log
	sources map[string]*progress.AlignedSource
}

func newCoordinator(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		Sources []struct {
			Name       string `json:"name"`
			Group      string `json:"group"`
			MaxDriftMs int64  `json:"maxDriftMs"`
		} `json:"sources"`
	}](setup)
	if err != nil {
		return nil, err
	}
	u := &coordinatorUnit{out: out, sources: map[string]*progress.AlignedSource{}}
	coordinator := progress.NewCoordinator()
	for _, source := range s.Sources {
		if u.sources[source.Name], err = coordinator.Join(source.Name, source.Group, source.MaxDriftMs); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (u *coordinatorUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Source   string `json:"source"`
		Subtask  *int   `json:"subtask"`
		Report   *int64 `json:"report"`
		Announce bool   `json:"announce"`
	}](in)
	if err != nil {
		return err
	}
	source := u.sources[e.Source]
	switch {
	case source == nil:
		return malformed("no such source", e.Source)
	case e.Report != nil:
		subtask, err := need(e.Subtask, "subtask")
		if err != nil {
			return err
		}
		source.Report(subtask, *e.Report)
	case e.Announce:
		source.Announce(func(subtask int, maxAllowed int64) {
			u.out.add(Event{Subtask: &subtask, MaxAllowed: &maxAllowed})
		})
	default:
		return malformed("no such event")
	}
	return nil
}

// metricsUnit is the subject metrics.
type metricsUnit struct {
	noState
	out    *log
	now    int64
	source *metric.Source
	inputs progress.InputWatermarks
}

func newMetrics(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		StartMs int64 `json:"startMs"`
		Inputs  int   `json:"inputs"`
	}](setup)
	return &metricsUnit{
		out:    out,
		now:    s.StartMs,
		source: metric.NewSource(),
		inputs: progress.NewInputWatermarks(s.Inputs),
	}, err
}

func (u *metricsUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Op        string `json:"op"`
		Ms        int64  `json:"ms"`
		Timestamp int64  `json:"timestamp"`
		Watermark int64  `json:"watermark"`
		Input     int    `json:"input"`
		Metric    string `json:"metric"`
	}](in)
	if err != nil {
		return err
	}
	switch e.Op {
	case "advance":
		u.now += e.Ms
	case "recordEmitted":
		u.source.RecordEmitted(e.Timestamp)
	case "idlingStarted":
		u.source.IdlingStarted(u.now)
	case "watermarkEmitted":
		u.source.WatermarkEmitted(e.Watermark)
	case "maxDesiredWatermark":
		u.source.MaxDesiredWatermark(e.Watermark)
	case "inputWatermark":
		if e.Input < 0 || e.Input >= len(u.inputs) {
			return malformed("no such input")
		}
		u.inputs[e.Input] = e.Watermark
	case "read":
		return u.read(e.Metric)
	default:
		return malformed("no such op", e.Op)
	}
	return nil
}

func (u *metricsUnit) read(name string) error {
	var value int64
	registered := true
	switch name {
	case "watermarkLag":
		value, registered = u.source.WatermarkLag(u.now)
	case "watermarkAlignmentDrift":
		value, registered = u.source.AlignmentDrift()
	case "currentEmitEventTimeLag":
		value = u.source.EmitEventTimeLag(u.now)
	case "sourceIdleTime":
		value = u.source.IdleTime(u.now)
	case "currentInputWatermark":
		value = u.inputs.Min()
	default:
		number, _ := strings.CutPrefix(name, "currentInput")
		number, _ = strings.CutSuffix(number, "Watermark")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(u.inputs) {
			return malformed("no such metric", name)
		}
		value = u.inputs[n-1]
	}
	if !registered {
		u.out.add(Event{Registered: &registered})
		return nil
	}
	u.out.add(Event{Value: &value})
	return nil
}
