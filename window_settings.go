package lowwater

import (
	"fmt"
	"time"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator/windowed"
	"github.com/lowwater/lowwater/window"
)

// windowSettings is what an author says about windows, those of one stream as well as those
// that two streams share. T is what the windows hold.
type windowSettings[K comparable, T any] struct {
	// spec has all settings but the lengths of time, which are below as they were given.
	spec     windowed.Spec[K, T]
	lateness time.Duration
	silence  time.Duration
}

func settingsOf[K comparable, T any](assigner window.Assigner) windowSettings[K, T] {
	return windowSettings[K, T]{spec: windowed.Spec[K, T]{Options: windowed.Options{Assigner: assigner}}}
}

func (s *windowSettings[K, T]) setLateOutput(env *Environment, tag OutputTag[T]) {
	if err := tag.validate(); err != nil {
		env.fail("SideOutputLate: %w", err)
	}
	s.spec.LateOutput = tag.key()
}

func (s *windowSettings[K, T]) setTrigger(t window.ElementTrigger[T]) {
	if t == nil {
		t = window.ForElements[T](nil) // which is refused, where nil would be the default
	}
	s.spec.Trigger = t
}

func (s *windowSettings[K, T]) setEvictor(e window.Evictor[T]) {
	if e == nil {
		e = window.BuiltInEvictor[T]{} // which is refused
	}
	s.spec.Evictor = e
}

func (s *windowSettings[K, T]) setStateful(clear func(*WindowContext[K]) error) {
	s.spec.State = true
	if clear != nil {
		s.spec.Clear = func(c *windowed.Context[K]) error { return clear(&WindowContext[K]{c}) }
	}
}

// checked returns the operator's description, or what is wrong with it.
func (s *windowSettings[K, T]) checked() (windowed.Spec[K, T], error) {
	spec := s.spec
	var err error
	if spec.AllowedLateness, err = wholeMillis("AllowedLateness", s.lateness); err != nil {
		return spec, err
	}
	if spec.CloseAfterSilence, err = wholeMillis("CloseAfterSilence", s.silence); err != nil {
		return spec, err
	}
	return spec, spec.Validate()
}

func wholeMillis(setting string, d time.Duration) (int64, error) {
	if d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%s(%v): must be whole milliseconds", setting, d)
	}
	return d.Milliseconds(), nil
}

// windowNode returns the node of a window operator, as far as the windows decide. The
// settings may be wrong.
func windowNode[K comparable, T any](spec windowed.Spec[K, T], function string) *graph.Node {
	n := &graph.Node{Name: "Window " + function, WantsConsumer: true, LateSide: spec.LateOutput}
	var assigner interface {
		IsEventTime() bool
		String() string
	}
	switch {
	case spec.ElementAssigner != nil:
		assigner = spec.ElementAssigner
	case spec.Assigner != nil:
		assigner = spec.Assigner
	default:
		return n
	}
	n.Assigner = assigner.String()
	n.Lateness = time.Duration(spec.AllowedLateness) * time.Millisecond
	n.Name = n.Assigner + " " + function
	n.Silence = time.Duration(spec.CloseAfterSilence) * time.Millisecond
	n.EventTime = assigner.IsEventTime()
	n.Timers = !n.EventTime && spec.Trigger != nil // a trigger may wait for event time in any window
	n.NeverFires = spec.Trigger == window.ForElements[T](window.NeverTrigger()) ||
		spec.Trigger == nil && window.DefaultTrigger(assigner) == window.NeverTrigger()
	return n
}

// onlyLateSide says that a node has no side output but the one for late records: its function
// has no way to others.
func onlyLateSide(n *graph.Node) {
	n.KnownSides = true
	if n.LateSide != "" {
		n.Sides = []string{n.LateSide}
	}
}
