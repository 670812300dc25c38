//go:build integration

package integration

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// build builds a command of this module and returns the path of its binary.
func build(t *testing.T, pkg string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/lowwater/lowwater/"+pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	return binary
}

// process is a running command. It is killed when the test ends.
type process struct {
	cmd  *exec.Cmd
	exit chan error // delivers once
	// changed delivers, now and then, after lines were added.
	changed chan struct{}

	mu             sync.Mutex
	stdout, stderr []string
}

func start(t *testing.T, binary string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), exit: make(chan error, 1), changed: make(chan struct{}, 1)}
	var reading sync.WaitGroup
	for _, output := range []struct {
		pipe  func() (io.ReadCloser, error)
		lines *[]string
	}{{p.cmd.StdoutPipe, &p.stdout}, {p.cmd.StderrPipe, &p.stderr}} {
		r, err := output.pipe()
		if err != nil {
			t.Fatal(err)
		}
		reading.Go(func() { p.read(r, output.lines) })
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reading.Wait()
		p.exit <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-ended
		if t.Failed() {
			out, errs := p.output()
			t.Logf("%s %s\nstdout:\n%s\nstderr:\n%s", filepath.Base(binary), strings.Join(args, " "),
				strings.Join(out, "\n"), strings.Join(errs, "\n"))
		}
	})
	return p
}

func (p *process) read(r io.Reader, lines *[]string) {
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		p.mu.Lock()
		*lines = append(*lines, scanner.Text())
		p.mu.Unlock()
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// output returns the lines written so far.
func (p *process) output() (stdout, stderr []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.stdout), slices.Clone(p.stderr)
}

// await waits until the lines on standard output are what is wanted.
func (p *process) await(t *testing.T, what string, done func(stdout []string) bool) {
	t.Helper()
	timeout := time.NewTimer(opTimeout)
	defer timeout.Stop()
	for {
		if stdout, _ := p.output(); done(stdout) {
			return
		}
		select {
		case <-p.changed:
		case err := <-p.exit:
			p.exit <- err
			// All lines are there now.
			if stdout, _ := p.output(); !done(stdout) {
				t.Fatalf("the process ended (%v) before %s", err, what)
			}
			return
		case <-timeout.C:
			t.Fatalf("no %s within %v", what, opTimeout)
		}
	}
}

// end waits until the process has ended and returns its exit code and what it
// wrote.
func (p *process) end(t *testing.T) (code int, stdout, stderr []string) {
	t.Helper()
	select {
	case <-p.exit:
	case <-time.After(2 * opTimeout):
		t.Fatalf("it has not ended within %v", 2*opTimeout)
	}
	stdout, stderr = p.output()
	return p.cmd.ProcessState.ExitCode(), stdout, stderr
}

// stop sends a signal and waits for the end.
func (p *process) stop(t *testing.T, signal os.Signal) (code int, stdout, stderr []string) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	return p.end(t)
}

// stopGracefully ends the process as an operator would, which must not be an error.
func (p *process) stopGracefully(t *testing.T) (stdout, stderr []string) {
	t.Helper()
	code, stdout, stderr := p.stop(t, syscall.SIGTERM)
	if code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	return stdout, stderr
}

// poll calls done every 100 ms until it returns true.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	ctx := opContext(t)
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %s within %v", what, opTimeout)
		}
	}
}
