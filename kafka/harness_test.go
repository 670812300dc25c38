package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// got is one record as the engine sees it.
type got[T any] struct {
	Split     string
	Offset    int64
	Timestamp int64
	Value     T
}

// output collects what a reader passes on, and checks what holds for every
// batch. This connector's readers leave event time to the strategy.
type output[T any] struct {
	connector.ReaderOutput[T]
	t        testing.TB
	pool     *connector.Pool[T]
	records  []got[T]
	types    []connector.TimestampType
	batches  []string // the splits of the batches
	side     []connector.DeadLetter
	finished []string
}

func (o *output[T]) Batch() *connector.Batch[T] { return o.pool.Get() }

func (o *output[T]) Emit(id string, b *connector.Batch[T], offsets []int64, types connector.TimestampType) error {
	if n := b.Len(); n == 0 || n > connector.BatchSize || n != len(offsets) || n != len(b.Timestamps) || n != len(b.Origins) {
		o.t.Errorf("Emit of %d values, %d offsets, %d timestamps, %d origins", n, len(offsets), len(b.Timestamps), len(b.Origins))
	}
	if slices.Contains(o.finished, id) {
		o.t.Errorf("Emit of split %s after FinishSplit", id)
	}
	o.batches = append(o.batches, id)
	o.types = append(o.types, types)
	for i, v := range b.Values {
		if b.Origins[i] != 0 {
			o.t.Errorf("the reader set an origin: %v", b.Origins[i])
		}
		o.records = append(o.records, got[T]{id, offsets[i], b.Timestamps[i], v})
	}
	b.Release()
	return nil
}

func (o *output[T]) EmitSide(d connector.DeadLetter) error {
	o.side = append(o.side, d)
	return nil
}

func (o *output[T]) FinishSplit(id string) error {
	if slices.Contains(o.finished, id) {
		o.t.Errorf("split %s finished twice", id)
	}
	o.finished = append(o.finished, id)
	return nil
}

// of returns the records of one split.
func (o *output[T]) of(id string) []got[T] {
	var of []got[T]
	for _, r := range o.records {
		if r.Split == id {
			of = append(of, r)
		}
	}
	return of
}

// values returns the values by split, in order.
func (o *output[T]) values() map[string][]T {
	values := map[string][]T{}
	for _, r := range o.records {
		values[r.Split] = append(values[r.Split], r.Value)
	}
	return values
}

// drops records what CountDropped is told.
type drops struct {
	mu      sync.Mutex
	reasons map[string][]string
}

func (d *drops) count(reason, sample string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reasons == nil {
		d.reasons = map[string][]string{}
	}
	d.reasons[reason] = append(d.reasons[reason], sample)
}

// subtask is one reader with its output.
type subtask[T any] struct {
	t      testing.TB
	reader *reader[T]
	out    *output[T]
	drops  *drops
	log    *testWriter
}

func newSubtask[T any](t testing.TB, src *Source[T]) *subtask[T] {
	t.Helper()
	s := &subtask[T]{t: t, out: &output[T]{t: t, pool: connector.NewPool[T]()}, drops: &drops{}, log: newTestWriter(t)}
	r, err := src.NewReader(t.Context(), connector.ReaderRuntime{
		Operator: "source", Parallelism: 1, Logger: s.log.logger(), CountDropped: s.drops.count,
	})
	if err != nil {
		t.Fatalf("NewReader: %v", err)
	}
	s.reader = r.(*reader[T])
	t.Cleanup(func() { s.close() })
	return s
}

// close closes the reader once.
func (s *subtask[T]) close() {
	if s.reader == nil {
		return
	}
	if err := s.reader.Close(); err != nil {
		s.t.Errorf("Close: %v", err)
	}
	s.reader = nil
}

var errPatience = errors.New("nothing happened for a minute")

// poll polls until enough says so or the input ends, which it reports.
func (s *subtask[T]) poll(enough func() bool) (ended bool, err error) {
	for !enough() {
		status, err := s.reader.Poll(s.out)
		switch {
		case err != nil:
			return false, err
		case status == connector.EndOfInput:
			return true, nil
		case status == connector.MoreAvailable:
			continue
		}
		timer := time.NewTimer(time.Minute)
		select {
		case <-s.reader.Available():
			timer.Stop()
		case <-timer.C:
			return false, errPatience
		}
	}
	return false, nil
}

