package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// RestartStrategy decides whether and when a job that failed runs again. It belongs to
// one job and is called by one goroutine.
type RestartStrategy interface {
	// Name is that of Flink's setting restart-strategy.type.
	Name() string
	// Next is called at each failure. again is false if the job is to fail for good.
	Next(now time.Time) (delay time.Duration, again bool)
	// Exhausted says why Next answered false.
	Exhausted() string
}

// RestartPolicy describes a restart strategy. It is sealed: the strategies are Flink's.
type RestartPolicy interface {
	// Validate reports fields that make no sense.
	Validate() error
	strategy() RestartStrategy
}

// NewRestart returns the strategy of a policy, for one job.
func NewRestart(p RestartPolicy) RestartStrategy { return p.strategy() }

// FixedDelay restarts up to Attempts times, each after Delay.
type FixedDelay struct {
	Attempts int
	Delay    time.Duration
}

// Validate implements RestartPolicy.
func (p FixedDelay) Validate() error {
	if p.Attempts < 1 || p.Delay < 0 {
		return fmt.Errorf("restart after a fixed delay: %d attempts after %v: attempts must be positive and the delay not negative", p.Attempts, p.Delay)
	}
	return nil
}

func (p FixedDelay) strategy() RestartStrategy { return &fixedDelay{FixedDelay: p} }

type fixedDelay struct {
	FixedDelay
	failures int
}

func (*fixedDelay) Name() string { return "fixed-delay" }

func (s *fixedDelay) Next(time.Time) (time.Duration, bool) {
	s.failures++
	return s.Delay, s.failures <= s.Attempts
}

func (s *fixedDelay) Exhausted() string {
	return fmt.Sprintf("not restarted again: it has been %d times", s.Attempts)
}

// FailureRate restarts, each time after Delay, while there are no more than Failures
// within Interval.
type FailureRate struct {
	Failures        int
	Interval, Delay time.Duration
}

// Validate implements RestartPolicy.
func (p FailureRate) Validate() error {
	if p.Failures < 1 || p.Interval <= 0 || p.Delay < 0 {
		return fmt.Errorf("restart by failure rate: %d failures in %v, delay %v: failures and interval must be positive and the delay not negative",
			p.Failures, p.Interval, p.Delay)
	}
	return nil
}

func (p FailureRate) strategy() RestartStrategy { return &failureRate{FailureRate: p} }

type failureRate struct {
	FailureRate
	// at are the latest failures, oldest first.
	at []time.Time
}

func (*failureRate) Name() string { return "failure-rate" }

func (s *failureRate) Next(now time.Time) (time.Duration, bool) {
	s.at = append(s.at, now)
	if extra := len(s.at) - s.Failures - 1; extra > 0 {
		s.at = s.at[extra:]
	}
	return s.Delay, len(s.at) <= s.Failures || now.Sub(s.at[0]) > s.Interval
}

func (s *failureRate) Exhausted() string {
	return fmt.Sprintf("not restarted: it failed more than %d times in %v", s.Failures, s.Interval)
}

// ExponentialDelay restarts for ever: the delay grows by Multiplier from Initial to Max,
// and is Initial again after the job has run for ResetAfter. Jitter, from 0 to 1, is the
// largest part of the delay that is added or taken away at random.
type ExponentialDelay struct {
	Initial, Max time.Duration
	Multiplier   float64
	ResetAfter   time.Duration
	Jitter       float64
}

// Validate implements RestartPolicy.
func (p ExponentialDelay) Validate() error {
	switch {
	case p.Initial <= 0 || p.Max < p.Initial:
		return fmt.Errorf("restart after a growing delay: from %v to %v: must be positive and rise", p.Initial, p.Max)
	case p.Multiplier < 1:
		return fmt.Errorf("restart after a growing delay: multiplier %v: must be at least 1", p.Multiplier)
	case p.ResetAfter <= 0:
		return errors.New("restart after a growing delay: the time to the reset must be positive")
	case p.Jitter < 0 || p.Jitter > 1:
		return fmt.Errorf("restart after a growing delay: jitter %v: must be from 0 to 1", p.Jitter)
	}
	return nil
}

func (p ExponentialDelay) strategy() RestartStrategy { return &exponentialDelay{ExponentialDelay: p} }

type exponentialDelay struct {
	ExponentialDelay
	// due is when the last restart was to happen, delay what it waited for.
	due   time.Time
	delay time.Duration
}

func (*exponentialDelay) Name() string { return "exponential-delay" }

func (s *exponentialDelay) Next(now time.Time) (time.Duration, bool) {
	if s.delay == 0 || now.Sub(s.due) >= s.ResetAfter {
		s.delay = s.Initial
	} else {
		s.delay = min(s.Max, time.Duration(float64(s.delay)*s.Multiplier))
	}
	s.due = now.Add(s.delay)
	spread := float64(s.delay) * s.Jitter * (2*rand.Float64() - 1)
	return min(s.Max, s.delay+time.Duration(spread)), true
}

func (s *exponentialDelay) Exhausted() string { return "" }
