package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// oracle is a running process that answers cases with Flink's classes.
type oracle struct {
	command *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

// logFile, in the folder where the oracle is built, is what it complains about:
// mostly cases that shrinking has cut too short.
const logFile = "fuzz.log"

func startOracle(ctx context.Context, script, dir string) (*oracle, error) {
	build := exec.CommandContext(ctx, script, "build", dir)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building the oracle with %s: %w", script, err)
	}
	command := exec.CommandContext(ctx, script, "replay", dir)
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	command.Stderr = log
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the oracle: %w", err)
	}
	answers := json.NewDecoder(out)
	answers.DisallowUnknownFields()
	return &oracle{command: command, in: in, answers: answers}, nil
}

// ask returns Flink's answers to cases of one subject.
func (o *oracle) ask(document head, trials []trial) ([]json.RawMessage, error) {
	asked := struct {
		head
		Cases []json.Marshaler `json:"cases"`
	}{head: document}
	for _, t := range trials {
		asked.Cases = append(asked.Cases, t.question())
	}
	// Written while the answer is read: neither side may wait for the other.
	written := make(chan error, 1)
	go func() { written <- json.NewEncoder(o.in).Encode(asked) }()
	var answer struct {
		head
		Cases []json.RawMessage `json:"cases"`
	}
	if err := o.answers.Decode(&answer); err != nil {
		return nil, fmt.Errorf("the oracle's answer: %w", err)
	}
	if err := <-written; err != nil {
		return nil, fmt.Errorf("asking the oracle: %w", err)
	}
	if len(answer.Cases) != len(trials) {
		return nil, fmt.Errorf("the oracle answered %d of %d cases", len(answer.Cases), len(trials))
	}
	return answer.Cases, nil
}

func (o *oracle) close() {
	_ = o.in.Close()
	_ = o.command.Wait()
}
