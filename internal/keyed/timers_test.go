package keyed

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type timersCase struct {
	caseHead
	OnTimer []timerRule  `json:"onTimer"`
	Steps   []timersStep `json:"steps"`
}

// timerRule says what the function does when a timer fires; no key is any.
type timerRule struct {
	Domain string         `json:"domain"`
	At     int64          `json:"at"`
	Key    *string        `json:"key"`
	Cmds   []timerCommand `json:"cmds"`
}

type timerCommand [2]json.RawMessage

type timersStep struct {
	Do               string            `json:"do"`
	Key              string            `json:"key"`
	TS               *int64            `json:"ts"`
	T                int64             `json:"t"`
	Cmds             []timerCommand    `json:"cmds"`
	ProcessingTime   int64             `json:"processingTime"`
	Emit             []json.RawMessage `json:"emit"`
	EventTimers      int               `json:"eventTimers"`
	ProcessingTimers int               `json:"processingTimers"`
}

// timerRecord is one emitted record: of a firing timer or of an emit command.
type timerRecord struct {
	Timer          string `json:"timer"`
	Emit           string `json:"emit"`
	Key            string `json:"key"`
	At             int64  `json:"at"`
	CtxTimestamp   *int64 `json:"ctxTimestamp"`
	Watermark      int64  `json:"watermark"`
	ProcessingTime int64  `json:"processingTime"`
	TS             *int64 `json:"ts"`
}

// timerFunction is the keyed process function of the vectors over a service.
type timerFunction struct {
	t       *testing.T
	service *TimerService[string, struct{}]
	hash    func(string) uint64
	rules   []timerRule
	now     int64
	out     []timerRecord
}

func TestConformanceTimers(t *testing.T) {
	replay(t, "timers", func(t *testing.T, c timersCase) {
		f := &timerFunction{t: t, service: NewTimerService[string, struct{}](), hash: hasherOf[string](t), rules: c.OnTimer}
		for i, s := range c.Steps {
			f.out = nil
			f.step(s)
			var want []timerRecord
			for _, raw := range s.Emit {
				var r timerRecord
				unmarshalStrict(t, raw, &r)
				want = append(want, r)
			}
			if diff := cmp.Diff(tiesByKey(want), tiesByKey(f.out)); diff != "" {
				t.Errorf("step %d, %s: (-want +got):\n%s", i, s.Do, diff)
			}
			if got := [2]int{f.service.Event.Len(), f.service.Processing.Len()}; got != [2]int{s.EventTimers, s.ProcessingTimers} {
				t.Errorf("step %d, %s: %v timers, want %d and %d", i, s.Do, got, s.EventTimers, s.ProcessingTimers)
			}
		}
	})
}

