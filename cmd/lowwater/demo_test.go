//go:build synctests

package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// play plays a scenario in virtual time and returns what it wrote, as text and act
// by act.
func play(t *testing.T, name string, acts int) (string, transcript) {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		s, err := scenarioNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		c := &demoCommand{ActTime: 3 * time.Second}
		if err := c.play(t.Context(), s, &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	})
	if t.Cleanup(func() { logIfFailed(t, out.String()) }); strings.Contains(out.String(), "\x1b") {
		t.Error("cursor control in what is not a terminal")
	}
	parsed := parseTranscript(t, out.String())
	if s, _ := scenarioNamed(name); len(parsed) != acts || s.acts != acts {
		t.Fatalf("%d acts, and it says %d; want %d", len(parsed), s.acts, acts)
	}
	wantAllShown(t, parsed)
	return out.String(), parsed
}

func logIfFailed(t *testing.T, text string) {
	if t.Failed() {
		t.Log("\n" + text)
	}
}

// wantStall checks that an act without results had records, and which inputs held
// the minimum at its end.
func wantStall(t *testing.T, a *actText, holders ...string) {
	t.Helper()
	first, last := a.first(), a.last()
	if first.windows != last.windows || first.watermark != last.watermark || last.records-first.records < 60 {
		t.Errorf("%s: from %+v to %+v, want records but no results and no progress of the watermark", a.title, first, last)
	}
	var minimum []string
	for name, row := range last.rows {
		if row.minimum {
			minimum = append(minimum, name)
		}
	}
	slices.Sort(minimum)
	if diff := cmp.Diff(holders, minimum); diff != "" {
		t.Errorf("%s: who holds the minimum (-want +got):\n%s", a.title, diff)
	}
	arrived := a.numbers(t, `no window fired for [3-9]\.\d s while (\d+) records arrived\.`)[0]
	if arrived < 100 || arrived > last.records {
		t.Errorf("%s: %d records arrived without a result, of %d", a.title, arrived, last.records)
	}
}

// wantFlow checks that windows fired, and that the act says how many.
func wantFlow(t *testing.T, a *actText) {
	t.Helper()
	n := a.numbers(t, `(\d+) windows fired while (\d+) records arrived\.`)
	if n[0] < 2 || n[0] != len(a.windows) || n[1] > a.last().records {
		t.Errorf("%s: it says %v, shows %d windows and at last %+v", a.title, n, len(a.windows), a.last())
	}
}

// wantAllShown checks that every table counts the windows that were shown above it.
// Acts that go on with the job of the act before go on counting.
func wantAllShown(t *testing.T, acts transcript) {
	t.Helper()
	before := 0
	for _, a := range acts {
		for i, tick := range a.ticks {
			if i == 0 && tick.windows != before+tick.shown {
				before = 0 // a new job
			}
			if tick.windows != before+tick.shown {
				t.Errorf("%s: a table counts %d windows, %d have been shown", a.title, tick.windows, before+tick.shown)
			}
		}
		before += len(a.windows)
		if a.last().shown != len(a.windows) {
			t.Errorf("%s: windows are shown behind the last table", a.title)
		}
	}
}

// wantSameWindows checks that windows that two acts have shown have the same counts.
func wantSameWindows(t *testing.T, a, b *actText, atLeast int) {
	t.Helper()
	both := 0
	for start, counts := range a.windows {
		if again, ok := b.windows[start]; ok {
			both++
			if again != counts {
				t.Errorf("window %s: %q in act %q, %q in act %q", start, counts, a.title, again, b.title)
			}
		}
	}
	if both < atLeast {
		t.Errorf("%d windows are in act %q and act %q, want at least %d", both, a.title, b.title, atLeast)
	}
}

func TestQuietPartition(t *testing.T) {
	_, acts := play(t, "quiet-partition", 4)
	flow, stall, idle, late := acts[0], acts[1], acts[2], acts[3]
	wantFlow(t, flow)
	wantStall(t, stall, "orders-2")
	if row := stall.last().rows["orders-2"]; row.state != "active" || row.rate != 0 || row.watermark != stall.last().watermark {
		t.Errorf("the quiet partition is %+v, want it active, without records and with the watermark of the windows", row)
	}
	wantFlow(t, idle)
	wantSameWindows(t, flow, idle, 2)
	if row := idle.last().rows["orders-2"]; row.state != "idle" || row.watermark != stall.last().watermark {
		t.Errorf("with idleness the quiet partition is %+v, want it idle at %s", row, stall.last().watermark)
	}
	if got := idle.last().watermark; got <= stall.last().watermark {
		t.Errorf("with idleness the watermark is %s, want it to pass %s", got, stall.last().watermark)
	}
	// The late order is the next after those of the act before.
	offset := late.numbers(t, `order \d+, offset (\d+) of orders-2, is in the late output, (?:[3-9]|[1-9]\d)\.\d s behind the watermark\.`)[0]
	before := idle.last().rows["orders-2"].offsets
	if end, _, _ := strings.Cut(before, "/"); number(t, end) != offset {
		t.Errorf("the late order has offset %d, want that behind %s", offset, before)
	}
}

