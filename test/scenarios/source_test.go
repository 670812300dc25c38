//go:build synctests

package scenarios

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/kafka"
)

// payload is the value of a record in Kafka.
type payload struct {
	Time int64  `json:"ts"`
	Key  string `json:"key"`
}

// event is a record in the job.
type event struct {
	payload
	Topic     string
	Partition int32
}

func decodeEvent(r kafka.Record) (event, error) {
	e := event{Topic: r.Topic, Partition: r.Partition}
	err := json.Unmarshal(r.Value, &e.payload)
	return e, err
}

// replaySource is the Kafka source of a scenario. It reads as fast as it can, but
// passes a record on at its read time only, as a slow reader would, and tells
// positions accordingly. It ends when the scenario does, so that the windows still
// open then fire and can be counted.
type replaySource struct {
	*kafka.Source[event]
	// readAt is by split and offset.
	readAt     map[string][]time.Time
	assignment [][]int32
	end        <-chan struct{}
}

func (s *replaySource) NewEnumerator(ctx context.Context, rt connector.SourceRuntime) (connector.Enumerator, error) {
	e, err := s.Source.NewEnumerator(ctx, rt)
	if err == nil && s.assignment != nil {
		e = assigned{e, s.assignment}
	}
	return e, err
}

// assigned assigns partitions as the scenario says.
type assigned struct {
	connector.Enumerator
	assignment [][]int32
}

func (a assigned) Owner(split connector.Split, _ int) int {
	return slices.IndexFunc(a.assignment, func(partitions []int32) bool {
		return slices.Contains(partitions, split.(kafka.Split).Partition)
	})
}

func (s *replaySource) NewReader(ctx context.Context, rt connector.ReaderRuntime) (connector.Reader[event], error) {
	inner, err := s.Source.NewReader(ctx, rt)
	if err != nil {
		return nil, err
	}
	r := &replayReader{Reader: inner, source: s, wake: make(chan struct{}, 1), closed: make(chan struct{}), timer: time.NewTimer(0)}
	r.ended = make(chan struct{})
	go r.watch()
	return r, nil
}

// replayReader holds records of a Kafka reader until they are due.
type replayReader struct {
	connector.Reader[event]
	source *replaySource
	mu     sync.Mutex // guards splits and what they hold from Positions
	splits []*heldSplit
	timer  *time.Timer // runs until the next record is due
	wake   chan struct{}
	closed chan struct{}
	ended  chan struct{}
}

// heldSplit is a split and its records that are not due yet.
type heldSplit struct {
	id      string
	paused  bool
	records []heldRecord
	readAt  []time.Time
	offsets []int64 // of the batch being passed on
}

type heldRecord struct {
	value      event
	timestamp  int64
	offset     int64
	timestamps connector.TimestampType
}

// watch makes Available deliver when there are new records, records are due or
// the scenario has ended.
func (r *replayReader) watch() {
	defer close(r.ended)
	end := r.source.end
	for {
		select {
		case <-r.Reader.Available():
		case <-r.timer.C:
		case <-end:
			end = nil
		case <-r.closed:
			return
		}
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

func (r *replayReader) Available() <-chan struct{} { return r.wake }

func (r *replayReader) Close() error {
	close(r.closed)
	<-r.ended
	return r.Reader.Close()
}

func (r *replayReader) AddSplits(splits []connector.Split) error {
	r.mu.Lock()
	for _, s := range splits {
		r.splits = append(r.splits, &heldSplit{id: s.ID(), readAt: r.source.readAt[s.ID()]})
	}
	r.mu.Unlock()
	return r.Reader.AddSplits(splits)
}

func (r *replayReader) Poll(out connector.ReaderOutput[event]) (connector.PollStatus, error) {
	select {
	case <-r.source.end:
		return connector.EndOfInput, nil
	default:
	}
	now := time.Now()
	for _, s := range r.splits {
		if s.isDue(now) {
			return connector.MoreAvailable, r.passOn(s, out, now)
		}
	}
	status, err := r.Reader.Poll(&holdingOutput{out, r})
	if err != nil || status == connector.MoreAvailable {
		return status, err
	}
	if next := r.nextDue(); !next.IsZero() {
		r.timer.Reset(time.Until(next))
	}
	return status, nil
}

// nextDue returns when the next of the held records is due, zero if there is none.
func (r *replayReader) nextDue() (next time.Time) {
	for _, s := range r.splits {
		if len(s.records) == 0 || s.paused {
			continue
		}
		if at := s.readAt[s.records[0].offset]; next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

func (s *heldSplit) isDue(now time.Time) bool {
	return len(s.records) > 0 && !s.paused && !s.readAt[s.records[0].offset].After(now)
}

// passOn passes on the next records that are due, at most a batch.
func (r *replayReader) passOn(s *heldSplit, out connector.ReaderOutput[event], now time.Time) error {
	b := out.Batch()
	s.offsets = s.offsets[:0]
	timestamps := s.records[0].timestamps
	r.mu.Lock()
	for b.Len() < connector.BatchSize && s.isDue(now) && s.records[0].timestamps == timestamps {
		record := s.records[0]
		s.records = s.records[1:]
		b.Append(record.value, record.timestamp, 0)
		s.offsets = append(s.offsets, record.offset)
	}
	r.mu.Unlock()
	return out.Emit(s.id, b, s.offsets, timestamps)
}

// PauseSplits implements connector.SplitPauser.
func (r *replayReader) PauseSplits(ids []string) {
	r.setPaused(ids, true)
	r.Reader.(connector.SplitPauser).PauseSplits(ids)
}

// ResumeSplits implements connector.SplitPauser.
func (r *replayReader) ResumeSplits(ids []string) {
	r.setPaused(ids, false)
	r.Reader.(connector.SplitPauser).ResumeSplits(ids)
}

func (r *replayReader) setPaused(ids []string, paused bool) {
	for _, s := range r.splits {
		if slices.Contains(ids, s.id) {
			s.paused = paused
		}
	}
	r.timer.Reset(0)
}

// Positions implements connector.SplitPositions.
func (r *replayReader) Positions(yield func(splitID string, next, end int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Reader.(connector.SplitPositions).Positions(func(id string, next, end int64) {
		i := slices.IndexFunc(r.splits, func(s *heldSplit) bool { return s.id == id })
		if held := r.splits[i].records; len(held) > 0 {
			next = held[0].offset
		}
		yield(id, next, end)
	})
}

// holdingOutput takes what the Kafka reader passes on.
type holdingOutput struct {
	connector.ReaderOutput[event]
	reader *replayReader
}

// Emit lets a batch through if all of it is due and holds it otherwise.
func (o *holdingOutput) Emit(id string, b *connector.Batch[event], offsets []int64, timestamps connector.TimestampType) error {
	i := slices.IndexFunc(o.reader.splits, func(s *heldSplit) bool { return s.id == id })
	s := o.reader.splits[i]
	last := offsets[len(offsets)-1]
	if last >= int64(len(s.readAt)) {
		return fmt.Errorf("split %s has offset %d, but the scenario has %d records there", id, last, len(s.readAt))
	}
	if len(s.records) == 0 && !s.readAt[last].After(time.Now()) {
		return o.ReaderOutput.Emit(id, b, offsets, timestamps)
	}
	o.reader.mu.Lock()
	defer o.reader.mu.Unlock()
	for i, v := range b.Values {
		s.records = append(s.records, heldRecord{v, b.Timestamps[i], offsets[i], timestamps})
	}
	b.Release()
	return nil
}
