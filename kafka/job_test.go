//go:build synctests

package kafka_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
	"github.com/lowwater/lowwater/kafka"
)

// buffer is a log that goroutines share.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestJobsThatCannotOpen: a source or sink that cannot be opened ends the job with the
// reason, and nothing else goes wrong.
func TestJobsThatCannotOpen(t *testing.T) {
	dead := kafka.ClientOptions(kgo.Dialer(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}))
	type job struct {
		name   string
		source []kafka.SourceOption
		sink   []kafka.SinkOption
		want   []string
	}
	tests := []job{
		{name: "source topic", source: []kafka.SourceOption{kafka.Topics("nowhere")}, want: []string{`topic "nowhere" does not exist`}},
		{name: "sink topic", sink: []kafka.SinkOption{kafka.Topic("nowhere")}, want: []string{`topic "nowhere" does not exist`}},
		{name: "source broker", source: []kafka.SourceOption{dead}, want: []string{"no answer from", "connection refused"}},
		{name: "sink broker", sink: []kafka.SinkOption{dead}, want: []string{"no answer from", "connection refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := kafkatest.Start(t)
				c.CreateTopic(t, "in", 2)
				c.CreateTopic(t, "out", 1)
				c.Produce(t, "in", kafkatest.Text(0, 1, "", "a"))
				reach := []kafka.Option{kafka.Brokers(c.Brokers()...), kafka.ClientOptions(c.Options()...), kafka.StartupTimeout(3 * time.Second)}
				source := []kafka.SourceOption{kafka.Topics("in"), kafka.Bounded()}
				sink := []kafka.SinkOption{kafka.Topic("out")}
				for _, o := range reach {
					source, sink = append(source, o), append(sink, o)
				}
				var log buffer
				env := lowwater.NewEnvironment(lowwater.WithParallelism(2), lowwater.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				lowwater.FromSource(env, kafka.NewSource(raw.String{}, append(source, tt.source...)...), eventtime.NoWatermarks[string](), "in").
					SinkTo(kafka.NewSink(raw.String{}, append(sink, tt.sink...)...))
				err := env.Execute(t.Context(), "job")
				if err == nil {
					t.Fatal("the job ran")
				}
				for _, want := range tt.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q does not mention %q", err, want)
					}
				}
				if all := log.String() + err.Error(); strings.Contains(all, "panic") {
					t.Errorf("something panicked:\n%s", all)
				}
			})
		})
	}
}

// TestFailuresReturnNothing: what could not be opened is nil, not an interface that holds
// a nil pointer, which a caller would close.
func TestFailuresReturnNothing(t *testing.T) {
	bad := kafka.ClientOptions(kgo.BrokerMaxReadBytes(-1))
	src := kafka.NewSource(raw.String{}, kafka.Brokers("localhost"), kafka.Topics("in"), bad)
	snk := kafka.NewSink(raw.String{}, kafka.Brokers("localhost"), kafka.Topic("out"), bad)
	log := slog.New(slog.DiscardHandler)
	if e, err := src.NewEnumerator(t.Context(), connector.SourceRuntime{Logger: log}); e != nil || err == nil {
		t.Errorf("NewEnumerator = %#v, %v", e, err)
	}
	if r, err := src.NewReader(t.Context(), connector.ReaderRuntime{Logger: log}); r != nil || err == nil {
		t.Errorf("NewReader = %#v, %v", r, err)
	}
	if w, err := snk.NewWriter(t.Context(), connector.WriterRuntime{Logger: log}); w != nil || err == nil {
		t.Errorf("NewWriter = %#v, %v", w, err)
	}
}
