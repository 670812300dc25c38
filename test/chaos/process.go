package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// job is the job's process.
type job struct {
	world  *world
	binary string
	log    *os.File

	cmd         *exec.Cmd
	exit        chan error // delivers once per process
	parallelism int
	// starts counts processes; unexpected those that ended without being told to.
	starts, unexpected int
}

func newJob(w *world) (*job, error) {
	j := &job{world: w, binary: filepath.Join(w.dir, "job")}
	if out, err := exec.Command("go", "build", "-o", j.binary, "./test/chaos/job").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the job: %w: %s", err, out)
	}
	var err error
	j.log, err = os.Create(filepath.Join(w.dir, "job.log"))
	return j, err
}

// start starts a process; there must be none.
func (j *job) start(parallelism int) error {
	j.parallelism = parallelism
	j.cmd = exec.Command(j.binary, "-broker", j.world.address(2), "-in", topicIn, "-out", topicOut,
		"-checkpoints", j.world.checkpoints, "-parallelism", fmt.Sprint(parallelism))
	j.cmd.Stdout, j.cmd.Stderr = copyTo(j.log), copyTo(j.log)
	if err := j.cmd.Start(); err != nil {
		return err
	}
	j.starts++
	j.exit = make(chan error, 1)
	go func(cmd *exec.Cmd, exit chan<- error) { exit <- cmd.Wait() }(j.cmd, j.exit)
	return nil
}

// ensure starts the job again if it has ended by itself, as whoever runs jobs does.
func (j *job) ensure() error {
	select {
	case err := <-j.exit:
		j.unexpected++
		slog.Warn("chaos: the job has ended by itself", "error", err)
		if j.unexpected > 20+*faults {
			return fmt.Errorf("the job ends again and again; it says:\n%s", j.tail())
		}
		return j.start(j.parallelism)
	default:
		return nil
	}
}

// send sends a signal to the process if it runs.
func (j *job) send(s syscall.Signal) error {
	if err := j.ensure(); err != nil {
		return err
	}
	return j.cmd.Process.Signal(s)
}

// signal sends a signal that ends the process, and waits for its end.
func (j *job) signal(s syscall.Signal) error {
	if err := j.send(s); err != nil {
		return err
	}
	select {
	case <-j.exit:
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("the job did not end within a minute of %v; it says:\n%s", s, j.tail())
	}
}

// tail returns the last lines of the job's log.
func (j *job) tail() string {
	data, err := os.ReadFile(j.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func (j *job) close() error {
	if j.cmd != nil && j.cmd.ProcessState == nil {
		_ = j.cmd.Process.Kill()
		<-j.exit
	}
	if j.log == nil {
		return nil
	}
	return j.log.Close()
}
