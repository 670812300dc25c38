package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	trials := make([]trial, f.batch)
	for i := range trials {
		trials[i] = f.generate(s, first+i)
	}
	answers, err := f.oracle.ask(s.document, trials)
	if err != nil {
		return err
	}
	for i, t := range trials {
		f.cases++
		f.events += t.steps()
		diff, err := t.difference(answers[i])
		if err != nil {
			return fmt.Errorf("case %d of subject %s (the oracle's own words are in %s in %s): %w", first+i, s.name, logFile, f.dir, err)
		}
		if diff != "" {
			f.differences++
			if err := f.report(s, first+i, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// generate returns case n of a subject: the same for the same seed and n.
func (f *fuzzer) generate(s subject, n int) trial {
	g := generator{rand.New(rand.NewPCG(f.seed, uint64(n)))}
	return s.generate(g, fmt.Sprintf("seed-%d-case-%d", f.seed, n), 1+g.IntN(f.steps))
}

// report shrinks a case that differs and prints it.
func (f *fuzzer) report(s subject, n int, t trial) error {
	shrunk, diff, err := f.shrink(s, t)
	if err != nil {
		return err
	}
	flink, err := f.oracle.ask(s.document, []trial{shrunk})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, flink[0], "", " "); err != nil {
		return err
	}
	fmt.Fprintf(f.out, "DIFFERENT %s: -subjects %s -seed %d -case %d -steps %d -batch 1 -events 1\n%s\nFlink's answer to the shrunk case:\n%s\n",
		s.name, s.name, f.seed, n, f.steps, diff, text.Bytes())
	return nil
}

// shrink drops steps, in ever smaller pieces, while a difference remains.
func (f *fuzzer) shrink(s subject, t trial) (trial, string, error) {
	differs := func(t trial) (string, error) {
		flink, err := f.oracle.ask(s.document, []trial{t})
		if err != nil {
			return "", err
		}
		diff, err := t.difference(flink[0])
		if errors.Is(err, errNotUnderstood) {
			return "", nil // without its start, such as a split's assignment, a case may make no sense
		}
		return diff, err
	}
	diff, err := differs(t)
	for size := t.steps() / 2; size > 0 && err == nil; {
		shorter := false
		for from := 0; from < t.steps() && err == nil; {
			try := t.without(from, min(from+size, t.steps()))
			var d string
			if d, err = differs(try); d != "" {
				t, diff, shorter = try, d, true
			} else {
				from += size
			}
		}
		if !shorter || size > t.steps() {
			size /= 2
		}
	}
	return t, diff, err
}
