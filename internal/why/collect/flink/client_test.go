package flink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/why"
)

// TestLongRequests: a vertex with many subtasks is asked in pieces.
func TestLongRequests(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	for path, metrics := range f.Metrics {
		if metrics["0.count_per_key.numRecordsIn"] == "" {
			continue
		}
		for i := range 400 {
			f.Metrics[path][fmt.Sprintf("%d.count_per_key.numRecordsOut", i)] = "3"
		}
	}
	e := open(t, f)
	if f.longest > 4096 || f.longest < 3000 {
		t.Errorf("the longest request line has %d bytes", f.longest)
	}
	for _, sub := range e.History[0].Subtasks {
		if sub.Operator == "count per key" && sub.RecordsOut != why.Know[int64](3) {
			t.Errorf("subtask %d: %+v", sub.Index, sub.RecordsOut)
		}
	}
}

func TestToken(t *testing.T) {
	f := loadCluster(t, "quiet-2.3.0")
	f.token = "s3cret"
	if _, err := f.serve(t, Options{Token: "s3cret"}).Jobs(t.Context()); err != nil {
		t.Error(err)
	}
	_, err := f.serve(t, Options{Token: "wr0ng"}).Jobs(t.Context())
	if err == nil || !strings.Contains(err.Error(), "HTTP 401: who are you?") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("error %v", err)
	}
}

// TestTokenStaysWithItsHost: a redirect elsewhere is not followed.
func TestTokenStaysWithItsHost(t *testing.T) {
	var leaked string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked = r.Header.Get("Authorization") }))
	defer other.Close()
	here := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer here.Close()
	c, err := NewClient(Options{URL: here.URL, Token: "s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Jobs(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects to another host") || leaked != "" {
		t.Errorf("error %v, leaked %q", err, leaked)
	}
}

// TestTokenStaysInTLS: a redirect to clear text is not followed.
func TestTokenStaysInTLS(t *testing.T) {
	var leaked string
	clear := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked = r.Header.Get("Authorization") }))
	defer clear.Close()
	// Both schemes are served at the same host and port: the transport goes where it is told.
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/", http.StatusFound)
	}))
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	first := true
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		to := clear
		if first {
			first, to = false, secure
		}
		return new(net.Dialer).DialContext(ctx, network, to.Listener.Addr().String())
	}
	c, err := NewClient(Options{URL: secure.URL, Token: "s3cret", TLS: &tls.Config{RootCAs: roots}, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Jobs(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects from https to http") || leaked != "" {
		t.Errorf("error %v, leaked %q", err, leaked)
	}
}

// TestSecretsInURL are not shown, whether the URL is one of a REST API or not.
func TestSecretsInURL(t *testing.T) {
	c, err := NewClient(Options{URL: "http://hunter2:hunter2@host:1/proxy?token=hunter2#hunter2"})
	if err != nil || c.String() != "http://host:1/proxy" {
		t.Errorf("%v, %v", c, err)
	}
	for _, url := range []string{"ftp://hunter2@host", "host?token=hunter2", "host#hunter2", "ftp://me:hunt?er2@host/x", "host?token=hunt@er2", "ftp://hunter2@host?hunter2"} {
		if _, err := NewClient(Options{URL: url}); err == nil || strings.Contains(err.Error(), "hunt") || strings.Contains(err.Error(), "er2") {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := []struct{ body, want string }{
		{`{"errors":["org.apache.flink.runtime.rest.NotFoundException: no such job\n\tat x.y"]}`, "HTTP 500: no such job"},
		{`<html>`, "HTTP 500: Internal Server Error"},
	}
	for _, test := range tests {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(test.body))
		}))
		c, err := NewClient(Options{URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Jobs(t.Context()); err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.body, err, test.want)
		}
		server.Close()
	}
	for _, url := range []string{"", "localhost:8081", "ftp://x", "http://"} {
		if _, err := NewClient(Options{URL: url}); err == nil {
			t.Errorf("URL %q is accepted", url)
		}
	}
	if _, err := NewClient(Options{URL: "ftp://me:pw@host"}); strings.Contains(err.Error(), "pw") {
		t.Errorf("the password is shown: %v", err)
	}
}

// TestNotJSON: something else than Flink answers.
func TestNotJSON(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer server.Close()
	c, err := NewClient(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Jobs(t.Context()); err == nil || !strings.Contains(err.Error(), "is not what Flink sends") {
		t.Errorf("error %v", err)
	}
}