// want polls until n records are there in all.
func (s *subtask[T]) want(n int) {
	s.t.Helper()
	if _, err := s.poll(func() bool { return len(s.out.records) >= n }); err != nil {
		s.t.Fatalf("%v, after %d of %d records", err, len(s.out.records), n)
	}
	if len(s.out.records) != n {
		s.t.Fatalf("got %d records, want %d", len(s.out.records), n)
	}
}

// toEnd polls to the end of input.
func (s *subtask[T]) toEnd() {
	s.t.Helper()
	if _, err := s.poll(func() bool { return false }); err != nil {
		s.t.Fatalf("%v, after %d records", err, len(s.out.records))
	}
}

// fails polls until an error, which it returns.
func (s *subtask[T]) fails() error {
	s.t.Helper()
	ended, err := s.poll(func() bool { return false })
	if ended || errors.Is(err, errPatience) {
		s.t.Fatalf("no error after %d records (ended: %v)", len(s.out.records), ended)
	}
	return err
}

// discover returns the splits of a source.
func discover[T any](t testing.TB, src *Source[T]) ([]connector.Split, error) {
	t.Helper()
	if err := src.Validate(); err != nil {
		t.Fatalf("Validate: %v", err)
	}
	e, err := src.NewEnumerator(t.Context(), connector.SourceRuntime{Operator: "source", Logger: testLogger(t)})
	if err != nil {
		t.Fatalf("NewEnumerator: %v", err)
	}
	defer e.Close()
	return e.Discover(t.Context())
}

// start discovers the splits of a source and gives them to one subtask.
func start[T any](t testing.TB, src *Source[T]) *subtask[T] {
	t.Helper()
	splits, err := discover(t, src)
	if err != nil {
		t.Fatalf("Discover: %v", err)
	}
	s := newSubtask(t, src)
	if err := s.reader.AddSplits(splits); err != nil {
		t.Fatalf("AddSplits: %v", err)
	}
	if src.Boundedness() == connector.Bounded {
		s.reader.NoMoreSplits()
	}
	return s
}

// at returns the options that reach a cluster.
func at(c *kafkatest.Cluster) SourceOption {
	return sourceOption(func(cfg *sourceConfig) {
		Brokers(c.Brokers()...).applySource(cfg)
		ClientOptions(c.Options()...).applySource(cfg)
	})
}

// sinkAt is at for sinks.
func sinkAt(c *kafkatest.Cluster) SinkOption {
	return sinkOption(func(cfg *sinkConfig) {
		Brokers(c.Brokers()...).applySink(cfg)
		ClientOptions(c.Options()...).applySink(cfg)
	})
}

// numbered returns n records for a partition, with values like "2/17".
func numbered(partition int32, n int) []kafkatest.Record {
	records := make([]kafkatest.Record, n)
	for i := range records {
		records[i] = kafkatest.Text(partition, int64(1000+i), "", fmt.Sprintf("%d/%d", partition, i))
	}
	return records
}

// testLogger writes to the test's log until the test ends.
func testLogger(t testing.TB) *slog.Logger {
	return newTestWriter(t).logger()
}

// testWriter writes to the test's log, and keeps what was written.
type testWriter struct {
	t     testing.TB
	ctx   context.Context
	mu    sync.Mutex
	lines []string
}

func newTestWriter(t testing.TB) *testWriter { return &testWriter{t: t, ctx: t.Context()} }

// logger returns a logger of lines without time.
func (w *testWriter) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (w *testWriter) Write(p []byte) (int, error) {
	line := strings.TrimSuffix(string(p), "\n")
	w.mu.Lock()
	w.lines = append(w.lines, line)
	w.mu.Unlock()
	if w.ctx.Err() == nil {
		w.t.Log(line)
	}
	return len(p), nil
}

// written returns the lines so far.
func (w *testWriter) written() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.lines)
}

// mentions reports what of want an error does not say.
func mentions(err error, want ...string) string {
	var missing []string
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			missing = append(missing, w)
		}
	}
	return strings.Join(missing, ", ")
}
