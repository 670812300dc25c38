package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// transcript is what a demo wrote, act by act.
type transcript []*actText

// actText is what one act wrote.
type actText struct {
	title string
	// windows are the counts of the windows shown, by their start.
	windows map[string]string
	ticks   []tick
	// seen is the closing sentence about what was seen, in one line.
	seen string
}

// tick is the job as it was shown at one moment.
type tick struct {
	records, windows int
	// shown is the number of windows that the act had shown by then.
	shown     int
	watermark string
	rows      map[string]tableRow
}

// tableRow is one input of the job.
type tableRow struct {
	state, watermark, offsets string
	rate                      int
	minimum                   bool
}

var (
	actLine    = regexp.MustCompile(`^Act \d+\. (.*)$`)
	windowLine = regexp.MustCompile(`^  window (\S+) to \S+:  (.*)$`)
	tickLine   = regexp.MustCompile(`^  \d+\.\d s: (\d+) records, (\d+) windows? fired, watermark at the windows (\S+)$`)
	rowLine    = regexp.MustCompile(`^    (\S+) +(active|idle) +(\S+) +\d+\.\d s +(\S+) +(\d+)(  <- minimum)?$`)
	surplusRow = regexp.MustCompile(`^    (subtasks [0-9, -]+): no split, (active|idle), watermark (none)(  <- minimum)?$`)
)

// parseTranscript reads what a demo wrote elsewhere than on a terminal.
func parseTranscript(t *testing.T, text string) transcript {
	t.Helper()
	var acts transcript
	var now *actText
	closing := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if len(line) > textWidth {
			t.Errorf("a line of more than %d characters: %s", textWidth, line)
		}
		if m := actLine.FindStringSubmatch(line); m != nil {
			now, closing = &actText{title: m[1], windows: map[string]string{}}, ""
			acts = append(acts, now)
		}
		if now == nil {
			continue
		}
		if m := windowLine.FindStringSubmatch(line); m != nil {
			if _, twice := now.windows[m[1]]; twice {
				t.Errorf("%s: window %s is shown twice", now.title, m[1])
			}
			now.windows[m[1]] = m[2]
		}
		if m := tickLine.FindStringSubmatch(line); m != nil {
			now.ticks = append(now.ticks, tick{number(t, m[1]), number(t, m[2]), len(now.windows), m[3], map[string]tableRow{}})
		}
		if m := rowLine.FindStringSubmatch(line); m != nil {
			now.last().rows[m[1]] = tableRow{m[2], m[3], m[4], number(t, m[5]), m[6] != ""}
		}
		if m := surplusRow.FindStringSubmatch(line); m != nil {
			now.last().rows[m[1]] = tableRow{state: m[2], watermark: m[3], minimum: m[4] != ""}
		}
		for _, begin := range []string{"Seen:", "Rule:"} {
			if strings.HasPrefix(line, "  "+begin) {
				closing = begin
			}
		}
		if closing == "Seen:" {
			now.seen += strings.TrimPrefix(line, " ")
		}
	}
	return acts
}

func (a *actText) first() tick { return a.ticks[0] }
func (a *actText) last() tick  { return a.ticks[len(a.ticks)-1] }

// numbers returns the numbers in what the act has seen that pattern's groups match.
func (a *actText) numbers(t *testing.T, pattern string) []int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(a.seen)
	if m == nil {
		t.Fatalf("%s: seen %q, want a match of %q", a.title, a.seen, pattern)
	}
	var list []int
	for _, s := range m[1:] {
		list = append(list, number(t, s))
	}
	return list
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
