package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lowwater/lowwater/connector"
)

// event is one record; a split's events are made from its number, so that a reference can
// be computed without a job.
type event struct {
	Split int
	N     int64
	Key   int
	At    int64
}

// tickerSource has splits that each emit a batch of events at a pace, up to an end.
type tickerSource struct {
	trial *trial
}

type tickerSplit struct {
	Number int   `json:"number"`
	Next   int64 `json:"next"`
}

func (s tickerSplit) ID() string { return fmt.Sprint("split-", s.Number) }

func (s *tickerSource) Validate() error                    { return nil }
func (s *tickerSource) Boundedness() connector.Boundedness { return connector.Bounded }
func (s *tickerSource) EncodeSplit(split connector.Split) ([]byte, error) {
	return json.Marshal(split.(tickerSplit))
}
func (s *tickerSource) DecodeSplit(data []byte) (connector.Split, error) {
	var split tickerSplit
	err := json.Unmarshal(data, &split)
	return split, err
}

func (s *tickerSource) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return &tickerEnumerator{splits: s.trial.splits}, nil
}

func (s *tickerSource) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[event], error) {
	return &tickerReader{trial: s.trial, available: make(chan struct{}, 1)}, nil
}

// tickerEnumerator finds its splits one after the other, some of them late.
type tickerEnumerator struct {
	splits int
	Found  int
}

func (e *tickerEnumerator) Discover(context.Context) (splits []connector.Split, err error) {
	for ; e.Found < e.splits; e.Found++ {
		splits = append(splits, tickerSplit{Number: e.Found})
	}
	return splits, nil
}

func (e *tickerEnumerator) Owner(s connector.Split, parallelism int) int {
	return s.(tickerSplit).Number % parallelism
}
func (e *tickerEnumerator) Close() error                        { return nil }
func (e *tickerEnumerator) SnapshotEnumerator() ([]byte, error) { return json.Marshal(e) }
func (e *tickerEnumerator) RestoreEnumerator(data []byte) error { return json.Unmarshal(data, e) }

type tickerReader struct {
	trial     *trial
	splits    []tickerSplit
	offsets   []int64
	available chan struct{}
	due       time.Time
}

func (r *tickerReader) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		r.splits = append(r.splits, s.(tickerSplit))
	}
	return nil
}
func (r *tickerReader) NoMoreSplits()              {}
func (r *tickerReader) Available() <-chan struct{} { return r.available }
func (r *tickerReader) Close() error               { return nil }

func (r *tickerReader) Poll(out connector.ReaderOutput[event]) (connector.PollStatus, error) {
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
	r.due = time.Now().Add(r.trial.pace)
	left := r.splits[:0:0]
	for _, s := range r.splits {
		b := out.Batch()
		r.offsets = r.offsets[:0]
		for range min(r.trial.batch, r.trial.events-s.Next) {
			e := r.trial.event(s.Number, s.Next)
			b.Append(e, e.At, 0)
			r.offsets = append(r.offsets, s.Next)
			s.Next++
		}
		if err := out.Emit(s.ID(), b, r.offsets, connector.CreateTime); err != nil {
			return 0, err
		}
		if s.Next < r.trial.events {
			left = append(left, s)
		} else if err := out.FinishSplit(s.ID()); err != nil {
			return 0, err
		}
	}
	r.splits = left
	return connector.MoreAvailable, nil
}

func (r *tickerReader) SnapshotSplits() (all []connector.Split, err error) {
	for _, s := range r.splits {
		all = append(all, s)
	}
	return all, nil
}