func TestOverParallel(t *testing.T) {
	text, acts := play(t, "over-parallel", 3)
	if flat := strings.Join(strings.Fields(text), " "); strings.Count(flat, "warning: parallelism 8 but only 3 splits") != 1 ||
		!strings.Contains(flat, "add WithIdleness") {
		t.Error("want one warning before the first act, with its fixes")
	}
	var surplus string
	for name := range acts[0].last().rows {
		if strings.HasPrefix(name, "subtasks") {
			surplus = name
		}
	}
	// The five are neighbors, where 0 follows 7.
	if five := []string{"3-7", "0, 4-7", "0-1, 5-7", "0-2, 6-7", "0-3, 7", "0-4", "1-5", "2-6"}; !slices.Contains(five, strings.TrimPrefix(surplus, "subtasks ")) {
		t.Errorf("without a split: %q, want five subtasks in one row", surplus)
	}
	wantStall(t, acts[0], surplus)
	if row := acts[1].last().rows[surplus]; row.state != "idle" || row.minimum {
		t.Errorf("with idleness %s are %+v, want them idle", surplus, row)
	}
	wantFlow(t, acts[1])
	wantFlow(t, acts[2])
	wantSameWindows(t, acts[1], acts[2], 3)
	if n := len(acts[2].last().rows); n != 3 {
		t.Errorf("%d inputs with three subtasks, want 3", n)
	}
}

func TestUnion(t *testing.T) {
	_, acts := play(t, "union", 3)
	wantFlow(t, acts[0])
	wantStall(t, acts[1], "returns-0", "returns-1", "returns-2")
	wantFlow(t, acts[2])
	wantSameWindows(t, acts[0], acts[2], 2)
	for name, row := range acts[2].last().rows {
		want := "active"
		if strings.HasPrefix(name, "returns") {
			want = "idle"
		}
		if row.state != want {
			t.Errorf("%s is %s in the end, want %s", name, row.state, want)
		}
	}
}

func TestStrategyAfterSource(t *testing.T) {
	_, acts := play(t, "strategy-after-source", 3)
	n := acts[0].numbers(t, `(\d+) orders of shop 2 were read; (\d+) were dropped and (\d+) counted\.`)
	if read, dropped, counted := n[0], n[1], n[2]; dropped < 40 || counted > 10 || read != dropped+counted {
		t.Errorf("read %d, dropped %d, counted %d: want almost all dropped, and none missing", read, dropped, counted)
	}
	if n := acts[1].numbers(t, `(\d+) orders came out of the late output, (\d+) were dropped\.`); n[0] < 40 || n[1] != 0 {
		t.Errorf("%d orders in the late output, %d dropped", n[0], n[1])
	}
	if n := acts[2].numbers(t, `(\d+) orders of shop 2 were counted and (\d+) orders were late`); n[0] < 60 || n[1] != 0 {
		t.Errorf("strategy in the source: %d orders of shop 2 counted, %d late", n[0], n[1])
	}
	for start, counts := range acts[2].windows {
		if !strings.Contains(counts, "shop-2") {
			t.Errorf("strategy in the source: window %s has %s, and nothing of shop 2", start, counts)
		}
	}
}

func TestProcessingTime(t *testing.T) {
	_, acts := play(t, "processing-time", 2)
	wantStall(t, acts[0], "orders-2")
	wantFlow(t, acts[1])
	if n := acts[1].numbers(t, `has (\d+) orders, and the shops wrote no more than (\d+) a second`); n[0] <= n[1] {
		t.Errorf("the fullest window has %d orders, want more than %d", n[0], n[1])
	}
}

