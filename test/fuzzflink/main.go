// Command fuzzflink compares the state machines of event time, and the operators of
// windows, timers and joins, with Apache Flink's own classes on random cases:
//
//	go run ./test/fuzzflink -seed 1 -events 1000000
//
// Each case is generated from the seed and its number, answered by the replays of
// packages progress (with the rules of Flink 2.3) and operator, and by test/oracle, and
// compared step by step; window operators on the general operator and, where the case
// allows it, the fast one. A difference is shrunk and printed as a case in the format
// of the vectors, with the flags that reproduce it. What is known to differ is listed
// in differences.go and differenceswindows.go and nowhere else.
//
// The oracle needs bash, Java 17 and Maven.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// options are the command's flags.
type options struct {
	seed     uint64
	first    int
	events   int
	duration time.Duration
	subjects string
	oracle   string
	dir      string
	steps    int
	batch    int
	failures int
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "seed of all cases")
	flag.IntVar(&o.first, "case", 0, "number of the first case")
	flag.IntVar(&o.events, "events", 100_000, "stop after this many events")
	flag.DurationVar(&o.duration, "duration", 0, "stop after this time (0: no limit)")
	flag.StringVar(&o.subjects, "subjects", strings.Join(subjectNames(), ","), "subjects to compare")
	flag.StringVar(&o.oracle, "oracle", filepath.Join("test", "oracle", "oracle"), "the oracle's script")
	flag.StringVar(&o.dir, "dir", filepath.Join(os.TempDir(), "lowwater-oracle"), "where the oracle is built")
	flag.IntVar(&o.steps, "steps", 120, "largest number of events in a case")
	flag.IntVar(&o.batch, "batch", 100, "cases asked at once")
	flag.IntVar(&o.failures, "failures", 5, "stop after this many differences")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzflink:", err)
		os.Exit(1)
	}
}

// errDifferent says that at least one case differed.
var errDifferent = errors.New("Flink and this engine differ")

// run compares until one of the limits is reached.
func run(ctx context.Context, o options, out io.Writer) error {
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	subjects, err := subjectsByName(o.subjects)
	if err != nil {
		return err
	}
	oracle, err := startOracle(ctx, o.oracle, o.dir)
	if err != nil {
		return err
	}
	defer oracle.close()

	f := &fuzzer{options: o, oracle: oracle, out: out}
	start := time.Now()
	for round := 0; f.events < o.events && f.differences < o.failures && ctx.Err() == nil; round++ {
		first := o.first + round/len(subjects)*o.batch
		if err := f.compare(subjects[round%len(subjects)], first); err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
	}
	fmt.Fprintf(out, "%d events in %d cases of %s, seed %d from case %d: %d differences, %v\n",
		f.events, f.cases, o.subjects, o.seed, o.first, f.differences, time.Since(start).Round(time.Second))
	if f.differences > 0 {
		return errDifferent
	}
	return nil
}
