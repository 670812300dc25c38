package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/lowwater/lowwater/format"
)

// Header is a record header. Its value may be nil.
type Header = kgo.RecordHeader

// SourceOption configures a source. An option given twice counts as given last,
// except ClientOptions, which add up.
type SourceOption interface{ applySource(*sourceConfig) }

// SinkOption configures a sink. An option given twice counts as given last,
// except ClientOptions, which add up.
type SinkOption interface{ applySink(*sinkConfig) }

// Option configures the connection to Kafka, of a source or of a sink.
type Option interface {
	SourceOption
	SinkOption
}

type option func(*clientConfig)

func (o option) applySource(c *sourceConfig) { o(&c.client) }
func (o option) applySink(c *sinkConfig)     { o(&c.client) }

// Brokers sets the addresses, "host:port" or "host" for port 9092, through
// which the cluster is found. Required.
func Brokers(addrs ...string) Option {
	return option(func(c *clientConfig) { c.brokers = slices.Clone(addrs) })
}

// TLS connects with TLS. A nil config stands for the defaults.
func TLS(config *tls.Config) Option {
	return option(func(c *clientConfig) {
		if config == nil {
			config = &tls.Config{}
		}
		c.tls = config
	})
}

// SASL authenticates with the first of the mechanisms that the broker supports;
// see franz-go's packages sasl/plain, sasl/scram, sasl/oauth and sasl/aws.
func SASL(mechanisms ...sasl.Mechanism) Option {
	return option(func(c *clientConfig) { c.sasl = slices.Clone(mechanisms) })
}

// StartupTimeout bounds how long the start of a job waits for Kafka. Default
// 10 s; d must be positive. A job that has started waits for as long as Kafka is away.
func StartupTimeout(d time.Duration) Option {
	return option(func(c *clientConfig) { c.startupTimeout = d })
}

// ClientOptions hands options to the Kafka client directly. They override what
// this package sets, except for the few settings that its correctness depends
// on: what to read and where from is not the client's to say.
func ClientOptions(opts ...kgo.Opt) Option {
	return option(func(c *clientConfig) { c.extra = append(slices.Clip(c.extra), opts...) })
}

type clientConfig struct {
	brokers        []string
	tls            *tls.Config
	sasl           []sasl.Mechanism
	startupTimeout time.Duration
	extra          []kgo.Opt
}

func defaultClient() clientConfig { return clientConfig{startupTimeout: 10 * time.Second} }

func (c *clientConfig) validate(p *problems) {
	if len(c.brokers) == 0 {
		p.add("Brokers", `none given; want at least one "host:port"`)
	}
	for _, addr := range c.brokers {
		if !isAddress(addr) {
			p.add("Brokers", `%q is not an address; want "host:port", without a scheme, user or path, one address per argument`, redact(addr))
		}
	}
	for i, m := range c.sasl {
		if m == nil {
			p.add("SASL", "mechanism %d is nil", i)
		}
	}
	p.positive("StartupTimeout", c.startupTimeout)
}

// isAddress reports whether addr is "host:port" or "host". It need not exist.
func isAddress(addr string) bool {
	if addr == "" || strings.ContainsAny(addr, "@/, \t\n") {
		return false
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return !strings.Contains(addr, ":") || net.ParseIP(addr) != nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return host != "" && err == nil && n > 0
}

// options returns the client's options: base, which the user's may override,
// the user's, then fixed, which they may not.
func (c *clientConfig) options(logger *slog.Logger, base, fixed []kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.brokers...),
		kgo.ClientID("lowwater"),
		kgo.WithLogger(newClientLogger(logger)),
	}
	if c.tls != nil {
		opts = append(opts, kgo.DialTLSConfig(c.tls))
	}
	if len(c.sasl) > 0 {
		opts = append(opts, kgo.SASL(c.sasl...))
	}
	return slices.Concat(opts, base, c.extra, fixed)
}

// validateClient reports what the client does not take. It is of use once the other
// options are right.
func (c *clientConfig) validateClient(p *problems, base, fixed []kgo.Opt) {
	if len(p.errs) > 0 {
		return
	}
	if err := kgo.ValidateOpts(c.options(slog.New(slog.DiscardHandler), base, fixed)...); err != nil {
		p.add("ClientOptions", "%v", err)
	}
}

// addresses returns the brokers for messages.
func (c *clientConfig) addresses() string {
	safe := make([]string, len(c.brokers))
	for i, addr := range c.brokers {
		safe[i] = redact(addr)
	}
	return strings.Join(safe, ",")
}

// redact removes what may be a user and a password from an address.
func redact(addr string) string {
	if i := strings.LastIndexByte(addr, '@'); i >= 0 {
		return "…" + addr[i:]
	}
	return addr
}

// describe says how the client connects, without secrets.
func (c *clientConfig) describe() string {
	var b strings.Builder
	b.WriteString("brokers " + c.addresses())
	if c.tls != nil {
		b.WriteString(", TLS")
	}
	for _, m := range c.sasl {
		if m != nil {
			b.WriteString(", SASL " + m.Name())
		}
	}
	return b.String()
}

// problems collects what is wrong with the options of one source or sink.
type problems struct {
	of   string
	errs []error
}

func (p *problems) add(option, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s: %s: %s", p.of, option, fmt.Sprintf(format, args...)))
}

// codec reports what a decoder or encoder says about itself.
func (p *problems) codec(what string, codec any) {
	v, ok := codec.(format.Validator)
	if !ok {
		return
	}
	if err := v.Validate(); err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %s: %w", p.of, what, err))
	}
}

func (p *problems) positive(option string, d time.Duration) {
	if d <= 0 {
		p.add(option, "%v is not positive", d)
	}
}

func (p *problems) atLeast(option string, value, low int32) {
	if value < low {
		p.add(option, "%d is too small; want at least %d", value, low)
	}
}

func (p *problems) err() error { return errors.Join(p.errs...) }

// checkTopic reports a name that Kafka does not allow.
func (p *problems) checkTopic(option, topic string) {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	if topic == "" || topic == "." || topic == ".." || len(topic) > 249 ||
		strings.ContainsFunc(topic, func(r rune) bool { return !legal(r) }) {
		p.add(option, "%q is not a topic name; want 1 to 249 letters, digits, dots, underscores and hyphens", topic)
	}
}
