package job

import (
	"slices"
	"testing"
	"time"
)

// failure is a failure at a time since the first, and what the strategy is to answer.
type failure struct {
	at    time.Duration
	again bool
	delay time.Duration
}

func TestRestartStrategies(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name     string
		policy   RestartPolicy
		flink    string
		failures []failure
	}{
		{"fixed delay", FixedDelay{Attempts: 2, Delay: 3 * s}, "fixed-delay", []failure{{0, true, 3 * s}, {time.Hour, true, 3 * s}, {2 * time.Hour, false, 3 * s}}},
		{"rate kept", FailureRate{Failures: 2, Interval: 10 * s, Delay: s}, "failure-rate", []failure{{0, true, s}, {6 * s, true, s}, {12 * s, true, s}, {18 * s, true, s}}},
		{"rate exceeded", FailureRate{Failures: 2, Interval: 10 * s, Delay: s}, "failure-rate", []failure{{0, true, s}, {6 * s, true, s}, {9 * s, false, s}}},
		{"growing delay", ExponentialDelay{Initial: s, Max: 5 * s, Multiplier: 2, ResetAfter: time.Minute}, "exponential-delay", []failure{
			{0, true, s}, {2 * s, true, 2 * s}, {5 * s, true, 4 * s}, {10 * s, true, 5 * s}, {16 * s, true, 5 * s},
			{16*s + 5*s + time.Minute, true, s},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.policy.Validate(); err != nil {
				t.Fatal(err)
			}
			strategy, first := tt.policy.strategy(), time.Now()
			if got := strategy.Name(); got != tt.flink {
				t.Errorf("its name is %s, Flink's is %s", got, tt.flink)
			}
			for i, f := range tt.failures {
				if delay, again := strategy.Next(first.Add(f.at)); again != f.again || delay != f.delay {
					t.Errorf("failure %d: after %v, again %v; want %v, %v", i+1, delay, again, f.delay, f.again)
				}
			}
			if last := tt.failures[len(tt.failures)-1]; !last.again && strategy.Exhausted() == "" {
				t.Error("it does not say why the job is not restarted")
			}
		})
	}
}

// Jitter spreads the delays within its part of them, and never above the largest.
func TestRestartJitter(t *testing.T) {
	var delays []time.Duration
	for range 200 {
		delay, _ := ExponentialDelay{Initial: time.Second, Max: time.Minute, Multiplier: 2, ResetAfter: time.Hour, Jitter: 0.1}.strategy().Next(time.Now())
		delays = append(delays, delay)
	}
	least, most := slices.Min(delays), slices.Max(delays)
	if least < 900*time.Millisecond || most > 1100*time.Millisecond || most-least < 50*time.Millisecond {
		t.Errorf("delays from %v to %v, want them spread over 0.9 s to 1.1 s", least, most)
	}
}

func TestRestartPoliciesAreValidated(t *testing.T) {
	for _, p := range []RestartPolicy{
		FixedDelay{}, FixedDelay{Attempts: 1, Delay: -1},
		FailureRate{Interval: 1}, FailureRate{Failures: 1}, FailureRate{Failures: 1, Interval: 1, Delay: -1},
		ExponentialDelay{}, ExponentialDelay{Initial: 2, Max: 1, Multiplier: 1, ResetAfter: 1},
		ExponentialDelay{Initial: 1, Max: 1, Multiplier: 0.5, ResetAfter: 1}, ExponentialDelay{Initial: 1, Max: 1, Multiplier: 1},
		ExponentialDelay{Initial: 1, Max: 1, Multiplier: 1, ResetAfter: 1, Jitter: 2},
	} {
		if p.Validate() == nil {
			t.Errorf("%#v was accepted", p)
		}
	}
}
