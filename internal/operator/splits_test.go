package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/snapshot"
	"github.com/lowwater/lowwater/internal/snapshot/snapshottest"
)

// numbers is a source of splits that hold the numbers from next to stop, read in runs of any
// length. What a run fetched and did not pass on is lost with the reader.
type numbers struct {
	connector.Source[int]
	// fetch and take say how many records the next poll fetches and passes on.
	fetch, take func() int
	encodeErr   error
	taken       []int64
	completed   []int64
	// leaveOut spoils snapshots, stray adds to them.
	leaveOut bool
	stray    connector.Split
}

type numberSplit struct {
	Name string `json:"name"`
	Next int    `json:"next"`
	Stop int    `json:"stop"`
}

func (s numberSplit) ID() string { return s.Name }

func (n *numbers) EncodeSplit(s connector.Split) ([]byte, error) {
	if n.encodeErr != nil {
		return nil, n.encodeErr
	}
	return json.Marshal(s)
}

func (n *numbers) DecodeSplit(data []byte) (connector.Split, error) {
	var s numberSplit
	return s, json.Unmarshal(data, &s)
}

func (n *numbers) NewReader(context.Context, connector.ReaderRuntime) (connector.Reader[int], error) {
	return &numberReader{numbers: n, paused: map[string]bool{}}, nil
}

type numberReader struct {
	*numbers
	splits  []*numberSplit
	fetched []int // of the first split
	paused  map[string]bool
}

func (r *numberReader) AddSplits(splits []connector.Split) error {
	for _, s := range splits {
		sp := s.(numberSplit)
		r.splits = append(r.splits, &sp)
	}
	return nil
}

func (r *numberReader) NoMoreSplits()               {}
func (r *numberReader) Available() <-chan struct{}  { return nil }
func (r *numberReader) Close() error                { return nil }
func (r *numberReader) PauseSplits(ids []string)    { r.pause(ids, true) }
func (r *numberReader) ResumeSplits(ids []string)   { r.pause(ids, false) }
func (r *numberReader) SnapshotTaken(c int64)       { r.taken = append(r.taken, c) }
func (r *numberReader) CheckpointCompleted(c int64) { r.completed = append(r.completed, c) }
func (r *numberReader) pause(ids []string, value bool) {
	for _, id := range ids {
		r.paused[id] = value
	}
}

func (r *numberReader) SnapshotSplits() (splits []connector.Split, err error) {
	for i, s := range r.splits {
		if i > 0 || !r.leaveOut {
			splits = append(splits, *s)
		}
	}
	if r.stray != nil {
		splits = append(splits, r.stray)
	}
	return splits, nil
}

func (r *numberReader) Poll(out connector.ReaderOutput[int]) (connector.PollStatus, error) {
	if len(r.splits) == 0 {
		return connector.EndOfInput, nil
	}
	s := r.splits[0]
	if r.paused[s.Name] {
		r.splits = append(r.splits[1:], s)
		r.fetched = nil
		return connector.NothingAvailable, nil
	}
	for n := s.Next + len(r.fetched); len(r.fetched) < r.fetch() && n < s.Stop; n++ {
		r.fetched = append(r.fetched, n)
	}
	b := out.Batch()
	var offsets []int64
	for range min(r.take(), len(r.fetched)) {
		b.Append(r.fetched[0], int64(10*r.fetched[0]), 0)
		offsets = append(offsets, int64(r.fetched[0]))
		r.fetched = r.fetched[1:]
	}
	if err := out.Emit(s.Name, b, offsets, connector.CreateTime); err != nil {
		return 0, err
	}
	s.Next += len(offsets)
	if s.Next == s.Stop {
		r.splits, r.fetched = r.splits[1:], nil
		return connector.MoreAvailable, out.FinishSplit(s.Name)
	}
	return connector.MoreAvailable, nil
}

// openNumbers opens a source with checkpoints.
func openNumbers(t testing.TB, n *numbers, strategy eventtime.WatermarkStrategy[int], restored snapshot.Reader) (Source, *logged, *handClock) {
	t.Helper()
	op, out := NewSource[int](n, strategy, ""), &logged{}
	rt, clock := testRuntime(t)
	rt.Checkpointing, rt.Restored = true, restored
	must(t, op.Open(rt, out))
	return op, out, clock
}

func takeSnapshot(t testing.TB, op any, checkpoint int64) *snapshottest.Snapshot {
	t.Helper()
	if b, ok := op.(BeforeBarrier); ok {
		must(t, b.PrepareBarrier(checkpoint))
	}
	s, err := snapshottest.Take(checkpoint, op.(Stateful).Snapshot)
	must(t, err)
	must(t, s.Finish())
	return s
}

