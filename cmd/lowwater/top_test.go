package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/flink"
)

func TestTopOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes four seconds: a cluster gets time to fetch its metrics")
	}
	t.Parallel()
	url := recordedCluster(t, nil)
	stdout, _ := runCLI(t, exitOK, "top", "--once", "--url", url)
	lines := strings.SplitAfter(strings.ReplaceAll(stdout, url, "URL"), "\n")
	// The answer is package why's, in as many lines as it takes.
	rest := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "smallest") })
	if rest < 2 || !strings.Contains(strings.Join(lines[1:rest], ""), "partition 2 of topic quiet_a") {
		t.Fatalf("no answer that blames partition 2:\n%s", stdout)
	}
	want := `lowwater top · quiet · running for 15 min 48 s · 12:06:38.414 UTC · URL
smallest watermark 11:50:46.937, 15 min 51 s behind: quiet_a-2 > quiet.a[1] > count per key

VERTEX                       PAR  LOW WATERMARK       BEHIND         BUSY      BLOCKED  IN/S  OUT/S  LATE
quiet.a                        2   11:50:46.937  15 min 51 s  ░░░░░░   1%  ░░░░░░   0%  2000   2000
count per key > out: Writer    2   11:50:46.937  15 min 51 s  ░░░░░░   1%  ░░░░░░   0%  2000      ?     0

  SPLIT      SUBTASK  STATE      WATERMARK       BEHIND  UNCHANGED   NEXT  LAG
* quiet_a-2  1        active  11:50:46.937  15 min 51 s   ≥ 20.0 s     20    0
  quiet_a-0  1        active  12:06:37.338        1.0 s      0.0 s  68725    0
  quiet_a-1  0        active  12:06:37.338        1.0 s      0.0 s  68725    0
`
	if diff := cmp.Diff(want, lines[0]+strings.Join(lines[rest:], "")); diff != "" {
		t.Errorf("frame (-want +got):\n%s", diff)
	}
}

// TestTopAsksOurServer, which has looked since the start of the job.
func TestTopAsksOurServer(t *testing.T) {
	report := `{"severity": "stall", "findings": [{"code": "quiet-input", "severity": "stall", "answer": "The server knows."}]}`
	out, _ := runCLI(t, exitOK, "top", "--once", "--url", ownServer(t, map[string]string{"graph": "{}", "why": report}))
	if !strings.Contains(out, "\nThe server knows.\nsmallest watermark ") {
		t.Errorf("output:\n%s", out)
	}
}

