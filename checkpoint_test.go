package lowwater_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// ticks is a source of splits that each emit 0, 1, 2, ... at a pace, up to an end.
type ticks struct {
	splits int
	until  int64
	every  time.Duration
}

type tickSplit struct {
	Number int
	Next   int64
}

func (s tickSplit) ID() string { return fmt.Sprint("tick-", s.Number) }

func (s *ticks) Validate() error                    { return nil }
func (s *ticks) Boundedness() connector.Boundedness { return connector.Bounded }
func (s *ticks) EncodeSplit(split connector.Split) ([]byte, error) {
	return json.Marshal(split.(tickSplit))
}
func (s *ticks) DecodeSplit(data []byte) (connector.Split, error) {
	var split tickSplit
	err := json.Unmarshal(data, &split)
	return split, err
}

func (s *ticks) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return &tickEnumerator{source: s}, nil
}

func (s *ticks) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[int64], error) {
	return &tickReader{source: s, available: make(chan struct{}, 1)}, nil
}

type tickEnumerator struct {
	source *ticks
	known  bool
}

func (e *tickEnumerator) Discover(context.Context) (splits []connector.Split, err error) {
	if e.known {
		return nil, nil
	}
	e.known = true
	for i := range e.source.splits {
		splits = append(splits, tickSplit{Number: i})
	}
	return splits, nil
}

func (e *tickEnumerator) Owner(s connector.Split, parallelism int) int {
	return s.(tickSplit).Number % parallelism
}
func (e *tickEnumerator) Close() error                        { return nil }
func (e *tickEnumerator) SnapshotEnumerator() ([]byte, error) { return []byte{1}, nil }
func (e *tickEnumerator) RestoreEnumerator([]byte) error      { e.known = true; return nil }

type tickReader struct {
	source    *ticks
	splits    []tickSplit
	noMore    bool
	available chan struct{}
	due       time.Time
}

func (r *tickReader) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		r.splits = append(r.splits, s.(tickSplit))
	}
	return nil
}
func (r *tickReader) NoMoreSplits()              { r.noMore = true }
func (r *tickReader) Available() <-chan struct{} { return r.available }
func (r *tickReader) Close() error               { return nil }

func (r *tickReader) Poll(out connector.ReaderOutput[int64]) (connector.PollStatus, error) {
	if len(r.splits) == 0 {
		return connector.EndOfInput, nil
	}
	if wait := time.Until(r.due); wait > 0 {
		time.AfterFunc(wait, func() {
			select {
			case r.available <- struct{}{}:
			default:
			}
		})
		return connector.NothingAvailable, nil
	}
	r.due = time.Now().Add(r.source.every)
	var left []tickSplit
	for _, s := range r.splits {
		b := out.Batch()
		b.Append(s.Next, s.Next*1000, 0)
		s.Next++
		if err := out.Emit(s.ID(), b, []int64{s.Next - 1}, connector.CreateTime); err != nil {
			return 0, err
		}
		if s.Next < r.source.until {
			left = append(left, s)
		} else if err := out.FinishSplit(s.ID()); err != nil {
			return 0, err
		}
	}
	r.splits = left
	return connector.MoreAvailable, nil
}

func (r *tickReader) SnapshotSplits() (all []connector.Split, err error) {
	for _, s := range r.splits {
		all = append(all, s)
	}
	return all, nil
}

func quiet() lowwater.Option { return lowwater.WithLogger(slog.New(slog.DiscardHandler)) }

// A job that fails again and again goes on from its last checkpoint: with a sink that
// only counts, every record is seen, and few are seen twice.
func TestRestartFromCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const splits, until = 4, 500
		env := lowwater.NewEnvironment(quiet(), lowwater.WithParallelism(2),
			lowwater.WithCheckpoints("mem://restart", time.Second),
			lowwater.WithRestart(lowwater.FixedDelay{Attempts: 3, Delay: time.Second}))
		var failures atomic.Int64
		out := lowwater.FromSource(env, &ticks{splits, until, 100 * time.Millisecond}, eventtime.ForMonotonousTimestamps[int64](), "ticks").
			Map(func(v int64) int64 {
				if v == 100*(failures.Load()+1) && failures.Add(1) <= 3 {
					panic("as planned")
				}
				return v
			}).Rebalance().Collect()
		if err := env.Execute(t.Context(), "restart"); err != nil {
			t.Fatal(err)
		}
		seen := map[int64]int{}
		for _, v := range out.Values() {
			seen[v]++
		}
		twice := 0
		for v := range int64(until) {
			if seen[v] < splits {
				t.Errorf("%d was seen %d times", v, seen[v])
			}
			twice += seen[v] - splits
		}
		// One restart repeats at most what a second brings.
		if twice > 3*splits*12 {
			t.Errorf("%d records were seen again", twice)
		}
		if failures.Load() < 3 {
			t.Errorf("%d failures", failures.Load())
		}
	})
}