// restoredFrom deals snapshots out over one subtask.
func restoredFrom(t testing.TB, taken ...*snapshottest.Snapshot) *snapshot.Share {
	t.Helper()
	shares, err := snapshottest.Readers(taken, 1, 128)
	must(t, err)
	return shares[0]
}

// splitsOf is what a job does with the splits of all subtasks.
func splitsOf(t testing.TB, codec connector.SplitCodec, taken ...*snapshottest.Snapshot) (splits []connector.Split) {
	t.Helper()
	part, ok := restoredFrom(t, taken...).Part(SplitsPart)
	if !ok {
		t.Fatal("there is no part of splits")
	}
	restored, err := DecodeSplits(codec, part)
	must(t, err)
	for _, s := range restored {
		splits = append(splits, s)
	}
	return splits
}

// TestRestoredSourceReadsEachRecordOnce takes snapshots between polls of any length, with
// splits that are finished, paused, empty, or not begun, and goes on from them.
func TestRestoredSourceReadsEachRecordOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := &numbers{
			fetch: func() int { return rapid.IntRange(0, 7).Draw(r, "fetch") },
			take:  func() int { return rapid.IntRange(0, 5).Draw(r, "take") },
		}
		var splits []connector.Split
		var want []string
		for i := range rapid.IntRange(1, 4).Draw(r, "splits") {
			stop := rapid.IntRange(0, 12).Draw(r, "stop")
			splits = append(splits, numberSplit{Name: fmt.Sprint("s", i), Stop: stop})
			for v := range stop {
				want = append(want, fmt.Sprintf("s%d/%d", i, v))
			}
		}
		var got []string
		op, ended := Source(nil), false
		for checkpoint := int64(1); !ended; checkpoint++ {
			rt, _ := testRuntime(t)
			rt.Checkpointing = true
			op = NewSource[int](n, eventtime.ForMonotonousTimestamps[int](), "")
			must(t, op.Open(rt, &noted{rt: rt, lines: &got}))
			must(t, op.AddSplits(splits))
			reader := op.(*sourceOperator[int]).reader.(*numberReader)
			for range rapid.IntRange(1, 30).Draw(r, "polls") {
				if rapid.IntRange(0, 9).Draw(r, "pause") == 0 {
					reader.PauseSplits([]string{"s0"})
				}
				status, err := op.Poll()
				must(t, err)
				if ended = status == connector.EndOfInput; ended {
					break
				}
			}
			splits = splitsOf(t, n, takeSnapshot(t, op, checkpoint))
		}
		slices.SortFunc(want, cmp.Compare)
		slices.SortFunc(got, cmp.Compare)
		if diff := gocmp.Diff(want, got); diff != "" {
			r.Fatalf("records over restarts (-want +got):\n%s", diff)
		}
	})
}

// noted is an output that notes records as split/value.
type noted struct {
	logged
	rt    *Runtime
	lines *[]string
}

func (n *noted) Emit(p exchange.Payload) error {
	b := p.(*connector.Batch[int])
	for i, v := range b.Values {
		name, _ := n.rt.Splits.Name(b.Origins[i].Split())
		*n.lines = append(*n.lines, fmt.Sprint(name.Split, "/", v))
	}
	b.Release()
	return nil
}

func TestRestoredSourceGoesOnInEventTime(t *testing.T) {
	n := &numbers{fetch: func() int { return 3 }, take: func() int { return 3 }}
	op, out, _ := openNumbers(t, n, eventtime.ForBoundedOutOfOrderness[int](5*time.Millisecond), nil)
	must(t, op.AddSplits([]connector.Split{numberSplit{"a", 0, 9}, numberSplit{"b", 0, 9}}))
	poll(t, op, connector.MoreAvailable)
	out.expect(t, "[0@0#0 1@10#1 2@20#2]")
	first := takeSnapshot(t, op, 7)
	entries, _ := first.Entries(SplitsPart)
	var texts []string
	for _, e := range entries {
		texts = append(texts, string(e.Data))
	}
	if diff := gocmp.Diff([]string{
		`{"split":{"name":"a","next":3,"stop":9},"watermark":14}`,
		`{"split":{"name":"b","next":0,"stop":9}}`,
	}, texts); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	must(t, op.(CheckpointListener).CheckpointCompleted(7))
	if fmt.Sprint(n.taken, n.completed) != "[7] [7]" {
		t.Errorf("the reader was told of %v, %v", n.taken, n.completed)
	}

	share := restoredFrom(t, first)
	op, out, clock := openNumbers(t, n, eventtime.ForBoundedOutOfOrderness[int](5*time.Millisecond), share)
	if left := share.Unclaimed(); len(left) > 0 {
		t.Errorf("nobody claimed %v", left)
	}
	restored := splitsOf(t, n, first)
	restored[1] = RestoredSplit{restored[1].(RestoredSplit).Split, 11} // its event time is ahead of its records
	must(t, op.AddSplits(restored))
	clock.advance(t, 1200)
	out.expect(t, "watermark 11")
	poll(t, op, connector.MoreAvailable)
	clock.advance(t, 1400)
	out.expect(t, "[3@30#3 4@40#4 5@50#5]")
	second := takeSnapshot(t, op, 8)
	for _, s := range splitsOf(t, n, second) {
		want := map[string]int64{"a": 44, "b": 11}[s.ID()]
		if got := s.(RestoredSplit).Watermark; got != want {
			t.Errorf("split %s is stored with watermark %d, want %d", s.ID(), got, want)
		}
	}
}

