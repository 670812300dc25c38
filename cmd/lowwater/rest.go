package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"syscall"

	"github.com/lowwater/lowwater"
)

// restOff is the --rest that serves nothing.
const restOff = "off"

// serve starts the server that shows the demo's jobs, nil if there is to be none, and says
// where it is. If the usual port is taken any other will do; one that was asked for is not
// replaced.
func (c *demoCommand) serve(s *screen) (*lowwater.RESTServer, error) {
	if c.REST == "" || c.REST == restOff {
		return nil, nil
	}
	options := append(slices.Clip(c.restOptions), lowwater.RESTLogger(slog.New(warnings{screen: s})))
	server, err := lowwater.ServeREST(c.REST, options...)
	note := ""
	if c.REST == lowwater.DefaultRESTAddr && errors.Is(err, syscall.EADDRINUSE) {
		host, port, _ := net.SplitHostPort(c.REST)
		server, err = lowwater.ServeREST(net.JoinHostPort(host, "0"), options...)
		note = fmt.Sprintf(" (port %s is taken)", port)
	}
	if err != nil {
		return nil, fmt.Errorf("--rest=%s: %w", c.REST, err)
	}
	s.lines(fmt.Sprintf("Web UI and REST API: %s%s", server.URL(), note), "")
	return server, nil
}

// holdOn keeps the last job running until ctx ends.
func (s *stage) holdOn(ctx context.Context) error {
	s.screen.lines("", "The job goes on until you interrupt it (Ctrl-C).")
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.shops.failed:
		return err
	case <-s.current.job.Done():
		return s.current.job.Wait()
	}
}
