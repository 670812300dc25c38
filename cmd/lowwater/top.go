package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/flink"
)

const (
	// topInterval is how often the screen is drawn anew at most; a look at a cluster may take
	// longer.
	topInterval = time.Second
	// topMemory is how much is remembered for the diagnosis and for rates.
	topMemory = 2 * time.Minute
	// topWidth is the width of a frame that is not for a terminal.
	topWidth = 110
)

type topCommand struct {
	clusterFlags
	Once bool `help:"Print one frame and end, as without a terminal."`
}

// Help is what `lowwater top --help` adds.
func (*topCommand) Help() string {
	return `Shows a running job as it goes: what holds its event time, the watermark and load of
every vertex, state with a memory budget, and the splits, the one that holds first. The
job runs on Apache Flink (1.17 to 2.3) or is one of lowwater's, with its REST interface
on. Times are UTC.

    lowwater top
    lowwater top --url http://jobmanager:8081 --job orders
    lowwater top --once | head

q quits. Flink's metrics are up to 10 s old, so its numbers move in steps. A job that is
started again is followed by its name.

Exit codes: 0 quit, or the frame of --once printed, 2 could not look.`
}

// Validate is called by kong.
func (c *topCommand) Validate() error { return c.clusterFlags.validate() }

// Run shows the job until the user quits.
func (c *topCommand) Run(stdout io.Writer) error { return blind(c.show(stdout)) }

func (c *topCommand) show(stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := c.clusterFlags.client()
	if err != nil {
		return err
	}
	defer client.Close()
	job, err := client.Find(ctx, c.Job)
	if err != nil {
		return fmt.Errorf("%s: %w", client, err)
	}
	collector, err := client.Open(ctx, job)
	if err != nil {
		return fmt.Errorf("%s: %w", client, err)
	}
	t := &top{client: client, job: collector}
	out, isFile := stdout.(*os.File)
	if c.Once || !isFile || !term.IsTerminal(int(out.Fd())) {
		return t.once(ctx, stdout)
	}
	return t.live(ctx, stop, out)
}

// top looks at a job and draws what it sees.
type top struct {
	client *flink.Client
	job    *flink.Collector
	// told is the diagnosis of a server of ours, nil on a Flink cluster.
	told  *why.Report
	stood stood
}

// look adds what is to be seen now. A job that has ended or is not known any more is followed
// to the one that runs under its name: one that is started again has another id.
func (t *top) look(ctx context.Context) error {
	err := t.lookAtJob(ctx)
	if err != nil && ctx.Err() == nil {
		var next *flink.Collector
		if next, err = t.job.Successor(ctx, err); err == nil {
			t.job, t.stood = next, stood{}
			err = t.lookAtJob(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.client, err)
	}
	return nil
}

func (t *top) lookAtJob(ctx context.Context) error {
	if err := t.job.Look(ctx); err != nil {
		return err
	}
	var err error
	if t.told, err = t.job.Report(ctx); err != nil {
		return err
	}
	t.job.Forget(topMemory)
	began := t.stood.splits == nil
	t.stood.note(t.job.Evidence())
	if !began {
		return nil
	}
	standing, err := t.job.Standing(ctx)
	t.stood.learn(t.job.Evidence(), standing)
	return err
}

func (t *top) frame() *frame {
	e := t.job.Evidence()
	if t.told != nil {
		return newFrame(e, t.told.Diagnosis(e.Engine), &t.stood, t.client.String())
	}
	return newFrame(e, why.Diagnose(e), &t.stood, t.client.String())
}

// once prints a frame. Rates need two looks.
func (t *top) once(ctx context.Context, w io.Writer) error {
	for looks := range 2 {
		if looks > 0 && !sleep(ctx, topInterval) {
			return errors.New("interrupted")
		}
		if err := t.look(ctx); err != nil {
			return err
		}
	}
	var err error
	for _, l := range t.frame().lines(topWidth, 0) {
		_, err = fmt.Fprintln(w, l.text)
	}
	return err
}

// live draws frames until ctx ends or the user quits. That a look fails is shown, and does
// not end it.
func (t *top) live(ctx context.Context, quit func(), out *os.File) error {
	s, err := openScreen(os.Stdin, out, quit)
	if err != nil {
		return err
	}
	defer s.close()
	s.draw([]line{{text: "looking at " + t.client.String() + " …"}})
	var drawn *frame
	for ctx.Err() == nil {
		began := time.Now()
		switch err := t.look(ctx); {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			drawn = t.frame()
		case drawn == nil:
			return err
		default:
			drawn.failure = err.Error()
		}
		width, height := s.size()
		s.draw(drawn.lines(width, height))
		sleep(ctx, topInterval-time.Since(began))
	}
	return nil
}

// fullScreen is a terminal that a program has for itself.
type fullScreen struct {
	in, out *os.File
	before  *term.State // of in, nil if that is not a terminal
	colour  bool
}

// openScreen takes the terminal over, and calls quit when the user presses q or Ctrl-C.
func openScreen(in, out *os.File, quit func()) (*fullScreen, error) {
	s := &fullScreen{in: in, out: out, colour: os.Getenv("NO_COLOR") == ""}
	if term.IsTerminal(int(in.Fd())) {
		var err error
		if s.before, err = term.MakeRaw(int(in.Fd())); err != nil {
			return nil, fmt.Errorf("preparing the terminal: %w", err)
		}
		go quitOnKey(in, quit)
	}
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l\x1b[?7l") // the other screen, without a cursor; lines do not wrap
	return s, nil
}

// quitOnKey ends when the process does: a read of a terminal cannot be interrupted.
func quitOnKey(in io.Reader, quit func()) {
	key := make([]byte, 1)
	for {
		if _, err := in.Read(key); err != nil {
			return
		}
		if key[0] == 'q' || key[0] == 'Q' || key[0] == 3 {
			quit()
			return
		}
	}
}

// close gives the terminal back as it was.
func (s *fullScreen) close() {
	_, _ = io.WriteString(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
	if s.before != nil {
		_ = term.Restore(int(s.in.Fd()), s.before)
	}
}

func (s *fullScreen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return topWidth, 40
	}
	return width, height
}

// draw replaces what is on the screen, in one write so that nothing flickers.
func (s *fullScreen) draw(lines []line) {
	text := "\x1b[H"
	for i, l := range lines {
		if i > 0 {
			text += "\r\n"
		}
		if s.colour && l.style != "" {
			text += l.style + l.text + "\x1b[0m"
		} else {
			text += l.text
		}
		text += "\x1b[K"
	}
	_, _ = io.WriteString(s.out, text+"\x1b[J")
}