// TestSnapshotCoversWhatWasEmitted: the barrier may come before the periodic watermark.
func TestSnapshotCoversWhatWasEmitted(t *testing.T) {
	n := &numbers{fetch: func() int { return 3 }, take: func() int { return 3 }}
	op, out, _ := openNumbers(t, n, eventtime.ForMonotonousTimestamps[int](), nil)
	must(t, op.AddSplits([]connector.Split{numberSplit{"a", 0, 9}}))
	poll(t, op, connector.MoreAvailable)
	takeSnapshot(t, op, 1)
	out.expect(t, "[0@0#0 1@10#1 2@20#2]", "watermark 19")
}

func TestSourceRefusesCheckpoints(t *testing.T) {
	rt, _ := testRuntime(t)
	rt.Checkpointing = true
	err := NewSource[int](&polled{}, eventtime.NoWatermarks[int](), "").Open(rt, &logged{})
	if err == nil || !strings.Contains(err.Error(), "connector.SplitCodec") {
		t.Errorf("a source that cannot store its position: %v", err)
	}
}

func TestBadSplitSnapshots(t *testing.T) {
	broken := errors.New("broken codec")
	tests := []struct {
		name string
		n    *numbers
		want string
	}{
		{"left out", &numbers{leaveOut: true}, `leaves out splits that are not finished: ["a"]`},
		{"unknown", &numbers{stray: numberSplit{Name: "x"}}, `split "x", which it was not assigned`},
		{"twice", &numbers{stray: numberSplit{Name: "b"}}, `split "b", which it was not assigned, has finished, or has there twice`},
		{"codec", &numbers{encodeErr: broken}, `encoding split "a": broken codec`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			op, _, _ := openNumbers(t, tt.n, eventtime.NoWatermarks[int](), nil)
			must(t, op.AddSplits([]connector.Split{numberSplit{"a", 0, 1}, numberSplit{"b", 0, 1}}))
			_, err := snapshottest.Take(1, op.(Stateful).Snapshot)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestUnreadableSplits(t *testing.T) {
	part := func(version int, entry string) snapshot.PartReader {
		s, err := snapshottest.Take(1, func(w snapshot.Writer) error {
			p, err := w.Part(snapshot.Part{Name: SplitsPart, Kind: snapshot.List, Version: version})
			return errors.Join(err, p.Append(0, []byte(entry)), p.Close())
		})
		must(t, err)
		r, _ := restoredFrom(t, s).Part(SplitsPart)
		return r
	}
	for want, p := range map[string]snapshot.PartReader{
		"layout 2":                              part(2, "{}"),
		"unreadable":                            part(splitsVersion, "{"),
		"cannot restore the checkpoint's split": part(splitsVersion, `{"split":{"name":1}}`),
	} {
		if _, err := DecodeSplits(&numbers{}, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestOpaqueBytes: a connector's bytes come back as they were, whatever they are.
func TestOpaqueBytes(t *testing.T) {
	check := func(data []byte) error {
		entry, err := json.Marshal(splitEntry{Split: data})
		if err != nil {
			return err
		}
		var back splitEntry
		if err := json.Unmarshal(entry, &back); err != nil {
			return err
		}
		if string(back.Split) != string(data) {
			return fmt.Errorf("%q came back as %q, by %s", data, back.Split, entry)
		}
		return nil
	}
	for _, data := range []string{"", "{}", `{"a":1}`, `{"a": 1}`, "{\"a\":\"<&>\"}\n", `{"a":"<"}`, `{"a":"\u003c"}`, `{"a":1.0e+2}`, `{"a":1,"a":2}`, `"x"`, "null", "7", "\x00\xff", "{"} {
		if err := check([]byte(data)); err != nil {
			t.Error(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		if err := check(rapid.SliceOf(rapid.Byte()).Draw(r, "data")); err != nil {
			r.Error(err)
		}
	})
}
