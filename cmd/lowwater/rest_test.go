package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/rest"
)

// safeBuffer is a buffer that one goroutine writes and another reads.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestDemoHolds: with --hold the last job goes on after the acts, its server answers, and an
// interrupt ends both without an error. The usual port is taken here, so another is used.
func TestDemoHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	listen := func(network, address string) (net.Listener, error) {
		if address == lowwater.DefaultRESTAddr {
			return nil, &net.OpError{Op: "listen", Net: network, Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
		}
		return net.Listen(network, address)
	}
	s, err := scenarioNamed("processing-time")
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out safeBuffer
	ended := make(chan error, 1)
	go func() {
		c := &demoCommand{
			ActTime: 100 * time.Millisecond, REST: lowwater.DefaultRESTAddr, Hold: true,
			restOptions: []lowwater.RESTOption{func(c *rest.Config) { c.Listen = listen }},
		}
		ended <- c.play(ctx, s, &out)
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !strings.Contains(out.String(), "goes on until you interrupt it"); {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("%v\n%s", err, &out)
		case <-deadline:
			t.Fatalf("the acts do not end:\n%s", &out)
		}
	}
	address := regexp.MustCompile(`Web UI and REST API: (http://127\.0\.0\.1:\d+/) \(port 8081 is taken\)`).FindStringSubmatch(out.String())
	if address == nil {
		t.Fatalf("no address:\n%s", &out)
	}
	var overview bytes.Buffer
	answer, err := http.Get(address[1] + "jobs/overview")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := overview.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	if text := overview.String(); strings.Count(text, `"name":"processing-time"`) != 2 || strings.Count(text, `"state":"RUNNING"`) != 1 {
		t.Errorf("jobs: %s", text)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(address[1]); err == nil {
		t.Error("the server is still there")
	}
}
