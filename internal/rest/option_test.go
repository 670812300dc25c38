package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/kafka"
)

// jobsAt asks a server for its jobs.
func jobsAt(t *testing.T, addr string) (names []string, err error) {
	t.Helper()
	answer, err := http.Get("http://" + addr + "/jobs/overview")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var overview struct {
		Jobs []struct{ Name, State string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&overview); err != nil {
		t.Fatal(err)
	}
	for _, j := range overview.Jobs {
		names = append(names, j.Name+" "+j.State)
	}
	return names, nil
}

// endless is a job that reads a topic for ever.
func endless(t *testing.T, options ...lowwater.Option) *lowwater.Environment {
	t.Helper()
	cluster := kafkatest.Start(t)
	cluster.CreateTopic(t, "orders", 1)
	env := lowwater.NewEnvironment(append(options, lowwater.WithLogger(quiet()))...)
	source := kafka.NewSource(raw.String{}, kafka.Brokers(cluster.Brokers()...), kafka.Topics("orders"), kafka.ClientOptions(cluster.Options()...))
	lowwater.FromSource(env, source, eventtime.NoWatermarks[string](), "orders").SinkFunc(func(context.Context, string) error { return nil })
	return env
}

// TestWithREST: the server is there while the job runs, and gone when it has been waited
// for.
func TestWithREST(t *testing.T) {
	job, err := endless(t, lowwater.WithREST("127.0.0.1:0")).Start(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	addr := job.RESTAddr()
	if names, err := jobsAt(t, addr); err != nil || len(names) != 1 || names[0] != "orders RUNNING" {
		t.Errorf("jobs %q, %v", names, err)
	}
	job.Stop()
	if err := job.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := jobsAt(t, addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the server answers after its job, or fails with %v", err)
	}
}

// TestServerTellsOfItsLastSavepoint: who stops a job with a savepoint hears where it is,
// although the server ends with the job.
func TestServerTellsOfItsLastSavepoint(t *testing.T) {
	job, err := endless(t, lowwater.WithREST("127.0.0.1:0"), lowwater.WithCheckpoints("file://"+t.TempDir(), time.Hour)).Start(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	path := "http://" + job.RESTAddr() + "/jobs/" + firstJob(t, "http://"+job.RESTAddr())
	id := field(t, request(t, "POST", path+"/stop", "{}").body, "request-id").(string)
	<-job.Done()
	var result any
	await(t, "result", func() bool {
		result = request(t, "GET", path+"/savepoints/"+id, "").body
		return field(t, result, "status", "id") == "COMPLETED"
	})
	if field(t, result, "operation", "location") == "" {
		t.Errorf("the stop came to %v", result)
	}
	begin := time.Now()
	if err := job.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took >= rest.LingerTimeout {
		t.Errorf("the server stayed for %v after it was asked", took)
	}
}

// TestWithRESTFails: without its server a job does not start, and without its job no
// server stays.
func TestWithRESTFails(t *testing.T) {
	other, err := lowwater.ServeREST("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for want, option := range map[string]lowwater.Option{
		"address already in use":                      lowwater.WithREST(other.Addr()),
		"refusing to listen on 0.0.0.0:0":             lowwater.WithREST("0.0.0.0:0"),
		"REST server: the token is empty":             lowwater.WithREST("127.0.0.1:0", lowwater.RESTToken("")),
		"REST server: an option is nil":               lowwater.WithREST("127.0.0.1:0", nil),
		"both a certificate file and a key file":      lowwater.WithREST("127.0.0.1:0", lowwater.RESTWithTLS("cert.pem", "")),
		"option_test.go":                              lowwater.WithRESTServer(nil),
		"allowed origin \"anything\": must be scheme": lowwater.WithREST("127.0.0.1:0", lowwater.RESTAllowedOrigins("anything")),
	} {
		job, err := endless(t, option).Start(t.Context(), "orders")
		if err == nil {
			job.Cancel()
			t.Errorf("no error, want %q", want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
	cluster := kafkatest.Start(t)
	env := lowwater.NewEnvironment(lowwater.WithREST("127.0.0.1:0"), lowwater.WithLogger(quiet()))
	source := kafka.NewSource(raw.String{}, kafka.Brokers(cluster.Brokers()...), kafka.Topics("missing"), kafka.ClientOptions(cluster.Options()...))
	lowwater.FromSource(env, source, eventtime.NoWatermarks[string](), "orders").SinkFunc(func(context.Context, string) error { return nil })
	if _, err := env.Start(t.Context(), "orders"); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v", err)
	}
}

// TestWithRESTServer: several jobs on one server, which shows them also when they have
// ended.
func TestWithRESTServer(t *testing.T) {
	server, err := lowwater.ServeREST("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		job, err := endless(t, lowwater.WithRESTServer(server)).Start(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "first" {
			job.Cancel()
			if err := job.Wait(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		defer job.Cancel()
	}
	if names, err := jobsAt(t, server.Addr()); err != nil || strings.Join(names, ", ") != "first CANCELED, second RUNNING" {
		t.Errorf("jobs %q, %v", names, err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}

// onIPv6 says that a listener has an address of IPv6, which not every machine has.
type onIPv6 struct{ net.Listener }

func (l onIPv6) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv6loopback, Port: l.Listener.Addr().(*net.TCPAddr).Port}
}

func TestConfigOnIPv6(t *testing.T) {
	var listener net.Listener
	server, err := rest.Listen(rest.Config{Addr: "[::1]:0", Logger: quiet(), Listen: func(string, string) (l net.Listener, err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return onIPv6{listener}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	values := map[string]any{}
	for _, entry := range request(t, "GET", "http://"+listener.Addr().String()+"/jobmanager/config", "").body.([]any) {
		values[field(t, entry, "key").(string)] = field(t, entry, "value")
	}
	if values["rest.address"] != "::1" || values["rest.port"] != strconv.Itoa(listener.Addr().(*net.TCPAddr).Port) {
		t.Errorf("%v", values)
	}
}
