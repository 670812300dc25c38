package windowed

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// deaf is an output without consumers of side outputs.
type deaf struct{ *recorder }

func (deaf) HasSide(string) bool { return false }

// lateRun sends an operator of 10 ms windows a record that is in time and two that are
// late, and returns its harness, what it logged and the log's lines after Close.
func lateRun(t *testing.T, late string, output func(*recorder) operator.Output) (h *harness, whileOpen, log string) {
	t.Helper()
	var buffer bytes.Buffer
	h = openHarness(t, Aggregate[string](specOf[element](Options{Assigner: window.Tumbling(ms(10))}), window.Count[element]()))
	op := Aggregate[string](specOf[element](Options{Assigner: window.Tumbling(ms(10)), LateOutput: late}), window.Count[element]())
	rt := h.runtime()
	rt.Logger = slog.New(slog.NewTextHandler(&buffer, nil))
	h.op = op
	must(t, op.Open(rt, output(h.out)))
	must(t, op.Watermark(1500))
	must(t, h.process(
		timed{element{"user 1", 1}, 500, connector.MakeOrigin(1, 42)},
		timed{element{"user 1", 1}, 1501, connector.MakeOrigin(1, 43)},
		timed{element{"user 2", 1}, 400, connector.MakeOrigin(1, 44)}))
	whileOpen = buffer.String()
	must(t, op.Close())
	return h, whileOpen, buffer.String()
}

// TestFirstDroppedLateRecordIsTold: one record by name, the rest as a number at the end.
func TestFirstDroppedLateRecordIsTold(t *testing.T) {
	for _, test := range []struct {
		name, late, advice string
		output             func(*recorder) operator.Output
	}{
		{"no late output", "", "SideOutputLate", func(r *recorder) operator.Output { return deaf{r} }},
		{"late output without consumer", "late", "consume the late output", func(r *recorder) operator.Output { return deaf{r} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, whileOpen, log := lateRun(t, test.late, test.output)
			if strings.Count(whileOpen, "\n") != 1 || strings.Count(log, "\n") != 2 {
				t.Fatalf("the log should have one line before Close and one of it:\n%s", log)
			}
			for _, part := range []string{
				"level=WARN", `record="` + h.runtime().Describe(connector.MakeOrigin(1, 42)) + `"`, `key="user 1"`,
				"timestamp=1970-01-01T00:00:00.500Z", "watermark=1970-01-01T00:00:01.500Z", "late=1s",
				"AllowedLateness", "larger bound", test.advice,
			} {
				if !strings.Contains(whileOpen, part) {
					t.Errorf("the log does not say %q:\n%s", part, whileOpen)
				}
			}
			if !strings.Contains(log, "records=2") {
				t.Errorf("the log does not say that 2 records were dropped:\n%s", log)
			}
			if late, dropped := h.metrics.NumLateRecords.Value(), h.metrics.NumLateRecordsDropped.Value(); late != 2 || dropped != 2 {
				t.Errorf("%d late records of which %d dropped, want 2 and 2", late, dropped)
			}
		})
	}
}

func TestLateRecordsThatAreConsumedAreNotTold(t *testing.T) {
	h, _, log := lateRun(t, "late", func(r *recorder) operator.Output { return r })
	if log != "" {
		t.Errorf("logged %s", log)
	}
	if dropped := h.metrics.NumLateRecordsDropped.Value(); dropped != 0 || len(h.out.sides["late"]) != 2 {
		t.Errorf("%d records dropped and %d in the late output, want 0 and 2", dropped, len(h.out.sides["late"]))
	}
}

// TestLatenessInTheLogDoesNotWrap: records without a timestamp are late in sessions, and
// everything is at the end of input.
func TestLatenessInTheLogDoesNotWrap(t *testing.T) {
	for _, test := range []struct {
		timestamp, watermark int64
		want                 time.Duration
	}{
		{1000, 1000, 0},
		{-500, 1000, 1500 * time.Millisecond},
		{0, math.MaxInt64, math.MaxInt64 / time.Millisecond * time.Millisecond},
		{math.MinInt64, 0, math.MaxInt64 / time.Millisecond * time.Millisecond},
		{math.MinInt64, math.MaxInt64, math.MaxInt64 / time.Millisecond * time.Millisecond},
	} {
		if got := behindAttr(test.timestamp, test.watermark).Value.Duration(); got != test.want {
			t.Errorf("%d at watermark %d: late by %v, want %v", test.timestamp, test.watermark, got, test.want)
		}
	}
}
