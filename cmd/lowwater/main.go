// Command lowwater looks at jobs, lowwater's and Apache Flink's, and at their
// topics: why says what holds event time back and what to change, top shows a job
// as it runs, explain judges a plan before it runs, gaps finds the bound and the
// idle timeout that fit a topic, and checkpoint looks at what is stored. The demo
// runs small jobs on an embedded Kafka, or on a real one, and explains what they
// do from their own numbers.
//
// Jobs of one's own are programs that import package lowwater; this command does
// not run them.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/lowwater/lowwater/internal/why"
)

// version is set by the linker.
var version = "devel"

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type commands struct {
	Demo       demoCommand       `cmd:"" help:"Watch a job over Kafka stall and flow, in a few short acts."`
	Gaps       gapsCommand       `cmd:"" help:"Find the bound and the idle timeout that fit a topic."`
	Top        topCommand        `cmd:"" help:"Watch a running job: what holds its event time, vertices and splits."`
	Why        whyCommand        `cmd:"" help:"Say why a job's event time stands still or loses records."`
	Explain    explainCommand    `cmd:"" help:"Say what in a job's plan will surprise, before it runs."`
	Checkpoint checkpointCommand `cmd:"" help:"Look at stored checkpoints and savepoints."`
	Help       struct{}          `cmd:"" help:"Show this help, or that of a command: lowwater help demo."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
	Flag       kong.VersionFlag  `name:"version" help:"Print the version."`
}

const description = `Event-time stream processing over Kafka.

Exit codes: 0 done, 1 failed, 2 used wrongly. Of why and explain 1 is a finding;
of why, explain and top 2 is also that they could not look.`

func main() { os.Exit(cli(os.Args[1:], os.Stdout, os.Stderr)) }

// cli runs the command and returns the exit code. Without a command it explains
// itself on stderr.
func cli(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 0:
		cli([]string{"--help"}, stderr, stderr)
		return exitUsage
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	var c commands
	answered := false
	parser, err := kong.New(&c,
		kong.Name("lowwater"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: textWidth}),
		kong.BindTo(stdout, (*io.Writer)(nil)), kong.Bind(stderrWriter{stderr}), kong.Vars{"version": versionLine()},
		// kong wants to exit when a flag such as --help has been answered.
		kong.Exit(func(int) { answered = true }),
	)
	if err != nil {
		return fail(stderr, exitFailed, err)
	}
	command, err := parser.Parse(args)
	if answered {
		return exitOK
	}
	if err != nil {
		return fail(stderr, exitUsage, fmt.Errorf("%w (lowwater --help explains)", err))
	}
	if err := command.Run(); err != nil {
		code, print := exitCode(err)
		if print {
			return fail(stderr, code, err)
		}
		return code
	}
	return exitOK
}

// fail prints err in one line. What a server or a file said may be in it.
func fail(stderr io.Writer, code int, err error) int {
	fmt.Fprintln(stderr, "lowwater:", inOneLine(err.Error()))
	return code
}

// inOneLine writes an error, or several joined, in one line for a terminal.
func inOneLine(text string) string { return why.Plain(strings.ReplaceAll(text, "\n", "; ")) }

type versionCommand struct{}

func (versionCommand) Run(stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, versionLine())
	return err
}

func versionLine() string {
	return fmt.Sprintf("lowwater %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
