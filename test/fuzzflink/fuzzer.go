package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/lowwater/lowwater/internal/progress"
	"github.com/lowwater/lowwater/internal/progress/replay"
)

// fuzzer compares generated cases and counts.
type fuzzer struct {
	options
	oracle *oracle
	out    io.Writer

	events      int
	cases       int
	differences int
}

// compare generates one batch of a subject's cases, from number first on, and
// reports what differs.
func (f *fuzzer) compare(s subject, first int) error {
	cases := make([]replay.Case, f.batch)
	for i := range cases {
		cases[i] = f.generate(s, first+i)
	}
	answers, err := f.oracle.ask(s.name, cases)
	if err != nil {
		return err
	}
	for i, c := range cases {
		if answers[i].ReplayError != "" {
			return fmt.Errorf("the oracle does not understand case %s of subject %s (see %s in %s): %s",
				c.Name, s.name, logFile, f.dir, answers[i].ReplayError)
		}
		f.cases++
		f.events += len(answers[i].Steps)
		diff, err := difference(s.name, c, answers[i])
		if err != nil {
			return err
		}
		if diff != "" {
			f.differences++
			if err := f.report(s, first+i, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// generate returns case n of a subject: the same for the same seed and n.
func (f *fuzzer) generate(s subject, n int) replay.Case {
	g := generator{rand.New(rand.NewPCG(f.seed, uint64(n)))}
	c := s.generate(g, 1+g.IntN(f.steps))
	c.Name = fmt.Sprintf("seed-%d-case-%d", f.seed, n)
	return c
}

// difference answers a case and compares with Flink's answer.
func difference(subject string, c, flink replay.Case) (string, error) {
	ours, err := replay.Answer(subject, c, progress.Flink23)
	if err != nil {
		return "", err
	}
	return replay.Difference(expected(subject, flink, ours), ours), nil
}

// report shrinks a case that differs and prints it.
func (f *fuzzer) report(s subject, n int, c replay.Case) error {
	shrunk, diff, err := f.shrink(s.name, c)
	if err != nil {
		return err
	}
	flink, err := f.oracle.ask(s.name, []replay.Case{shrunk})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(flink[0], "", " ")
	if err != nil {
		return err
	}
	fmt.Fprintf(f.out, "DIFFERENT %s: -subjects %s -seed %d -case %d -steps %d -batch 1 -events 1\n%s\nFlink's answer to the shrunk case:\n%s\n",
		s.name, s.name, f.seed, n, f.steps, diff, text)
	return nil
}

// shrink drops steps, in ever smaller pieces, while a difference remains.
func (f *fuzzer) shrink(subject string, c replay.Case) (replay.Case, string, error) {
	differs := func(c replay.Case) (string, error) {
		flink, err := f.oracle.ask(subject, []replay.Case{c})
		if err != nil || flink[0].ReplayError != "" {
			return "", err // without its start, such as a split's assignment, a case may make no sense
		}
		return difference(subject, c, flink[0])
	}
	diff, err := differs(c)
	for size := len(c.Steps) / 2; size > 0 && err == nil; {
		shorter := false
		for from := 0; from < len(c.Steps) && err == nil; {
			try := c
			try.Steps = append(append([]replay.Step{}, c.Steps[:from]...), c.Steps[min(from+size, len(c.Steps)):]...)
			var d string
			if d, err = differs(try); d != "" {
				c, diff, shorter = try, d, true
			} else {
				from += size
			}
		}
		if !shorter || size > len(c.Steps) {
			size /= 2
		}
	}
	return c, diff, err
}
