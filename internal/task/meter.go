package task

import (
	"time"

	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
)

// state is what a subtask spends its time on; it is in exactly one at a time.
type state uint8

const (
	busy state = iota
	// idle: waiting for input.
	idle
	// softBackPressured: not taking input because an output has no credit.
	softBackPressured
	// hardBackPressured: blocked in the middle of emitting.
	hardBackPressured
)

// meter adds up the time per state, and tells operators of back pressure so that
// their idle clocks stand still (spec watermarks 4.10).
type meter struct {
	metrics   *metric.Task
	current   state
	listeners []operator.BackPressured
}

// start and stop enclose the life of the task.
func (m *meter) start() { m.timer(m.current).Start(time.Now()) }
func (m *meter) stop()  { m.timer(m.current).Stop(time.Now()) }

func (m *meter) enter(next state) {
	if next == m.current {
		return
	}
	now := time.Now()
	m.timer(m.current).Stop(now)
	m.timer(next).Start(now)
	previous := m.current
	m.current = next
	if previous < softBackPressured && next < softBackPressured {
		return
	}
	for _, l := range m.listeners {
		l.BackPressure(next == softBackPressured, next == hardBackPressured)
	}
}

func (m *meter) timer(s state) *metric.Timer {
	switch s {
	case idle:
		return &m.metrics.Idle
	case softBackPressured:
		return &m.metrics.SoftBackPressured
	case hardBackPressured:
		return &m.metrics.HardBackPressured
	default:
		return &m.metrics.Busy
	}
}

// Blocked and Unblocked implement exchange.BlockObserver.
func (m *meter) Blocked()   { m.enter(hardBackPressured) }
func (m *meter) Unblocked() { m.enter(busy) }
