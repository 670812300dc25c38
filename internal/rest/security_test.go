package rest_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// certificate writes a certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lowwater test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// TestRefusedSettings: a server that would expose jobs, or could not work, does not start.
func TestRefusedSettings(t *testing.T) {
	cert, key := certificate(t)
	tests := map[string]struct {
		cfg  rest.Config
		want string
	}{
		"all interfaces":      {rest.Config{Addr: "0.0.0.0:0"}, "refusing to listen on 0.0.0.0:0: whoever reaches that address could see and cancel jobs"},
		"no host":             {rest.Config{Addr: ":0"}, "refusing to listen on :0"},
		"all IPv6 interfaces": {rest.Config{Addr: "[::]:0"}, "refusing to listen"},
		"another machine's":   {rest.Config{Addr: "192.0.2.1:0"}, "or set a token, or TLS"},
		"a name":              {rest.Config{Addr: "jobs.example.com:0"}, "refusing to listen"},
		"a token with a line": {rest.Config{Addr: "127.0.0.1:0", Token: "open sesame\n"}, "was it read with the end of its line?"},
		"a token in pieces":   {rest.Config{Addr: "127.0.0.1:0", Token: "open\x00sesame"}, "control character"},
		"an empty token":      {rest.Config{Addr: "127.0.0.1:0", NeedsToken: true}, "read from a variable that is not set?"},
		"no port":             {rest.Config{Addr: "127.0.0.1"}, "must be host:port"},
		"a key alone":         {rest.Config{Addr: "127.0.0.1:0", KeyFile: key}, "both a certificate file and a key file"},
		"a missing file":      {rest.Config{Addr: "127.0.0.1:0", CertFile: cert, KeyFile: key + "x"}, "TLS certificate or key"},
		"an origin with path": {rest.Config{Addr: "127.0.0.1:0", AllowedOrigins: []string{"https://a.example/x"}}, "scheme://host"},
		"every origin":        {rest.Config{Addr: "127.0.0.1:0", AllowedOrigins: []string{"*"}}, "scheme://host"},
	}
	for name, test := range tests {
		test.cfg.Logger = quiet()
		server, err := rest.Listen(test.cfg)
		if err == nil {
			server.Close()
			t.Errorf("%s: started", name)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %q, want %q in it", name, err, test.want)
		}
	}
	for name, cfg := range map[string]rest.Config{
		"all interfaces with a token": {Addr: "0.0.0.0:0", Token: "t"},
		"all interfaces with TLS":     {Addr: "0.0.0.0:0", CertFile: cert, KeyFile: key},
		"localhost":                   {Addr: "localhost:0"},
		"IPv4 loopback":               {Addr: "127.0.0.2:0"},
	} {
		cfg.Logger = quiet()
		server, err := rest.Listen(cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		server.Close()
	}
}

func listen(t *testing.T, cfg rest.Config) (*rest.Server, string) {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Logger == nil {
		cfg.Logger = quiet()
	}
	server, err := rest.Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, strings.TrimSuffix(server.URL(), "/")
}

// script returns the path of the UI's script.
func script(t *testing.T, base string) string {
	t.Helper()
	page := request(t, "GET", base+"/", "")
	m := regexp.MustCompile(`src="\.?(/assets/[^"]+\.js)"`).FindStringSubmatch(page.text)
	if m == nil {
		t.Fatalf("no script in the UI's page: %.300s", page.text)
	}
	return m[1]
}

// TestWhoMayAsk goes through what a request may bring.
func TestWhoMayAsk(t *testing.T) {
	plain, plainURL := listen(t, rest.Config{})
	_, tokenURL := listen(t, rest.Config{Token: "open sesame"})
	_, originURL := listen(t, rest.Config{AllowedOrigins: []string{"https://dashboards.example"}})
	job := newFakeJob(status.Running)
	path := "/jobs/" + plain.Jobs().Add(job).ID
	host := plain.Addr().String()
	basic := func(password string) string {
		r, _ := http.NewRequest("GET", "http://x", nil)
		r.SetBasicAuth("anyone", password)
		return r.Header.Get("Authorization")
	}
	tests := []struct {
		name, method, url string
		header            []string
		want              int
	}{
		{"plain", "GET", plainURL + "/jobs", nil, 200},
		{"by the name localhost", "GET", plainURL + "/jobs", []string{"Host", "localhost:8081"}, 200},
		{"by IPv6", "GET", plainURL + "/jobs", []string{"Host", "[::1]:8081"}, 200},
		{"by a name that was made to point here", "GET", plainURL + "/jobs", []string{"Host", "evil.example"}, 403},
		{"by a name that begins well", "GET", plainURL + "/jobs", []string{"Host", "127.0.0.1.evil.example:80"}, 403},
		{"the UI by such a name", "GET", plainURL + "/", []string{"Host", "evil.example"}, 403},
		{"metrics by such a name", "GET", plainURL + "/metrics", []string{"Host", "evil.example"}, 403},
		{"cancel from a page of another server", "PATCH", plainURL + path + "?mode=cancel", []string{"Origin", "https://evil.example"}, 403},
		{"cancel from a page, by what browsers add", "PATCH", plainURL + path + "?mode=cancel", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"cancel from a page of another port", "PATCH", plainURL + path + "?mode=cancel", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"cancel from a frame without an origin", "PATCH", plainURL + path + "?mode=cancel", []string{"Origin", "null"}, 403},
		{"cancel by a program", "PATCH", plainURL + path + "?mode=cancel", nil, 202},
		{"cancel from the UI", "PATCH", plainURL + path + "?mode=cancel", []string{"Origin", "http://" + host, "Sec-Fetch-Site", "same-origin"}, 202},
		{"without a token", "GET", tokenURL + "/jobs", nil, 401},
		{"the UI without a token", "GET", tokenURL + "/", nil, 200},
		{"the UI's script without a token", "GET", tokenURL + script(t, tokenURL), nil, 200},
		{"the UI by the version's path", "GET", tokenURL + "/v1/", nil, 401},
		{"what is no file of the UI", "GET", tokenURL + "/assets/other.js", nil, 401},
		{"a folder of the UI", "GET", tokenURL + "/assets/", nil, 401},
		{"a change of the UI", "POST", tokenURL + "/", nil, 401},
		{"metrics without a token", "GET", tokenURL + "/metrics", nil, 401},
		{"events without a token", "GET", tokenURL + "/lowwater/events", nil, 401},
		{"the description without a token", "GET", tokenURL + "/lowwater/openapi.yaml", nil, 401},
		{"with a wrong token", "GET", tokenURL + "/jobs", []string{"Authorization", "Bearer open"}, 401},
		{"with an empty token", "GET", tokenURL + "/jobs", []string{"Authorization", "Bearer "}, 401},
		{"with the token in another scheme", "GET", tokenURL + "/jobs", []string{"Authorization", "open sesame"}, 401},
		{"with the token", "GET", tokenURL + "/jobs", []string{"Authorization", "Bearer open sesame"}, 200},
		{"with the token, its scheme in small letters", "GET", tokenURL + "/jobs", []string{"Authorization", "bearer open sesame"}, 200},
		{"with the token as a password", "GET", tokenURL + "/jobs", []string{"Authorization", basic("open sesame")}, 200},
		{"with a wrong password", "GET", tokenURL + "/jobs", []string{"Authorization", basic("")}, 401},
		{"with the token by any name", "GET", tokenURL + "/jobs", []string{"Authorization", "Bearer open sesame", "Host", "jobs.example"}, 200},
		{"with the token from a page of another server", "POST", tokenURL + path + "/stop", []string{"Authorization", basic("open sesame"), "Origin", "https://evil.example"}, 403},
		{"read by an allowed page", "GET", originURL + "/jobs", []string{"Origin", "https://dashboards.example"}, 200},
		{"asked by an allowed page", "OPTIONS", originURL + "/jobs", []string{"Origin", "https://dashboards.example"}, 204},
		{"asked by another page", "OPTIONS", originURL + "/jobs", []string{"Origin", "https://evil.example"}, 404},
	}
	for _, test := range tests {
		got := request(t, test.method, test.url, "", test.header...)
		if got.status != test.want {
			t.Errorf("%s: status %d, want %d: %s", test.name, got.status, test.want, got.text)
		}
		if allowed := got.header.Get("Access-Control-Allow-Origin"); allowed != "" && !strings.Contains(test.name, "allowed page") {
			t.Errorf("%s: the answer allows origin %q", test.name, allowed)
		}
		if vary := got.header.Get("Vary") == "Origin"; vary != strings.HasPrefix(test.url, originURL) {
			t.Errorf("%s: the answer varies with the origin: %v", test.name, vary)
		}
		if got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: no nosniff", test.name)
		}
		if challenge := got.header.Values("WWW-Authenticate"); test.want == 401 && !slices.Equal(challenge, []string{`Bearer realm="lowwater"`}) {
			t.Errorf("%s: 401 with the challenge %q, want one that browsers show no dialog for", test.name, challenge)
		}
	}
	close(job.calls)
	n := 0
	for call := range job.calls {
		if n++; call != "cancel" {
			t.Errorf("the job was told to %s", call)
		}
	}
	if n != 2 {
		t.Errorf("the job was cancelled %d times, want 2: by a program and by the UI", n)
	}
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	server, base := listen(t, rest.Config{CertFile: cert, KeyFile: key})
	pool := x509.NewCertPool()
	data, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(data) {
		t.Fatal("no certificate", err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	got, err := client.Get(base + "/jobs")
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 200 || got.TLS.Version < tls.VersionTLS12 || !strings.HasPrefix(base, "https://") {
		t.Errorf("status %d by TLS %x of %s", got.StatusCode, got.TLS.Version, base)
	}
	if a := request(t, "GET", "http://"+server.Addr().String()+"/jobs", ""); a.status != 400 {
		t.Errorf("without TLS: status %d", a.status)
	}
}

// TestNothingEscapes: no path leads to a file that is not the UI's.
func TestNothingEscapes(t *testing.T) {
	_, base := listen(t, rest.Config{})
	for _, path := range []string{"/..%2f..%2fgo.mod", "/%2e%2e/go.mod", "/assets/..%2f..%2fweb.go", "//etc/passwd", "/assets", "/assets/", "/index.html%00", "/..\\..\\go.mod", "/web.go"} {
		got := request(t, "GET", base+path, "")
		if got.status == 200 || strings.Contains(got.text, "module github.com") || strings.Contains(got.text, "root:") {
			t.Errorf("%s: status %d: %.100s", path, got.status, got.text)
		}
	}
	if got := request(t, "GET", base+"/", ""); got.status != 200 || !strings.Contains(got.text, "<html") || got.header.Get("Content-Security-Policy") == "" {
		t.Errorf("the UI: status %d, %v", got.status, got.header)
	}
}

// TestRequestLimits: what is too large is refused, and not read.
func TestRequestLimits(t *testing.T) {
	server, base := listen(t, rest.Config{})
	job := newFakeJob(status.Running)
	job.checkpoints = fakeCheckpoints{}
	path := base + "/jobs/" + server.Jobs().Add(job).ID + "/savepoints"
	if got := request(t, "POST", path, `{"target-directory": "`+strings.Repeat("x", 1<<17)+`"}`); got.status != 413 {
		t.Errorf("a body of 128 KiB: status %d: %.200s", got.status, got.text)
	}
	if got := request(t, "GET", base+"/jobs", "", "X-Long", strings.Repeat("x", 1<<16)); got.status != 431 {
		t.Errorf("a header of 64 KiB: status %d", got.status)
	}
	if got := request(t, "GET", base+"/jobs/"+strings.Repeat("x", 1<<16), ""); got.status != 431 && got.status != 414 && got.status != 400 {
		t.Errorf("a path of 64 KiB: status %d", got.status)
	}
}

// TestSlowBodies: clients that do not send what they promised do not keep others out, and
// are sent away.
func TestSlowBodies(t *testing.T) {
	server, base := listen(t, rest.Config{})
	job := newFakeJob(status.Running)
	job.checkpoints = fakeCheckpoints{}
	path := "/jobs/" + server.Jobs().Add(job).ID + "/savepoints"
	begin := time.Now()
	codes := make(chan int, 70)
	for range cap(codes) {
		c, err := net.Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{", path); err != nil {
			t.Fatal(err)
		}
		go func() {
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				codes <- 0
				return
			}
			answer.Body.Close()
			codes <- answer.StatusCode
		}()
	}
	for range 6 { // of those, 64 are listened to
		if code := <-codes; code != 503 {
			t.Errorf("one too many is told %d, want 503", code)
		}
	}
	if got := request(t, "GET", base+"/jobs", ""); got.status != 200 {
		t.Errorf("beside slow clients: status %d", got.status)
	}
	for range 64 {
		if code := <-codes; code != 408 {
			t.Errorf("a slow client is told %d, want 408", code)
		}
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("slow clients were sent away after %v", took)
	}
	if got := request(t, "POST", base+path, `{"target-directory": "/tmp"}`); got.status != 202 {
		t.Errorf("after them: status %d", got.status)
	}
}

// TestStreamsAreBounded: streams of events have places of their own and do not keep others out.
func TestStreamsAreBounded(t *testing.T) {
	server, base := listen(t, rest.Config{})
	server.Jobs().Add(newFakeJob(status.Running))
	var open []*http.Response
	var mu sync.Mutex
	defer func() {
		for _, r := range open {
			r.Body.Close()
		}
	}()
	refused := 0
	for range 40 {
		r, err := http.Get(base + "/lowwater/events")
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		open = append(open, r)
		mu.Unlock()
		if r.StatusCode == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused != 8 {
		t.Errorf("%d of 40 streams refused, want 8", refused)
	}
	if got := request(t, "GET", base+"/jobs", ""); got.status != 200 {
		t.Errorf("beside the streams: status %d", got.status)
	}
}

const canary = "canary-7f3a9c"

// TestSecretsStayInside: neither the token nor what a source was told is in any answer or
// in the log.
func TestSecretsStayInside(t *testing.T) {
	var log strings.Builder
	var mu sync.Mutex
	logger := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	base, _ := countingJob(t, lowwater.RESTToken(canary), lowwater.RESTLogger(logger))
	header := []string{"Authorization", "Bearer " + canary}
	jid := field(t, request(t, "GET", base+"/jobs", "", header...).body, "jobs", 0, "id").(string)
	vertex := "/jobs/" + jid + "/vertices/" + observe.OperatorID("orders")
	for _, path := range []string{
		"/config", "/overview", "/jobs", "/jobs/overview", "/jobs/" + jid, "/jobs/" + jid + "/plan", "/jobs/" + jid + "/config", "/jobs/" + jid + "/exceptions",
		"/jobs/" + jid + "/jobmanager/config", "/jobs/" + jid + "/jobmanager/environment", "/jobmanager/config", "/jobmanager/environment", "/taskmanagers", vertex,
		vertex + "/metrics", "/metrics", "/applications/" + jid + "/jobmanager/config", "/lowwater/jobs/" + jid + "/graph", "/lowwater/jobs/" + jid + "/splits",
		"/lowwater/jobs/" + jid + "/plan", "/lowwater/jobs/" + jid + "/late", "/lowwater/jobs/" + jid + "/history", "/", "/nothing",
	} {
		got := request(t, "GET", base+path, "", header...)
		if strings.Contains(got.text+fmt.Sprint(got.header), canary) {
			t.Errorf("%s shows the secret: %s", path, got.text)
		}
	}
	if got := request(t, "GET", base+"/jobs", "", "Authorization", "Bearer not-"+canary); strings.Contains(got.text+fmt.Sprint(got.header), canary) {
		t.Errorf("the refusal shows the secret: %s", got.text)
	}
	mu.Lock()
	defer mu.Unlock()
	if strings.Contains(log.String(), canary) {
		t.Errorf("the log shows the secret:\n%s", &log)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestCloseEndsStreams: a server closes although clients listen to its events.
func TestCloseEndsStreams(t *testing.T) {
	server, base := listen(t, rest.Config{})
	server.Jobs().Add(newFakeJob(status.Running))
	r, err := http.Get(base + "/lowwater/events")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	begin := time.Now()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took >= rest.CloseTimeout {
		t.Errorf("closing took %v", took)
	}
	if err := server.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if _, err := http.Get(base + "/jobs"); !errors.Is(err, os.ErrDeadlineExceeded) && err == nil {
		t.Error("a closed server answers")
	}
}
