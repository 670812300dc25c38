package rest_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/status"
)

// pipes is a listener whose connections are pipes, so that virtual time passes on them.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.accepted <- server
	return client, nil
}

// TestTicksOfManyJobs: a stream ticks once a second, though each of many jobs has news once a
// second at a time of its own.
func TestTicksOfManyJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
		server, err := rest.Listen(rest.Config{Logger: quiet(), Listen: func(string, string) (net.Listener, error) { return network, nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		const jobs, seconds = 20, 30
		for range jobs {
			job := newFakeJob(status.Running)
			defer close(job.done)
			server.Jobs().Add(job)
			time.Sleep(time.Second / jobs)
		}
		transport := &http.Transport{DialContext: network.dial}
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:8081/lowwater/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Body.Close()
		ticks := 0
		begin := time.Now()
		for lines := bufio.NewScanner(stream.Body); time.Since(begin) < seconds*time.Second && lines.Scan(); {
			if strings.HasPrefix(lines.Text(), "data: ") {
				ticks++
			}
		}
		if ticks < seconds-1 || ticks > seconds+1 {
			t.Errorf("%d ticks in %d s", ticks, seconds)
		}
	})
}
