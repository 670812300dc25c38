package keyedop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/operator"
)

// timerCommand is ["reg_event", 10] or ["emit", "text"].
type timerCommand struct {
	do   string
	at   int64
	text string
}

func (c *timerCommand) UnmarshalJSON(data []byte) error {
	var argument json.RawMessage
	if err := json.Unmarshal(data, &[]any{&c.do, &argument}); err != nil {
		return err
	}
	if c.do == "emit" {
		return json.Unmarshal(argument, &c.text)
	}
	return json.Unmarshal(argument, &c.at)
}

type timerRule struct {
	Domain string         `json:"domain"`
	At     int64          `json:"at"`
	Key    *string        `json:"key"`
	Cmds   []timerCommand `json:"cmds"`
}

type timersCase struct {
	caseHead
	OnTimer []timerRule  `json:"onTimer"`
	Steps   []timersStep `json:"steps"`
}

type timersStep struct {
	Do               string            `json:"do"`
	Key              string            `json:"key"`
	Timestamp        *int64            `json:"ts"`
	Time             int64             `json:"t"`
	ProcessingTime   int64             `json:"processingTime"`
	Cmds             []timerCommand    `json:"cmds"`
	Emit             []json.RawMessage `json:"emit"`
	EventTimers      int               `json:"eventTimers"`
	ProcessingTimers int               `json:"processingTimers"`
}

// scripted is the function of the vectors. The value of a record is the number of the
// step whose commands it runs.
func (c timersCase) scripted(x *Context[string], out *operator.Emitter[result]) (Function[row], error) {
	seen := func(r result) {
		r["key"], r["ctxTimestamp"], r["watermark"] = x.Key(), optional(x.At), x.Watermark
		r["processingTime"] = x.Runtime().Timers.Now()
		out.Append(r, x.Timestamp, x.Origin)
	}
	run := func(cmds []timerCommand) error {
		for _, cmd := range cmds {
			switch cmd.do {
			case "reg_event":
				x.RegisterEventTimer(cmd.at)
			case "reg_processing":
				x.RegisterProcessingTimer(cmd.at)
			case "del_event":
				x.DeleteEventTimer(cmd.at)
			case "del_processing":
				x.DeleteProcessingTimer(cmd.at)
			case "emit":
				seen(result{"emit": cmd.text})
			default:
				return fmt.Errorf("unknown command %q", cmd.do)
			}
		}
		return nil
	}
	return Function[row]{
		Element: func(r row) error { return run(c.Steps[r.Value].Cmds) },
		Timer: func(at int64, d Domain) error {
			domain := "event"
			if d == ProcessingTime {
				domain = "processing"
			}
			seen(result{"timer": domain, "at": at})
			for _, rule := range c.OnTimer {
				if rule.Domain == domain && rule.At == at && (rule.Key == nil || *rule.Key == x.Key()) {
					if err := run(rule.Cmds); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}, nil
}

func timestampOf(t *int64) int64 {
	if t == nil {
		return math.MinInt64
	}
	return *t
}

func TestConformanceTimers(t *testing.T) {
	replay(t, "timers", func(t *testing.T, c timersCase) {
		h := newHarness(t)
		h.clock.early = true
		newOperator := func() operator.Operator { return NewProcess(c.scripted) }
		h.open(t, newOperator())
		for i, step := range c.Steps {
			watermarks := 0
			switch step.Do {
			case "element":
				must(t, h.send(0, step.Key, i, timestampOf(step.Timestamp)))
			case "watermark":
				must(t, h.op.Watermark(timestampOf(step.Timestamp)))
				watermarks = 1
			case "processing_time":
				must(t, h.clock.set(step.Time))
			case "checkpoint_restore":
				h.restore(t, newOperator(), step.ProcessingTime)
			default:
				t.Fatalf("step %d: unknown step %q", i, step.Do)
			}
			got, want := h.out.take(), parseResults(t, step.Emit)
			if n := len(got) - watermarks; watermarks == 1 {
				if n < 0 || got[n]["watermark"] != timestampOf(step.Timestamp) {
					t.Fatalf("step %d: the watermark was not forwarded behind everything: %v", i, got)
				}
				got = got[:n]
			}
			if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
				t.Errorf("step %d (%s) emitted (-want +got):\n%s", i, step.Do, diff)
			}
			if diff := cmp.Diff(firingTimes(want), firingTimes(got)); diff != "" {
				t.Errorf("step %d (%s): order of timers (-want +got):\n%s", i, step.Do, diff)
			}
			timers := h.op.(*process[string, row, result]).context.timers
			if e, p := timers.Event.Len(), timers.Processing.Len(); e != step.EventTimers || p != step.ProcessingTimers {
				t.Errorf("step %d (%s): %d event and %d processing timers, want %d and %d", i, step.Do, e, p, step.EventTimers, step.ProcessingTimers)
			}
			next, ok := timers.Event.Next()
			if told := h.metrics.EventTimers.Next.Value(); ok && told != next || !ok && told != math.MaxInt64 || ok && h.metrics.EventTimers.Registered.Value() != 1 {
				t.Errorf("step %d (%s): the next event timer is told to be at %d, it is at %d (%t)", i, step.Do, told, next, ok)
			}
		}
	})
}

// firingTimes lists the times of timers in the order in which they fired.
func firingTimes(results []result) []string {
	var times []string
	for _, r := range results {
		if at, ok := r["at"]; ok {
			times = append(times, fmt.Sprint(at))
		}
	}
	return times
}

func parseResults(t testing.TB, lines []json.RawMessage) []result {
	t.Helper()
	var results []result
	for _, raw := range lines {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var r result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return results
}