func (f *timerFunction) step(s timersStep) {
	var err error
	switch s.Do {
	case "element":
		f.run(s.Key, s.TS, s.TS, s.Cmds)
	case "watermark":
		err = f.service.AdvanceWatermark(*s.TS, func(tm Timer[string, struct{}]) error {
			return f.onTimer("event", tm, &tm.At)
		})
	case "processing_time":
		f.now = s.T
		err = f.service.AdvanceProcessingTime(s.T, func(tm Timer[string, struct{}]) error {
			return f.onTimer("processing", tm, nil)
		})
	case "checkpoint_restore":
		restored := NewTimerService[string, struct{}]()
		for tm := range f.service.Event.All() {
			restored.Event.Register(tm)
		}
		for tm := range f.service.Processing.All() {
			restored.Processing.Register(tm)
		}
		f.service, f.now = restored, s.ProcessingTime
	default:
		f.t.Fatalf("unknown step %q", s.Do)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *timerFunction) onTimer(domain string, tm Timer[string, struct{}], ts *int64) error {
	f.out = append(f.out, timerRecord{
		Timer: domain, Key: tm.Key, At: tm.At, CtxTimestamp: &tm.At,
		Watermark: f.service.Watermark(), ProcessingTime: f.now, TS: ts,
	})
	for _, r := range f.rules {
		if r.Domain == domain && r.At == tm.At && (r.Key == nil || *r.Key == tm.Key) {
			f.run(tm.Key, &tm.At, ts, r.Cmds)
		}
	}
	return nil
}

func (f *timerFunction) run(key string, ctx, ts *int64, cmds []timerCommand) {
	for _, cmd := range cmds {
		var name string
		unmarshalStrict(f.t, cmd[0], &name)
		if name == "emit" {
			r := timerRecord{Key: key, CtxTimestamp: ctx, Watermark: f.service.Watermark(), ProcessingTime: f.now, TS: ts}
			unmarshalStrict(f.t, cmd[1], &r.Emit)
			f.out = append(f.out, r)
			continue
		}
		tm := Timer[string, struct{}]{Hash: f.hash(key), Key: key}
		unmarshalStrict(f.t, cmd[1], &tm.At)
		switch name {
		case "reg_event":
			f.service.Event.Register(tm)
		case "del_event":
			f.service.Event.Delete(tm)
		case "reg_processing":
			f.service.Processing.Register(tm)
		case "del_processing":
			f.service.Processing.Delete(tm)
		default:
			f.t.Fatalf("unknown command %q", name)
		}
	}
}

// tiesByKey sorts neighbouring timers of one time by key: their order is not
// defined.
func tiesByKey(records []timerRecord) []timerRecord {
	for from := 0; from < len(records); {
		to := from + 1
		for to < len(records) && records[to].Timer != "" && records[to].At == records[from].At {
			to++
		}
		slices.SortStableFunc(records[from:to], func(a, b timerRecord) int {
			return slices.Compare([]byte(a.Key), []byte(b.Key))
		})
		from = to
	}
	return records
}

// Callbacks register and delete what they like: the service does what a sorted
// set does that is asked for its first timer again and again.
func TestTimerServiceAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		service := NewTimerService[int32, int8]()
		model := timerModel{}
		nearby := func(at int64) *rapid.Generator[testTimer] {
			return rapid.Custom(func(t *rapid.T) testTimer {
				return makeTimer(at+rapid.Int64Range(-20, 20).Draw(t, "offset"), rapid.Int32Range(0, 99).Draw(t, "key"), 0)
			})
		}
		crowd := rapid.SampledFrom([]int32{1, 10, frontSize, leafSize + 10}).Draw(t, "timers of one time")
		for at := range int64(3) {
			for key := range crowd {
				tm := makeTimer(at*7, key, 0)
				service.Event.Register(tm)
				model[tm] = true
			}
		}
		calls := 0
		for range rapid.IntRange(1, 5).Draw(t, "advances") {
			watermark := rapid.Int64Range(-10, 60).Draw(t, "watermark")
			err := service.AdvanceWatermark(watermark, func(tm testTimer) error {
				want, ok := model.next()
				if !ok || tm.At != want || !model[tm] || tm.At > watermark || service.Watermark() != watermark {
					t.Fatalf("%v fired at %d, want one at %d", tm, service.Watermark(), want)
				}
				delete(model, tm)
				if calls++; calls > 3000 || calls%17 > 3 {
					return nil
				}
				for _, add := range rapid.SliceOfN(nearby(tm.At), 0, 3).Draw(t, "register") {
					service.Event.Register(add)
					model[add] = true
				}
				for _, gone := range rapid.SliceOfN(nearby(tm.At), 0, 3).Draw(t, "delete") {
					service.Event.Delete(gone)
					delete(model, gone)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if at, ok := model.next(); ok && at <= watermark {
				t.Fatalf("a timer at %d did not fire at %d", at, watermark)
			}
			if service.Event.Len() != len(model) {
				t.Fatalf("%d timers, want %d", service.Event.Len(), len(model))
			}
		}
	})
}

func TestTimerErrorEndsAdvance(t *testing.T) {
	s := NewTimerService[int32, int8]()
	for at := range int64(3) {
		s.Processing.Register(makeTimer(at, 1, 0))
	}
	want := errors.New("no")
	fired := 0
	err := s.AdvanceProcessingTime(math.MaxInt64, func(testTimer) error {
		if fired++; fired == 2 {
			return want
		}
		return nil
	})
	if err != want || fired != 2 || s.Processing.Len() != 1 {
		t.Errorf("error %v after %d timers, %d left", err, fired, s.Processing.Len())
	}
	if at, ok := s.Processing.Next(); !ok || at != 2 {
		t.Errorf("next %d %v, want 2", at, ok)
	}
}
