//go:build lowwater_s3 && lowwater_gcs && lowwater_azure

package objectstores

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// server is an object store with one bucket.
type server struct {
	name string
	*gate
	// bucket is the address of the bucket, options those of every address.
	bucket, options string
}

// address returns that of a directory.
func (s *server) address(dir string) string { return s.bucket + "/" + dir + s.options }

// servers are those that run, by name.
var servers = map[string]*server{}

// eachServer runs a test on every server.
func eachServer(t *testing.T, test func(t *testing.T, s *server)) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// gate is in front of a server and disturbs it.
type gate struct {
	url  string
	next atomic.Pointer[http.Handler]
	mu   sync.Mutex
	// disturb is asked for every request; it returns false if it has dealt with it.
	disturb func(w http.ResponseWriter, r *http.Request) bool
}

func newGate() *gate {
	g := &gate{}
	g.url = httptest.NewServer(g).URL // until the process ends
	return g
}

func (g *gate) serve(next http.Handler) { g.next.Store(&next) }

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	disturb := g.disturb
	g.mu.Unlock()
	if disturb == nil || disturb(w, r) {
		(*g.next.Load()).ServeHTTP(w, r)
	}
}

// disturbed has f asked until the test ends, or until the returned function is called.
func (g *gate) disturbed(t *testing.T, f func(w http.ResponseWriter, r *http.Request) bool) (end func()) {
	set := func(f func(w http.ResponseWriter, r *http.Request) bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.disturb = f
	}
	set(f)
	t.Cleanup(func() { set(nil) })
	return func() { set(nil) }
}

// gone is a server that closes every connection.
func gone(w http.ResponseWriter, _ *http.Request) bool {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = c.Close() // that is the point
	}
	return false
}

// silentWrites is a server that takes what is written and does not answer.
func silentWrites(_ http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPut && r.Method != http.MethodPost {
		return true
	}
	_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
	<-r.Context().Done()
	return false
}

// late is a server as far away as d.
func late(d time.Duration) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-time.After(d):
			return true
		case <-r.Context().Done():
			return false
		}
	}
}

func TestMain(m *testing.M) {
	if err := startS3(); err != nil {
		panic(fmt.Errorf("S3: %w", err))
	}
	if err := startGCS(); err != nil {
		panic(fmt.Errorf("Google Cloud Storage: %w", err))
	}
	stop, err := startAzure()
	if err != nil {
		panic(fmt.Errorf("Azure: %w", err))
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

const (
	secret      = "SECRET-0123456789"
	bucketName  = "checkpoints"
	azuriteHelp = "make objectstores fetches it"
)

func setenv(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if err := os.Setenv(pairs[i], pairs[i+1]); err != nil {
			panic(err)
		}
	}
}

func startS3() error {
	backend := s3mem.New()
	if err := backend.CreateBucket(bucketName); err != nil {
		return err
	}
	g := newGate()
	g.serve(gofakes3.New(backend).Server())
	setenv("AWS_ACCESS_KEY_ID", "key", "AWS_SECRET_ACCESS_KEY", secret, "AWS_EC2_METADATA_DISABLED", "true")
	servers["s3"] = &server{"s3", g, "s3://" + bucketName, "?region=us-east-1&use_path_style=true&endpoint=" + g.url}
	return nil
}

func startGCS() error {
	g := newGate()
	gcs, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Scheme: "http", ExternalURL: g.url, PublicHost: strings.TrimPrefix(g.url, "http://")})
	if err != nil {
		return err
	}
	gcs.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucketName})
	g.serve(gcs.HTTPHandler())
	setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(g.url, "http://"))
	servers["gcs"] = &server{"gcs", g, "gs://" + bucketName, ""}
	return nil
}

// The account that Azurite comes with, and its key, which is no secret.
const (
	azureAccount = "devstoreaccount1"
	azureKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// azurite returns the program, or what there is instead.
func azurite() (string, error) {
	dir := os.Getenv("LOWWATER_AZURITE")
	if dir == "" {
		return "", errors.New("not tested on Azure's protocol, because LOWWATER_AZURITE does not say where Azurite is: " + azuriteHelp)
	}
	return filepath.Join(dir, "node_modules", "azurite", "dist", "src", "blob", "main.js"), nil
}

// startAzure starts Azurite if there is one.
func startAzure() (stop func(), err error) {
	program, err := azurite()
	if err != nil {
		return func() {}, nil // TestAzurite says so
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		return nil, err
	}
	process := exec.Command("node", program, "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobHost", host, "--blobPort", port)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		_ = process.Process.Kill()
		_ = process.Wait() // it was killed
	}
	direct := "http://" + net.JoinHostPort(host, port)
	if err := createContainer(direct); err != nil {
		stop()
		return nil, err
	}
	target, err := url.Parse(direct)
	if err != nil {
		stop()
		return nil, err
	}
	g := newGate()
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of requests that were given up
	g.serve(proxy)
	setenv("AZURE_STORAGE_ACCOUNT", azureAccount, "AZURE_STORAGE_KEY", azureKey)
	servers["azure"] = &server{"azure", g, "azblob://" + bucketName, "?protocol=http&localemu=true&domain=" + strings.TrimPrefix(g.url, "http://")}
	return stop, nil
}

// createContainer waits for Azurite and creates the container.
func createContainer(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	key, err := base64.StdEncoding.DecodeString(azureKey)
	if err != nil {
		return err
	}
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/"+azureAccount+"/"+bucketName+"?restype=container", nil)
		if err != nil {
			return err
		}
		date := time.Now().UTC().Format(http.TimeFormat)
		r.Header.Set("x-ms-date", date)
		r.Header.Set("x-ms-version", "2021-12-02")
		toSign := "PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:" + date + "\nx-ms-version:2021-12-02\n/" + azureAccount + "/" + azureAccount + "/" + bucketName + "\nrestype:container"
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, toSign) // never fails
		r.Header.Set("Authorization", "SharedKey "+azureAccount+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		response, err := http.DefaultClient.Do(r)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close() // it was read
			if response.StatusCode != http.StatusCreated {
				return fmt.Errorf("%s: %s", response.Status, body)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("Azurite does not answer: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func TestAzurite(t *testing.T) {
	if _, err := azurite(); err != nil {
		t.Skip(err)
	}
}
