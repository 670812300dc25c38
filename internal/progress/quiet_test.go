package progress

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/status"
)

// events is an Output that remembers.
type events []string

func (e *events) Watermark(t int64) error {
	*e = append(*e, fmt.Sprint("watermark ", t))
	return nil
}

func (e *events) Status(idle bool) error {
	*e = append(*e, fmt.Sprint("idle ", idle))
	return nil
}

func (e *events) take() []string {
	got := *e
	*e = nil
	return got
}

func quietSource(t *testing.T, strategy eventtime.WatermarkStrategy[int]) (*Source[int], *events) {
	t.Helper()
	out := &events{}
	s, err := NewSource(strategy, SourceConfig{}, 0, out)
	if err != nil {
		t.Fatal(err)
	}
	return s, out
}

func addSplit(t *testing.T, s *Source[int], id string) *Split[int] {
	t.Helper()
	sp, err := s.AddSplit(id, 0)
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

func expect(t *testing.T, out *events, want ...string) {
	t.Helper()
	if got := out.take(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func periodic(t *testing.T, s *Source[int], now int64) {
	t.Helper()
	if err := s.Periodic(now); err != nil {
		t.Fatal(err)
	}
}

func TestQuietSplitDoesNotHoldTheWatermark(t *testing.T) {
	strategy := eventtime.ForMonotonousTimestamps[int]().WithBrokerIdleness(time.Second)
	s, out := quietSource(t, strategy)
	a, b := addSplit(t, s, "a"), addSplit(t, s, "b")
	a.OnBatch([]int{1}, []int64{101})
	periodic(t, s, 200)
	expect(t, out) // b has had no record and nothing is known about it

	b.SetQuiet(true)
	periodic(t, s, 400)
	expect(t, out, "watermark 100")
	if b.State() != status.SplitIdle || b.IdleBy() != status.IdleByBroker {
		t.Errorf("the quiet split is %v by %q", b.State(), b.IdleBy())
	}

	b.SetQuiet(false) // its broker no longer answers
	a.OnBatch([]int{1}, []int64{201})
	periodic(t, s, 600)
	expect(t, out)
	if b.State() != status.SplitActive || b.IdleBy() != status.NotIdle {
		t.Errorf("a split that nobody knows anything of is %v by %q", b.State(), b.IdleBy())
	}

	b.SetQuiet(true)
	periodic(t, s, 800)
	expect(t, out, "watermark 200")
	b.OnBatch([]int{1}, []int64{151}) // late, but it counts from here on
	a.OnBatch([]int{1}, []int64{301})
	periodic(t, s, 1000)
	expect(t, out)
	b.OnBatch([]int{1}, []int64{251})
	periodic(t, s, 1200)
	expect(t, out, "watermark 250")
}

func TestSubtaskIsIdleWhileAllItsSplitsAreQuiet(t *testing.T) {
	strategy := eventtime.ForMonotonousTimestamps[int]().WithBrokerIdleness(time.Second)
	s, out := quietSource(t, strategy)
	a, b := addSplit(t, s, "a"), addSplit(t, s, "b")
	periodic(t, s, 200)
	expect(t, out)
	a.OnBatch([]int{1}, []int64{101})
	b.OnBatch([]int{1}, []int64{201})
	periodic(t, s, 400)
	expect(t, out, "watermark 100")

	a.SetQuiet(true)
	b.SetQuiet(true)
	periodic(t, s, 600)
	expect(t, out, "watermark 200", "idle true")
	periodic(t, s, 800)
	expect(t, out)

	a.SetQuiet(false)
	expect(t, out, "idle false")
	a.OnBatch([]int{1}, []int64{301})
	periodic(t, s, 1000)
	expect(t, out, "watermark 300")
}

func TestSubtaskWithoutSplitsIsIdleByTheBrokersKnowledge(t *testing.T) {
	s, out := quietSource(t, eventtime.ForMonotonousTimestamps[int]().WithBrokerIdleness(time.Second))
	periodic(t, s, 200)
	expect(t, out, "idle true")
	a := addSplit(t, s, "a")
	periodic(t, s, 400)
	a.OnBatch([]int{1}, []int64{101})
	periodic(t, s, 600)
	expect(t, out, "idle false", "watermark 100")
}

func TestTimeoutAndBrokerKnowledgeCombine(t *testing.T) {
	strategy := eventtime.ForMonotonousTimestamps[int]().WithIdleness(time.Second).WithBrokerIdleness(time.Hour)
	s, out := quietSource(t, strategy)
	a, b := addSplit(t, s, "a"), addSplit(t, s, "b")
	for now := int64(0); now <= 2000; now += 200 {
		a.OnBatch([]int{1}, []int64{101 + now})
		periodic(t, s, now)
	}
	if b.IdleBy() != status.IdleByTimeout {
		t.Errorf("the silent split is idle by %q, want the timeout", b.IdleBy())
	}
	b.SetQuiet(true)
	a.SetQuiet(true)
	periodic(t, s, 2200)
	if a.IdleBy() != status.IdleByBroker {
		t.Errorf("the quiet split is idle by %q, want the broker", a.IdleBy())
	}
	if got := out.take(); got[len(got)-1] != "idle true" {
		t.Errorf("got %q, want the subtask idle at the end", got)
	}
}
