package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lowwater/lowwater"
)

type demoCommand struct {
	Scenario string        `arg:"" optional:"" default:"quiet-partition" help:"What to show, ${default} by default; see above."`
	Brokers  []string      `placeholder:"HOST:PORT" help:"Run on this Kafka instead of an embedded one. The demo creates topics of its own there, and removes them."`
	ActTime  time.Duration `default:"3s" help:"How long each act goes on at least."`
	REST     string        `name:"rest" default:"127.0.0.1:8081" placeholder:"ADDR" help:"Serve the Web UI and the REST API there (${default}); off for nowhere."`
	Act      int           `placeholder:"N" help:"End after act N instead of the last."`
	Hold     bool          `help:"Keep the last job running until interrupted; with --act, as it is in that act."`

	restOptions []lowwater.RESTOption // of tests
}

// Help is what `lowwater demo --help` adds.
func (*demoCommand) Help() string {
	var b strings.Builder
	b.WriteString("Scenarios:\n")
	for _, s := range scenarios {
		fmt.Fprintf(&b, "\n    %-21s  %s (%d acts)", s.name, s.summary, s.acts)
	}
	b.WriteString("\n\nTo look at a stall in the Web UI, or with lowwater why and lowwater top:\n\n    lowwater demo quiet-partition --act 2 --hold")
	b.WriteString("\n\nThe exit code is 1 if an act does not show what it promised.")
	return b.String()
}

// Validate is called by kong.
func (c *demoCommand) Validate() error {
	if c.ActTime <= 0 {
		return fmt.Errorf("--act-time=%v: must be positive", c.ActTime)
	}
	s, err := scenarioNamed(c.Scenario)
	if err == nil && (c.Act < 0 || c.Act > s.acts) {
		err = fmt.Errorf("--act=%d: %s has acts 1 to %d", c.Act, s.name, s.acts)
	}
	return err
}

// Run plays the scenario until it has ended or the user interrupts it. A second
// interrupt ends the process at once.
func (c *demoCommand) Run(stdout io.Writer) error {
	scenario, err := scenarioNamed(c.Scenario)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return c.play(ctx, scenario, stdout)
}

// play sets the stage for a scenario, plays it and clears up.
func (c *demoCommand) play(ctx context.Context, s scenario, stdout io.Writer) (err error) {
	screen := newScreen(stdout)
	b, err := newBroker(ctx, c.Brokers, s.topics)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	shops, err := openShops(b)
	if err != nil {
		return err
	}
	defer shops.close()
	server, err := c.serve(screen)
	if err != nil {
		return err
	}
	if server != nil {
		defer func() { err = errors.Join(err, server.Close()) }()
	}
	stage := &stage{screen: screen, broker: b, shops: shops, actTime: c.ActTime, scenario: s.name, server: server, hold: c.Hold, lastAct: c.Act}
	defer func() { err = errors.Join(err, stage.current.finish()) }()
	if err := s.play(ctx, stage); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if stage.acts == 1 {
		screen.lines("", "1 act, as promised.")
	} else {
		screen.lines("", fmt.Sprintf("%d acts, all as promised.", stage.acts))
	}
	if c.Hold {
		return stage.holdOn(ctx)
	}
	return nil
}