// TestLastAct: with --act the demo ends after that act, and --hold leaves the job as it is
// in it.
func TestLastAct(t *testing.T) {
	s, err := scenarioNamed("quiet-partition")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &demoCommand{ActTime: 3 * time.Second, Act: 1}
		if err := c.play(t.Context(), s, &out); err != nil {
			t.Fatal(err)
		}
		if n := len(parseTranscript(t, out.String())); n != 1 || !strings.Contains(out.String(), "1 act, as promised.") {
			t.Errorf("%d acts, want 1:\n%s", n, &out)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		var out safeBuffer
		ended := make(chan error, 1)
		go func() {
			c := &demoCommand{ActTime: 3 * time.Second, Act: 2, Hold: true}
			ended <- c.play(ctx, s, &out)
		}()
		<-time.After(10 * time.Minute)
		select {
		case err := <-ended:
			t.Fatalf("ended with %v before an interrupt:\n%s", err, out.String())
		default:
		}
		acts := parseTranscript(t, out.String())
		if len(acts) != 2 || !strings.Contains(out.String(), "goes on until you interrupt it") {
			t.Errorf("%d acts, want 2:\n%s", len(acts), out.String())
		}
		wantStall(t, acts[1], "orders-2")
		interrupt()
		if err := <-ended; err != nil {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// TestTopicNames: on an embedded broker topics have the names that the demo calls them; on
// one that others use no other run has the same.
func TestTopicNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := newBroker(t.Context(), nil, []string{ordersTopic})
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		network := b.options
		if !slices.Equal(b.topics, []string{"orders"}) || b.split("orders-2") != "orders-2" {
			t.Errorf("topics %q of an embedded broker, split %q", b.topics, b.split("orders-2"))
		}
		mine := &broker{addrs: b.addrs, options: network, prefix: ownPrefix(), admin: b.admin}
		if err := mine.createTopic(t.Context(), ordersTopic); err != nil {
			t.Fatal(err)
		}
		name := mine.topics[0]
		if !strings.HasPrefix(name, "lowwater-demo-") || !strings.HasSuffix(name, "-orders") || name == ownPrefix()+"orders" || mine.split(name+"-2") != "orders-2" {
			t.Errorf("topic %q, split %q", name, mine.split(name+"-2"))
		}
	})
}

// withOrders runs f in a bubble with a job that counts the orders of three open
// shops.
func withOrders(t *testing.T, f func(t *testing.T, s *stage, r *run)) {
	synctest.Test(t, func(t *testing.T) {
		b, err := newBroker(t.Context(), nil, []string{ordersTopic})
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		shops, err := openShops(b)
		if err != nil {
			t.Fatal(err)
		}
		defer shops.close()
		shops.set(true, ordersTopic, 0, 1, 2)
		s := &stage{screen: newScreen(t.Output()), broker: b, shops: shops, actTime: time.Second}
		r := s.newRun()
		r.show(perType(r.read(ordersTopic, strategy())))
		if err := r.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer r.end()
		f(t, s, r)
	})
}

// TestBrokenPromise: an act that does not show what it promised is an error that
// says what happened instead.
func TestBrokenPromise(t *testing.T) {
	withOrders(t, func(t *testing.T, s *stage, r *run) {
		begin := time.Now()
		_, err := s.watch(t.Context(), r, expectStall, s.stalls(named(quiet)))
		if err == nil || !strings.Contains(err.Error(), "expected "+expectStall) || !strings.Contains(err.Error(), "windows fired") {
			t.Errorf("error %v, want what was expected and what happened", err)
		}
		if took := time.Since(begin); took < patience || took > 2*patience {
			t.Errorf("it took %v, want a little more than %v", took, patience)
		}
	})
}

func TestMalformedOrder(t *testing.T) {
	withOrders(t, func(t *testing.T, s *stage, r *run) {
		record := &kgo.Record{Topic: s.broker.topic(ordersTopic), Partition: 1, Value: []byte(`{"number": "many"}`)}
		if err := s.shops.client.ProduceSync(t.Context(), record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		_, err := s.watch(t.Context(), r, expectFlow, flows)
		if err == nil || !strings.Contains(err.Error(), s.broker.topic(ordersTopic)+"-1@") {
			t.Errorf("error %v, want one that names the topic, partition and offset", err)
		}
	})
}

func TestInterrupted(t *testing.T) {
	withOrders(t, func(t *testing.T, s *stage, r *run) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := s.watch(ctx, r, expectFlow, flows); err != context.DeadlineExceeded {
			t.Errorf("error %v, want the cause of the context's end", err)
		}
	})
}

// TestScenariosAreListed: the help text names every scenario.
func TestScenariosAreListed(t *testing.T) {
	help := (&demoCommand{}).Help()
	for _, s := range scenarios {
		if !strings.Contains(help, s.name) || !strings.Contains(help, s.summary) {
			t.Errorf("the help text lacks %s", s.name)
		}
	}
}