// openTop returns what top looks with, at the only job of a cluster.
func openTop(t *testing.T, url string) *top {
	t.Helper()
	client, err := flink.NewClient(flink.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	job, err := client.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	collector, err := client.Open(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return &top{client: client, job: collector}
}

// TestTopBeginsWithTheServersAnswer: the first frame does not say that nothing is wrong.
func TestTopBeginsWithTheServersAnswer(t *testing.T) {
	t.Parallel()
	report := `{"severity": "stall", "findings": [{"code": "quiet-input", "severity": "stall", "answer": "The server knows."}]}`
	top := openTop(t, ownServer(t, map[string]string{"graph": "{}", "why": report}))
	if err := top.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := top.frame(); f.answer != "The server knows." || !f.alarm {
		t.Errorf("the first frame says %q, alarm %t", f.answer, f.alarm)
	}
}

// TestTopFollows: a job that is started again under its name, with another id, is shown
// further, and what was remembered of the first is not taken for the second's.
func TestTopFollows(t *testing.T) {
	t.Parallel()
	url, restart := restartingCluster(t)
	top := openTop(t, url)
	if err := top.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	restart()
	if err := top.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id := top.job.Job().ID; id != restartedAs {
		t.Errorf("top shows job %s, want %s", id, restartedAs)
	}
	if f := top.frame(); !strings.Contains(f.splits[0][5], "≥ 0.0 s") {
		t.Errorf("the first split: %q", f.splits[0])
	}
}

func TestTopWithoutACluster(t *testing.T) {
	for _, args := range [][]string{{"top", "--url", "http://127.0.0.1:1"}, {"top", "--once", "--url", "nonsense"}} {
		var stdout, stderr strings.Builder
		if code := cli(args, &stdout, &stderr); code != exitBlind || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, stderr %q", args, code, &stderr)
		}
	}
}

// evidenceAt is a job with a source of two splits in front of a window, looked at every
// second until split 0 has been at watermark for some of them.
func evidenceAt(watermarks ...int64) []*why.Evidence {
	e := &why.Evidence{
		Job: "orders", StartedMillis: why.Know[int64](0), Means: why.Means{Engine: true, SplitGauges: true},
		Operators: []why.Operator{
			{ID: "orders", Name: "orders", Vertex: "v1", Kind: why.KindSource, Parallelism: 1, Source: &why.Source{Topics: []string{"orders"}}},
			{ID: "count", Name: "count", Vertex: "v2", Kind: why.KindWindow, Parallelism: 1,
				Inputs: []why.Input{{Edges: []why.Edge{{From: "orders", Ship: why.ShipHash}}}}},
			{ID: "print", Name: "print", Vertex: "v2", Kind: why.KindPlain, Parallelism: 1,
				Inputs: []why.Input{{Edges: []why.Edge{{From: "count", Ship: why.ShipForward}}}}},
		},
	}
	var looks []*why.Evidence
	for i, w := range watermarks {
		n := int64(i)
		e.AtMillis = 1_000_000 + n*1000
		known := why.Know(w)
		split := func(p int32, w int64) why.Split {
			return why.Split{Source: "orders", Topic: "orders", Partition: p, Subtask: why.Know(0), Watermark: why.Know(w),
				State: why.Know(why.SplitActive), PositionOffset: why.Know(10 * n), Lag: why.Know[int64](0)}
		}
		e.History = append(e.History, why.Snapshot{
			AtMillis: e.AtMillis,
			Subtasks: []why.Subtask{
				{Operator: "orders", OutputWatermark: known, RecordsOut: why.Know(40 * n)},
				{Operator: "count", InputWatermark: known, OutputWatermark: known, RecordsIn: why.Know(40 * n), RecordsOut: why.Know(n / 2), LateDropped: why.Know[int64](3)},
				{Operator: "print", InputWatermark: known, RecordsIn: why.Know(n / 2)},
			},
			Splits: []why.Split{split(0, w), split(1, e.AtMillis-500)},
			Tasks:  []why.Task{{Vertex: "v1", BusyMillis: why.Know[int64](500), BackPressuredMillis: why.Know[int64](0)}, {Vertex: "v2", BusyMillis: why.Know[int64](1000)}},
		})
		seen := *e
		seen.History = slices.Clone(e.History)
		looks = append(looks, &seen)
	}
	return looks
}

// stalledFrame is what is drawn after the looks of evidenceAt, with a diagnosis that
// blames split 0.
func stalledFrame() *frame {
	var s stood
	var last *why.Evidence
	for _, e := range evidenceAt(990_000, 995_000, 995_000, 995_000) {
		s.note(e)
		last = e
	}
	d := &why.Diagnosis{Findings: []why.Finding{{Code: why.QuietPartition, Severity: why.Stall, Answer: "Partition 0 of orders is quiet."}}}
	return newFrame(last, d, &s, "http://localhost:8081")
}

// TestTopAsksSinceWhen: a server of ours has seen for how long watermarks have stood; what it
// remembers goes an hour back.
func TestTopAsksSinceWhen(t *testing.T) {
	e := evidenceAt(990_000)[0]
	at := e.AtMillis
	long, short, newer := at-2*60*60*1000, at-36_000, at+1
	for name, test := range map[string]struct {
		since *int64
		want  string
	}{
		"silent": {&short, "36.0 s"}, "longer than it remembers": {&long, "≥ 2 h 0 min"}, "moved since": {&newer, "≥ 0.0 s"}, "older server": {nil, "≥ 0.0 s"},
	} {
		var s stood
		s.note(e)
		sp := &e.History[len(e.History)-1].Splits[0]
		s.learn(e, []flink.Standing{{Vertex: "elsewhere", Topic: sp.Topic, Partition: sp.Partition, SinceMillis: &at},
			{Vertex: vertexOf(e, sp.Source), Topic: sp.Topic, Partition: sp.Partition, SinceMillis: test.since}})
		if got := s.since(sp, at); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func texts(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	return b.String()
}

func TestTopFrame(t *testing.T) {
	want := `lowwater top · orders · running for 16 min 43 s · 00:16:43.000 UTC · http://localhost:8081
Partition 0 of orders is quiet.
smallest watermark 00:16:35.000, 8.0 s behind: orders-0 > orders[0] > count

VERTEX         PAR  LOW WATERMARK  BEHIND         BUSY      BLOCKED  IN/S  OUT/S  LATE
orders           1   00:16:35.000   8.0 s  ███░░░  50%  ░░░░░░   0%    40     40
count > print    1   00:16:35.000   8.0 s  ██████ 100%            ?    40      ?     3

  SPLIT     SUBTASK  STATE      WATERMARK  BEHIND  UNCHANGED  NEXT  LAG
* orders-0  0        active  00:16:35.000   8.0 s      2.0 s    30    0
  orders-1  0        active  00:16:42.500   0.5 s      0.0 s    30    0
`
	lines := stalledFrame().lines(100, 0)
	if diff := cmp.Diff(want, texts(lines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var held []string
	for _, l := range lines {
		if l.style == styleHeld {
			held = append(held, strings.Fields(l.text)[0])
		}
	}
	if diff := cmp.Diff([]string{"Partition", "orders", "count", "*"}, held); diff != "" {
		t.Errorf("marked lines (-want +got):\n%s", diff)
	}
}

// TestTopIn80Columns: where there is no room for bars, their percentages stay, and all columns.
func TestTopIn80Columns(t *testing.T) {
	want := `VERTEX         PAR  LOW WATERMARK  BEHIND  BUSY  BLOCKED  IN/S  OUT/S  LATE
orders           1   00:16:35.000   8.0 s   50%       0%    40     40
count > print    1   00:16:35.000   8.0 s  100%        ?    40      ?     3
`
	if all := texts(stalledFrame().lines(80, 0)); !strings.Contains(all, "\n\n"+want+"\n") {
		t.Errorf("no table of vertices\n%sin\n%s", want, all)
	}
}

// TestTopState: state with a memory budget has a table of its own, also on a narrow screen.
func TestTopState(t *testing.T) {
	looks := evidenceAt(990_000, 995_000)
	e := looks[len(looks)-1]
	for i := range e.History {
		s := &e.History[i].Subtasks[1]
		s.State = why.KeyedState{BudgetBytes: 64 << 20, MemoryBytes: 67_000_000, SpilledEntries: 1_234_567, DiskBytes: 1_288_490_189, SpillReads: int64(4000 * i), SpillWrites: int64(3 * i)}
		other := *s
		other.Index = 1
		e.History[i].Subtasks = append(e.History[i].Subtasks, other)
	}
	lines := newFrame(e, &why.Diagnosis{Findings: []why.Finding{{Severity: why.Fine}}}, &stood{}, "http://localhost:8081").lines(80, 0)
	want := `STATE  IN MEMORY   BUDGET  ENTRIES ON DISK     DISK  READS/S  WRITES/S
count    128 MiB  128 MiB          2469134  2.4 GiB     8000       6.0
`
	if all := texts(lines); !strings.Contains(all, "\n\n"+want+"\n") {
		t.Errorf("no table of state\n%sin\n%s", want, all)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l.text); n > 80 {
			t.Errorf("%d columns: %s", n, l.text)
		}
	}
	if all := texts(stalledFrame().lines(80, 0)); strings.Contains(all, "STATE  IN MEMORY") {
		t.Errorf("a table of state without a budget:\n%s", all)
	}
}

func TestSize(t *testing.T) {
	tests := map[int64]string{0: "0 B", 512: "512 B", 1536: "1.5 KiB", 4_812_331: "4.6 MiB", 150 << 30: "150 GiB", 1 << 52: "4096 TiB"}
	for bytes, want := range tests {
		if got := size(bytes); got != want {
			t.Errorf("size(%d) = %q, want %q", bytes, got, want)
		}
	}
}

// TestTopFitsTheScreen: no line is wider and no frame higher than the terminal, and what
// holds stays in sight.
func TestTopFitsTheScreen(t *testing.T) {
	f := stalledFrame()
	for range 40 {
		f.splits = append(f.splits, f.splits[1])
		f.holds = append(f.holds, false)
	}
	f.failure = "http://localhost:8081: no answer within 10s"
	for _, size := range [][2]int{{100, 30}, {60, 16}, {40, 14}, {20, 14}} {
		all := texts(fitting(t, f, size[0], size[1]))
		if !strings.Contains(all, "could not look") || !strings.Contains(all, "orders-0") || !strings.Contains(all, "more") {
			t.Errorf("%v:\n%s", size, all)
		}
	}
}

// fitting lays a frame out and checks that it is no larger than the terminal.
func fitting(t *testing.T, f *frame, width, height int) []line {
	t.Helper()
	lines := f.lines(width, height)
	if len(lines) > height {
		t.Errorf("%d lines on a terminal of %d columns and %d lines:\n%s", len(lines), width, height, texts(lines))
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l.text); n > width {
			t.Errorf("%d columns of %d: %s", n, width, l.text)
		}
	}
	return lines
}

// crowdedFrame has more of everything than a terminal; what holds is the last vertex.
func crowdedFrame() *frame {
	f := stalledFrame()
	f.failure = "http://localhost:8081: no answer within 10s"
	for i := range 40 {
		vertex, split := slices.Clone(f.vertices[0]), slices.Clone(f.splits[1])
		vertex[0], split[0] = fmt.Sprintf("vertex %d", i), fmt.Sprintf("  orders-%d", i+2)
		f.vertices, f.held = slices.Insert(f.vertices, 0, vertex), slices.Insert(f.held, 0, false)
		f.splits, f.holds = append(f.splits, split), append(f.holds, false)
		f.states = append(f.states, []string{fmt.Sprintf("state %d", i), "1 MiB", "2 MiB", "0", "0 B", "0", "0"})
	}
	return f
}

// TestTopFitsAnyScreen: all tables give way, the answer does not.
func TestTopFitsAnyScreen(t *testing.T) {
	f := crowdedFrame()
	for _, width := range []int{1, 2, 7, 20, 40, 80, 200} {
		for height := 1; height < 150; height++ {
			all := texts(fitting(t, f, width, height))
			if width >= 40 && !strings.HasPrefix(all, "Partition 0 of orders is quiet.\n") && !strings.Contains(all, "\nPartition 0 of orders is quiet.\n") {
				t.Errorf("%d columns, %d lines: no answer in\n%s", width, height, all)
			}
		}
	}
	f.answer = strings.Repeat("a"+strings.Repeat("b", 30)+" ", 20)
	if all := texts(fitting(t, f, 20, 5)); !strings.HasSuffix(all, "…\n") || strings.Contains(all, "lowwater") {
		t.Errorf("a long answer on a small terminal:\n%s", all)
	}
}

// TestTopShares the lines of a terminal among its tables; what holds is shown of each.
func TestTopShares(t *testing.T) {
	want := `lowwater top · orders · running for 16 min 43 s · 00:16:43.000 UTC · http://loc…
could not look: http://localhost:8081: no answer within 10s
Partition 0 of orders is quiet.
smallest watermark 00:16:35.000, 8.0 s behind: orders-0 > orders[0] > count

VERTEX         PAR  LOW WATERMARK  BEHIND  BUSY  BLOCKED  IN/S  OUT/S  LATE
vertex 39        1   00:16:35.000   8.0 s   50%       0%    40     40
orders           1   00:16:35.000   8.0 s   50%       0%    40     40
count > print    1   00:16:35.000   8.0 s  100%        ?    40      ?     3
… 39 more

STATE    IN MEMORY  BUDGET  ENTRIES ON DISK  DISK  READS/S  WRITES/S
state 0      1 MiB   2 MiB                0   0 B        0         0
state 1      1 MiB   2 MiB                0   0 B        0         0
state 2      1 MiB   2 MiB                0   0 B        0         0
… 37 more

  SPLIT     SUBTASK  STATE      WATERMARK  BEHIND  UNCHANGED  NEXT  LAG
* orders-0  0        active  00:16:35.000   8.0 s      2.0 s    30    0
  orders-1  0        active  00:16:42.500   0.5 s      0.0 s    30    0
… 40 more
`
	if diff := cmp.Diff(want, texts(crowdedFrame().lines(80, 21))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTopOfAnEmptyPlan: a server may tell of a job before it knows the plan.
func TestTopOfAnEmptyPlan(t *testing.T) {
	e := &why.Evidence{Job: "orders", AtMillis: 1, History: []why.Snapshot{{AtMillis: 1}}}
	for _, d := range []*why.Diagnosis{why.Diagnose(e), {Findings: []why.Finding{{Severity: why.Fine, Answer: "Nothing runs."}}}} {
		if all := texts(newFrame(e, d, &stood{}, "URL").lines(80, 24)); !strings.Contains(all, d.Answer().Answer[:10]) || strings.Contains(all, "VERTEX") {
			t.Errorf("frame:\n%s", all)
		}
	}
}

func TestSpan(t *testing.T) {
	tests := map[int64]string{0: "0.0 s", 340: "0.3 s", 99_999: "99.9 s", 432_000: "7 min 12 s", 7_500_000: "2 h 5 min", 273_600_000: "3 d 4 h", -1500: "-1.5 s"}
	for millis, want := range tests {
		if got := span(millis); got != want {
			t.Errorf("span(%d) = %q, want %q", millis, got, want)
		}
	}
}

// TestTopKeepsToItsLines: a name or an error cannot move the cursor, colour what follows or
// begin a line.
func TestTopKeepsToItsLines(t *testing.T) {
	const evil = "a\x1b[31mb\nc\x1b]0;d\x07e\u202ef\u009bg\xff"
	f := stalledFrame()
	f.title, f.answer, f.path, f.failure = evil, evil, evil, evil
	for _, rows := range [][][]string{f.vertices, f.splits} {
		for i := range rows {
			rows[i] = slices.Clone(rows[i])
			for j := range rows[i] {
				rows[i][j] = evil
			}
		}
	}
	for _, width := range []int{20, 110} {
		for _, l := range f.lines(width, 0) {
			if bad := strings.IndexFunc(l.text, func(r rune) bool { return !unicode.IsPrint(r) }); bad >= 0 {
				t.Errorf("%q has something else than text at %d", l.text, bad)
			}
		}
	}
}
