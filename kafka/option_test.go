package kafka

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/json"
	"github.com/lowwater/lowwater/format/raw"
)

// sourceOpts are valid options and then others.
func sourceOpts(opts ...SourceOption) []SourceOption {
	return append([]SourceOption{Brokers("localhost:9092"), Topics("orders")}, opts...)
}

func TestSourceValidate(t *testing.T) {
	tests := []struct {
		name string
		opts []SourceOption
		want []string // one line each; none if valid
	}{
		{"least", sourceOpts(), nil},
		{"most", sourceOpts(
			StartFrom(GroupOffsets("g", Latest())), Bounded(), GroupID("g"), ReadCommitted(), OnDecodeError(ToDeadLetters),
			FetchMaxBytes(1<<20), FetchMaxPartitionBytes(1<<19), FetchMaxWait(time.Second), StartupTimeout(time.Second),
			TLS(nil), SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism()), ClientOptions(kgo.ClientID("x"))), nil},
		{"host without port", sourceOpts(Brokers("kafka")), nil},
		{"nothing", nil, []string{
			`kafka source: Brokers: none given; want at least one "host:port"`,
			`kafka source: Topics: none given; want Topics or TopicPattern`,
		}},
		{"addresses", sourceOpts(Brokers("", "kafka://a:1", "a:1,b:1")), []string{
			`kafka source: Brokers: "" is not an address; want "host:port", without a scheme, user or path, one address per argument`,
			`kafka source: Brokers: "kafka://a:1" is not an address; want "host:port", without a scheme, user or path, one address per argument`,
			`kafka source: Brokers: "a:1,b:1" is not an address; want "host:port", without a scheme, user or path, one address per argument`,
		}},
		{"topics", sourceOpts(Topics("a b", "..", "x", "x")), []string{
			`kafka source: Topics: "a b" is not a topic name; want 1 to 249 letters, digits, dots, underscores and hyphens`,
			`kafka source: Topics: ".." is not a topic name; want 1 to 249 letters, digits, dots, underscores and hyphens`,
			`kafka source: Topics: "x" is given twice`,
		}},
		{"topics and pattern", sourceOpts(TopicPattern("a.*")), []string{
			`kafka source: TopicPattern: cannot be combined with Topics; want one of them`,
		}},
		{"pattern", []SourceOption{Brokers("a:1"), TopicPattern("a(")}, []string{
			"kafka source: TopicPattern: error parsing regexp: missing closing ): `a(`",
		}},
		{"timestamp", sourceOpts(StartFrom(Timestamp(time.Time{}))), []string{
			`kafka source: StartFrom: Timestamp: the time is before 1970; Kafka knows no such timestamps`,
		}},
		{"group start", sourceOpts(StartFrom(GroupOffsets("", GroupOffsets("b", Earliest())))), []string{
			`kafka source: StartFrom: GroupOffsets: the group is empty`,
			`kafka source: StartFrom: GroupOffsets: the fallback is another group; want Earliest, Latest, Timestamp or Offsets`,
		}},
		{"offsets", sourceOpts(StartFrom(Offsets(map[string]map[int32]int64{"orders": {0: -1, -1: 2}, "x": {0: 1}}))), []string{
			`kafka source: StartFrom: Offsets: orders--1 at 2: partition and offset must not be negative`,
			`kafka source: StartFrom: Offsets: orders-0 at -1: partition and offset must not be negative`,
			`kafka source: StartFrom: Offsets: topic "x" is not one of Topics`,
		}},
		{"ranges", sourceOpts(GroupID(""), OnDecodeError(7), DiscoveryInterval(-1), FetchMaxBytes(0), FetchMaxPartitionBytes(-1), FetchMaxWait(0), StartupTimeout(0)), []string{
			`kafka source: StartupTimeout: 0s is not positive`,
			`kafka source: GroupID: the group is empty; leave the option out to commit no offsets`,
			`kafka source: OnDecodeError: unknown policy 7; want FailJob, SkipRecord or ToDeadLetters`,
			`kafka source: DiscoveryInterval: -1ns is negative; want 0 (off) or more`,
			`kafka source: FetchMaxBytes: 0 is too small; want at least 1024`,
			`kafka source: FetchMaxPartitionBytes: -1 is too small; want at least 1024`,
			`kafka source: FetchMaxWait: 0s is not positive`,
		}},
		{"bounded discovery", sourceOpts(Bounded(), DiscoveryInterval(time.Minute)), []string{
			`kafka source: DiscoveryInterval: a bounded source reads what is there when it starts; leave the option out or set 0`,
		}},
		{"client's own topics", sourceOpts(ClientOptions(kgo.ConsumeTopics("x"), kgo.ConsumerGroup("g"))), nil},
		{"client's pattern", sourceOpts(ClientOptions(kgo.ConsumeRegex())), []string{
			`kafka source: ClientOptions: ConsumeRegex keeps the client from reading partitions; want TopicPattern instead`,
		}},
		{"client's options", sourceOpts(ClientOptions(kgo.BrokerMaxReadBytes(-1))), []string{
			`kafka source: ClientOptions: max broker read bytes -1 is less than allowed 1024`,
		}},
		{"nil mechanism", sourceOpts(SASL(nil)), []string{`kafka source: SASL: mechanism 0 is nil`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkProblems(t, NewSource(raw.String{}, tt.opts...).Validate(), tt.want)
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, addr := range []string{"a", "a:1", "10.0.0.1", "10.0.0.1:9092", "[::1]:9092", "::1", "a-b.c:65535"} {
		if !isAddress(addr) {
			t.Errorf("%q is refused", addr)
		}
	}
	for _, addr := range []string{"", ",", ",,", "a:1,", ":9092", "a:", "a:0", "a:65536", "a:b", "a:1:2", "http://a:1", "u@a:1", "a b"} {
		if isAddress(addr) {
			t.Errorf("%q is taken for an address", addr)
		}
	}
}

func TestEmitsDeadLetters(t *testing.T) {
	for policy, want := range map[DecodeErrorPolicy]bool{FailJob: false, SkipRecord: false, ToDeadLetters: true} {
		var src connector.Source[string] = NewSource(raw.String{}, sourceOpts(OnDecodeError(policy))...)
		if got := src.(interface{ EmitsDeadLetters() bool }).EmitsDeadLetters(); got != want {
			t.Errorf("EmitsDeadLetters with %v = %v, want %v", policy, got, want)
		}
	}
}

func TestSinkValidate(t *testing.T) {
	valid := []SinkOption{Brokers("localhost:9092"), Topic("out")}
	sink := func(opts ...SinkOption) *Sink[string] { return NewSink(raw.String{}, append(valid, opts...)...) }
	topic := func(string) string { return "x" }
	tests := []struct {
		name string
		sink *Sink[string]
		want []string
	}{
		{"least", sink(), nil},
		{"topic from value", NewSink(raw.String{}, Brokers("a:1")).WithTopic(topic), nil},
		{"nothing", NewSink(raw.String{}), []string{
			`kafka sink: Brokers: none given; want at least one "host:port"`,
			`kafka sink: Topic: none given; want Topic or WithTopic`,
		}},
		{"both topics", sink().WithTopic(topic), []string{`kafka sink: Topic: cannot be combined with WithTopic; want one of them`}},
		{"client's options", sink(ClientOptions(kgo.BrokerMaxReadBytes(-1))), []string{
			`kafka sink: ClientOptions: max broker read bytes -1 is less than allowed 1024`,
		}},
		{"topic", sink(Topic("a/b")), []string{
			`kafka sink: Topic: "a/b" is not a topic name; want 1 to 249 letters, digits, dots, underscores and hyphens`,
		}},
		{"exactly-once", sink(Delivery(ExactlyOnce), TransactionalIDPrefix("p"), TransactionTimeout(time.Hour)), nil},
		{"no prefix", sink(Delivery(ExactlyOnce)), []string{
			`kafka sink: TransactionalIDPrefix: none given; ExactlyOnce wants one that no other sink uses and that stays the same over restarts`,
		}},
		{"transactions", sink(TransactionalIDPrefix(strings.Repeat("p", 1025)), TransactionTimeout(time.Millisecond)), []string{
			`kafka sink: TransactionalIDPrefix: it has 1025 bytes; want at most 1024`,
			`kafka sink: TransactionTimeout: 1ms is out of range; want 1 s to 596h31m23.647s`,
		}},
		{"ranges", sink(Delivery(3), MaxBufferedBytes(5), DeliveryTimeout(time.Millisecond)), []string{
			`kafka sink: Delivery: unknown guarantee 3; want AtLeastOnce, ExactlyOnce or None`,
			`kafka sink: MaxBufferedBytes: 5 is too small; want at least 1 MiB`,
			`kafka sink: DeliveryTimeout: 1ms is too short; want at least 1 s`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkProblems(t, tt.sink.Validate(), tt.want) })
	}
}

type channel struct{ C chan int }

func TestCodecsAreValidated(t *testing.T) {
	topic := func(string) string { return "x" }
	decodeAny := func(Record) (string, error) { return "", nil }
	sink := NewSink(raw.String{}, Brokers("a:1"), Topic("out"))
	tests := []struct {
		name  string
		codec interface{ Validate() error }
		want  []string
	}{
		{"source", NewSource(json.Value[order](), sourceOpts()...), nil},
		{"source of records", NewRecordSource(decodeAny, sourceOpts()...), nil},
		{"source of channels", NewSource(json.Value[channel](), sourceOpts()...), []string{
			`kafka source: decoder: json: cannot decode into kafka.channel: field C: JSON has no value for chan int; tag the field json:"-" to leave it out`,
		}},
		{"source without decoder", NewSource[string](nil, sourceOpts()...), []string{
			"kafka source: decoder: nil; want one for NewSource, or a function for NewRecordSource",
		}},
		{"source without function", NewRecordSource[string](nil, sourceOpts()...), []string{
			"kafka source: decoder: nil; want one for NewSource, or a function for NewRecordSource",
		}},
		{"sink of channels", NewSink(json.Encode[channel](), Brokers("a:1"), Topic("out")), []string{
			`kafka sink: encoder: json: cannot encode kafka.channel: field C: JSON has no value for chan int; tag the field json:"-" to leave it out`,
		}},
		{"sink without encoder", NewSink[string](nil, Brokers("a:1"), Topic("out")), []string{
			"kafka sink: encoder: nil; want one for NewSink",
		}},
		{"sink without functions", sink.WithKey(nil).WithHeaders(nil).WithPartition(nil).WithTimestamp(nil), []string{
			"kafka sink: WithKey: the function is nil; leave the call out",
			"kafka sink: WithHeaders: the function is nil; leave the call out",
			"kafka sink: WithPartition: the function is nil; leave the call out",
			"kafka sink: WithTimestamp: the function is nil; leave the call out",
		}},
		{"sink without topic", NewSink(raw.String{}, Brokers("a:1")).WithTopic(topic).WithTopic(nil), []string{
			"kafka sink: WithTopic: the function is nil; leave the call out",
			"kafka sink: Topic: none given; want Topic or WithTopic",
		}},
		{"sink before", sink, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkProblems(t, tt.codec.Validate(), tt.want) })
	}
}

func checkProblems(t *testing.T, err error, want []string) {
	t.Helper()
	var lines []string
	if err != nil {
		lines = strings.Split(err.Error(), "\n")
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestStringsKeepSecrets(t *testing.T) {
	const secret = "hunter2"
	connection := []Option{
		Brokers("user:"+secret+"@kafka:9092", "b:1"),
		TLS(&tls.Config{ServerName: secret}),
		SASL(plain.Auth{User: "u", Pass: secret}.AsMechanism(), scram.Auth{User: "u", Pass: secret}.AsSha256Mechanism()),
	}
	source := []SourceOption{Topics("orders"), GroupID("g"), Bounded(), ReadCommitted()}
	sink := []SinkOption{Topic("out")}
	for _, o := range connection {
		source, sink = append(source, o), append(sink, o)
	}
	src, snk := NewSource(raw.String{}, source...), NewSink(raw.String{}, sink...)
	want := map[fmt.Stringer]string{
		src: "kafka source: topics orders, brokers …@kafka:9092,b:1, TLS, SASL PLAIN, SASL SCRAM-SHA-256, from the earliest offsets, bounded, read committed, group g",
		snk: "kafka sink: topic out, brokers …@kafka:9092,b:1, TLS, SASL PLAIN, SASL SCRAM-SHA-256, at-least-once",
	}
	for v, text := range want {
		if got := v.String(); got != text {
			t.Errorf("String = %q, want %q", got, text)
		}
		for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
			if got := fmt.Sprintf(format, v); strings.Contains(got, secret) {
				t.Errorf("%s reveals the secret: %s", format, got)
			}
		}
	}
	for _, err := range []error{src.Validate(), snk.Validate()} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Validate = %v, want an error about the address that hides the secret", err)
		}
	}
}

func TestStartStrings(t *testing.T) {
	tests := map[string]Start{
		"the earliest offsets":                          {},
		"the latest offsets":                            Latest(),
		"timestamp 1970-01-01T00:00:01.5Z":              Timestamp(time.UnixMilli(1500)),
		"offsets of group g, else the earliest offsets": GroupOffsets("g", Earliest()),
		"given offsets":                                 Offsets(nil),
	}
	for want, start := range tests {
		if got := start.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
}
