package why

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/test/scenarios"
)

// TestReportMentions holds the text of each scenario's report against the facts that it
// must contain.
func TestReportMentions(t *testing.T) {
	for _, s := range allScenarios(t) {
		t.Run(s.Name, func(t *testing.T) { mentions(t, s) })
	}
}

func mentions(t *testing.T, s *scenarios.Scenario) {
	text := Diagnose(evidenceOf(t, s, true)).String()
	flat := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, fact := range s.Expected.MustMention {
		if !strings.Contains(flat, strings.ToLower(fact)) {
			t.Errorf("the report does not mention %q:\n%s", fact, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 45 {
		t.Errorf("%d lines are more than a screen:\n%s", lines, text)
	}
	t.Log("\n" + text)
}

func TestReportStyle(t *testing.T) {
	d := Diagnosis{Findings: []Finding{{
		Code: QuietPartition, Severity: Stall, Answer: "One two three four five six.", Why: []string{"Seven eight."},
		Culprit: Culprit{Source: "s", Partitions: []int32{1, 2}, Input: Know(0)},
		Numbers: []Number{{"silent_ms", 5}}, RuledOut: []RuledOut{{PartitionLag, "lag 0"}}, Unless: []Unless{{StalledReader, "offsets"}},
		Fixes: []Fix{{Code: SetIdleness, Do: "Do it.", Go: "a(\n\tb)", Java: "java", SQL: "sql", Costs: "Some."}, {Code: CheckProducer, Do: "Look."}},
		Then:  []Code{QuietInput}, Consequences: []Code{EventTimeSkew},
	}, {Code: Backpressure, Severity: Slow, Answer: "Slow."}}, Blind: []string{"Kafka."}}
	const want = `One two three four
  five six.
quiet-partition,
  stall, likely
source s, partitions 1
  and 2, input 0
why
  Seven eight.
  silent_ms=5
ruled out
  partition-lag: lag 0
  not ruled out:
    stalled-reader,
    which takes
    offsets to tell
fix: set-idleness
  Do it.
    Go:
      a(
          b)
  Costs: Some.
or
  check-producer:
    Look.
then
  Once that is out of
    the way:
    quiet-input.
explains
  It also accounts for
    what looks like
    event-time-skew.
further findings
  backpressure (slow):
    Slow.
could not see
  Kafka.
`
	var plain, bold strings.Builder
	for _, w := range []struct {
		to    *strings.Builder
		style Style
	}{{&plain, Style{Width: 22, Numbers: true}}, {&bold, Style{Width: 22, Numbers: true, Bold: true}}} {
		if err := d.Write(w.to, w.style); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff(want, plain.String()); diff != "" {
		t.Errorf("plain (-want +got):\n%s", diff)
	}
	if strip := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(bold.String()); strip != want || strip == bold.String() {
		t.Errorf("bold is\n%q", bold.String())
	}
}

// TestReportOfNothing: the codes for machines are no news when nothing is wrong.
func TestReportOfNothing(t *testing.T) {
	d := Diagnosis{Findings: []Finding{{Code: WindowNotDue, Severity: Fine, Answer: "It is early.", Numbers: []Number{{"due_in_ms", 5}}}}}
	if text := d.String(); text != "It is early.\n" {
		t.Errorf("%q", text)
	}
	d.Findings[0].Why = []string{"Look at the clock."}
	if text := d.String(); text != "It is early.\nwhy\n  Look at the clock.\n  due_in_ms=5\n" {
		t.Errorf("%q", text)
	}
}

// TestReportAndBack: a report that came over the wire reads as the diagnosis did.
func TestReportAndBack(t *testing.T) {
	for _, s := range allScenarios(t) {
		d := Diagnose(evidenceOf(t, s, true))
		for i := range d.Findings {
			slices.SortFunc(d.Findings[i].Numbers, func(a, b Number) int { return strings.Compare(a.Name, b.Name) })
		}
		data, err := json.Marshal(d.Report())
		if err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(d.String(), r.Diagnosis(d.Engine).String()); diff != "" {
			t.Errorf("%s (-before +after):\n%s", s.Name, diff)
		}
	}
}

func TestReportForMachines(t *testing.T) {
	d := Diagnosis{Job: "j", AtMillis: 7, Findings: []Finding{{
		Code: SideInputWithout, Severity: Stall, Answer: "A.", Culprit: Culprit{Source: "s", Operator: "o", Input: Know(1)},
		Numbers: []Number{{"side_records", 2}}, Unless: []Unless{{QuietInput, "time"}}, RuledOut: []RuledOut{{QuietPartition, "no"}},
		Fixes: []Fix{{Code: StrategyOnSideInput, Do: "D.", Go: "g", Costs: "C."}},
	}}}
	got, err := json.Marshal(d.Report())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"job":"j","at_ms":7,"cause":"side-input-without-watermarks","severity":"stall","findings":[` +
		`{"code":"side-input-without-watermarks","severity":"stall","likely":true,"answer":"A.","culprit":{"source":"s","operator":"o","input":1},` +
		`"numbers":{"side_records":2},"ruled_out":[{"code":"quiet-partition","because":"no"}],"unless":[{"code":"quiet-input","needs":"time"}],` +
		`"fixes":[{"code":"strategy-on-side-input","do":"D.","go":"g","costs":"C."}]}]}`
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestDuration(t *testing.T) {
	for millis, want := range map[int64]string{
		0: "0 ms", 250: "250 ms", 1500: "1.5 s", 9000: "9 s", 60_000: "60 s", 119_400: "119 s", 432_000: "7 min 12 s", 120_000: "2 min",
		3_599_999: "1 h", 5_400_000: "1 h 30 min", 86_398_000: "24 h", 86_400_000: "24 h", 7 * 86_400_000: "7 days", -28_800_000: "-8 h",
		MinTime: "-292471209 years",
	} {
		if got := duration(millis); got != want {
			t.Errorf("duration(%d) is %q, want %q", millis, got, want)
		}
	}
}

func TestTimesDoNotWrapAround(t *testing.T) {
	tests := []struct{ got, want int64 }{
		{plus(MaxTime, 1), MaxTime}, {plus(MinTime, -1), MinTime}, {plus(5, -7), -2},
		{minus(0, MinTime), MaxTime}, {minus(-1, MinTime), MaxTime}, {minus(MinTime, 1), MinTime}, {minus(MinTime, MinTime), 0}, {minus(MaxTime, -1), MaxTime},
		{nextEnd(MinTime+1, 0, 0), MinTime + 1}, {nextEnd(-1, 10, 0), 10}, {nextEnd(9, 10, 0), 20}, {nextEnd(8, 10, 0), 10}, {nextEnd(0, 10, 3), 3},
	}
	for i, test := range tests {
		if test.got != test.want {
			t.Errorf("%d: %d, want %d", i, test.got, test.want)
		}
	}
}

// TestAnswers checks sentences whose grammar or advice depends on what was seen.
func TestAnswers(t *testing.T) {
	future := topic("a", 2, steady(0, 1000), until(steady(1, 1000), 10*minute))
	future.Rows = jsonRows(row(15*minute, 0, variantStart+26*hour, "bad"))
	tests := []struct {
		name string
		variant
		want, not string
	}{
		{"many partitions never fed", variant{
			topics: []scenarios.Topic{topic("a", 20, steady(0, 1000))}, job: job(from("a", "a", 2, bounded(1000, 0)), tumbling("w", minute, "a")),
		}, "have no record yet and hold the watermark", "and holds"},
		{"an input of two partitions", variant{
			topics: []scenarios.Topic{topic("a", 1, steady(0, 1000)), topic("b", 2, until(steady(0, 1000), minute), until(steady(1, 1000), minute))},
			job:    job(from("a", "a", 1, bounded(1000, 0)), from("b", "b", 2, bounded(1000, 0)), tumbling("w", minute, "a", "b")),
		}, `input "b" (topic b) has sent nothing`, "have sent"},
		{"a record of tomorrow beyond a silent partition", variant{
			topics: []scenarios.Topic{future}, job: job(from("a", "a", 2, bounded(1000, 0)), tumbling("w", minute, "a")),
		}, "Once that is out of the way: future-timestamp.", "explains"},
		{"clocks that go ahead", variant{
			topics: []scenarios.Topic{topic("a", 1, shifted(steady(0, 1000), 10*minute))}, job: job(from("a", "a", 1, bounded(1000, 0)), tumbling("w", minute, "a")),
		}, "were stamped 10 min ahead of the clock", "was stamped"},
		{"a watermark ahead of the clock", variant{
			topics: []scenarios.Topic{topic("a", 1, shifted(steady(0, 1000), 5000))}, job: job(from("a", "a", 1, bounded(1000, 0)), tumbling("w", minute, "a")),
		}, "ahead of the clock", "behind the clock"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.at = 20 * minute
			d := Diagnose(evidenceOf(t, test.scenario(t, means[0].Means), true))
			text := strings.Join(strings.Fields(d.String()), " ")
			if !strings.Contains(text, test.want) || strings.Contains(text, test.not) {
				t.Errorf("want %q and not %q:\n%v", test.want, test.not, d)
			}
		})
	}
}

// TestEndsOfTime: numbers at the ends of time have names.
func TestEndsOfTime(t *testing.T) {
	for n, want := range map[int64]string{MinTime: "min", MaxTime: "max", -7: "-7"} {
		if got := (Number{"n", n}).text(); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// TestNumbersAreDetails: people read sentences; the numbers by their names are for those who
// ask.
func TestNumbersAreDetails(t *testing.T) {
	d := Diagnosis{Findings: []Finding{{Code: QuietPartition, Severity: Stall, Answer: "It is quiet.", Numbers: []Number{{"silent_ms", 5}}}}}
	var b strings.Builder
	if err := d.Write(&b, Style{}); err != nil || b.String() != "It is quiet.\nquiet-partition, stall\n" {
		t.Errorf("%v: %q", err, &b)
	}
}

// TestNamesDoNotSteerTheTerminal: names of jobs and topics are others' text, and so is all
// else of a report that came over the wire.
func TestNamesDoNotSteerTheTerminal(t *testing.T) {
	const evil = "\x1b[2J\u009b1m\u202e\x07"
	over := &Diagnosis{Job: evil, Blind: []string{evil}, Failed: []string{evil}, Findings: []Finding{{
		Code: evil, Severity: evil, Answer: evil, Why: []string{evil}, Numbers: []Number{{evil, 1}}, RuledOut: []RuledOut{{evil, evil}},
		Unless: []Unless{{evil, evil}}, Then: []Code{evil}, Consequences: []Code{evil}, Fixes: []Fix{{Code: evil, Do: evil, Go: evil, Costs: evil}, {Code: evil}},
		Culprit: Culprit{Source: evil, Topic: evil, Operator: evil, Key: evil, Paused: []string{evil}},
	}, {Code: evil, Severity: evil, Answer: evil}}}
	if text := over.String(); strings.ContainsAny(text, evil[:1]+"\u009b\u202e\x07") {
		t.Errorf("%q", text)
	}
	d := &Diagnosis{Findings: []Finding{{
		Code: QuietPartition, Severity: Stall, Answer: "Window \"a\x1b[2Jb\" is silent.", Culprit: Culprit{Topic: "t\x07"},
		Fixes: []Fix{{Code: SetIdleness, Go: "withIdleness(\"\x1b]0;x\")"}},
	}}}
	if text := d.String(); strings.ContainsAny(text, "\x1b\x07") || !strings.Contains(text, "a[2Jb") {
		t.Errorf("%q", text)
	}
}

// TestOffsetsThatTheJobTells: a lag that is shown is not said to be unknown.
func TestOffsetsThatTheJobTells(t *testing.T) {
	e := healthyEvidence(t)
	e.Means.KafkaOffsets = false
	says := func() bool { return strings.Contains(strings.Join(Diagnose(e).Blind, " "), "No offsets") }
	if says() {
		t.Errorf("offsets are known: %q", Diagnose(e).Blind)
	}
	eachSplit(e, func(sp *Split) {
		sp.Lag, sp.EndOffset, sp.PositionOffset = Known[int64]{}, Known[int64]{}, Known[int64]{}
	})
	if !says() {
		t.Errorf("offsets are unknown: %q", Diagnose(e).Blind)
	}
}
