package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lowwater/lowwater/internal/why/collect/flink"
)

// clusterFlags say how to reach the REST interface of a Flink cluster, or of a job of
// ours. The token comes from a file only, and is never printed.
type clusterFlags struct {
	URL       string        `name:"url" default:"http://localhost:8081" placeholder:"URL" help:"The monitoring REST interface."`
	Job       string        `placeholder:"ID|NAME" help:"The job; may be left out if only one runs."`
	TokenFile string        `name:"token-file" placeholder:"FILE" help:"Send the bearer token in this file."`
	CA        string        `name:"ca" placeholder:"FILE" help:"Trust the certificates in this PEM file."`
	Timeout   time.Duration `default:"10s" help:"How long each request may take."`

	dial func(ctx context.Context, network, address string) (net.Conn, error) // of tests
}

func (c *clusterFlags) validate() error {
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout=%v: must be positive", c.Timeout)
	}
	return nil
}

// client returns a client. The caller closes it.
func (c *clusterFlags) client() (*flink.Client, error) {
	o := flink.Options{URL: c.URL, Timeout: c.Timeout, Dial: c.dial}
	var err error
	if c.TokenFile != "" {
		if o.Token, err = readSecret(c.TokenFile); err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
	}
	if c.CA != "" {
		if o.TLS, err = tlsConfig(c.CA); err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
	}
	client, err := flink.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	return client, nil
}

// exitError ends the command with an exit code of its own; without err nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// blind gives what kept a command from looking an exit code that is not that of a finding.
func blind(err error) error {
	var exit *exitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return &exitError{exitBlind, err}
}

// exitCode returns what an error of a command ends it with, and whether it is to be
// printed.
func exitCode(err error) (code int, print bool) {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code, exit.err != nil
	}
	return exitFailed, true
}
