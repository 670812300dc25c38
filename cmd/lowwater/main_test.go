package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lowwater": main})
}

// TestScripts runs the command as a user does.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		args []string
		want int
	}{
		{[]string{"version"}, exitOK},
		{[]string{"--version"}, exitOK},
		{[]string{"--help"}, exitOK},
		{[]string{"help"}, exitOK},
		{[]string{"help", "demo"}, exitOK},
		{[]string{"sing"}, exitUsage},
		{[]string{"demo", "lunar-eclipse"}, exitUsage},
		{[]string{"demo", "union", "union"}, exitUsage},
		{[]string{"demo", "--act-time=-1s"}, exitUsage},
		{[]string{"demo", "--act=5"}, exitUsage},
		{[]string{"demo", "union", "--act=-1"}, exitUsage},
		{[]string{"demo", "--brokers=127.0.0.1:1"}, exitFailed},
	}
	for _, test := range tests {
		var stdout, stderr bytes.Buffer
		if got := cli(test.args, &stdout, &stderr); got != test.want {
			t.Errorf("lowwater %v: exit code %d, want %d; stderr: %s", test.args, got, test.want, &stderr)
		}
		if lines, want := strings.Count(stderr.String(), "\n"), min(test.want, 1); lines != want {
			t.Errorf("lowwater %v: %d lines of errors, want %d:\n%s", test.args, lines, want, &stderr)
		}
	}
}

// TestHelp: all ways to ask for help give the same, and so does the lack of a
// command, but as an error.
func TestHelp(t *testing.T) {
	help := func(want int, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := cli(args, &stdout, &stderr); code != want || (stderr.Len() > 0) != (want == exitUsage) || stdout.Len() > 0 && stderr.Len() > 0 {
			t.Errorf("lowwater %v: exit code %d, want %d; stdout %q, stderr %q", args, code, want, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	want := help(exitOK, "--help")
	for _, got := range []string{help(exitUsage), help(exitOK, "help"), help(exitOK, "-h")} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(help(exitOK, "demo", "--help"), help(exitOK, "help", "demo")); diff != "" {
		t.Errorf("help of a command (-want +got):\n%s", diff)
	}
}

// TestDemoInRealTime plays the default scenario through, in a process of its own
// and by the wall clock. The other tests of scenarios are in virtual time.
func TestDemoInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if code := cli([]string{"demo", "--act-time=1s"}, &stdout, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Fatalf("exit code %d, stderr %q\n%s", code, &stderr, &stdout)
	}
	var titles []string
	for _, act := range parseTranscript(t, stdout.String()) {
		titles = append(titles, act.title)
	}
	want := []string{"Results flow", "Partition 2 goes quiet", "The same job with idleness", "The price"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("acts (-want +got):\n%s", diff)
	}
}

func TestRanges(t *testing.T) {
	tests := map[string][]int{"": nil, "4": {4}, "0-3, 7": {0, 1, 2, 3, 7}, "0, 2-3, 5": {0, 2, 3, 5}}
	for want, numbers := range tests {
		if got := ranges(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
}

// TestWarnings: a warning stands between blank lines, with its fix as a sentence and
// times as the demo writes them.
func TestWarnings(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.lines("before")
	log := slog.New(warnings{screen: s}).With("operator", "count")
	log.Warn("no good.", "watermark", time.UnixMilli(1_500), "fix", "mend it")
	log.Info("not shown")
	s.gap()
	s.lines("after")
	want := "before\n\n  warning: no good. Fix: mend it. [operator=count watermark=00:00:01.500]\n\nafter\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLiveScreen: on a terminal a table replaces the one before it, except what
// stays.
func TestLiveScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{w: &out, live: true}
	s.table(nil, "1 s", "head", []string{"a 1"})
	s.table([]string{"window"}, "2 s", "head", []string{"a 2"})
	s.keep()
	s.table(nil, "3 s", "head", []string{"a 3"})
	want := "1 s\nhead\na 1\n" +
		"\x1b[3A\x1b[J" + "window\n2 s\nhead\na 2\n" +
		"3 s\nhead\na 3\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if newScreen(&out).live {
		t.Error("a buffer is taken for a terminal")
	}
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if newScreen(file).live {
		t.Error("a file is taken for a terminal")
	}
}
