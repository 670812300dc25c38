package kafka

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
)

// Guarantee is what a sink promises about records when something fails.
type Guarantee = connector.SinkGuarantee

const (
	// AtLeastOnce: every record is acknowledged by all in-sync replicas when a
	// checkpoint completes, at the end of input, and when the job stops gracefully. It
	// is the default. A job that is restored, or started again, may write records again;
	// one that fails or is cancelled without checkpoints may leave its last records
	// unwritten.
	AtLeastOnce = connector.AtLeastOnce
	// ExactlyOnce: records are written in transactions that are committed when a
	// checkpoint has completed. Whoever reads committed records only (ReadCommitted,
	// isolation.level=read_committed) sees each record once, whatever fails in between,
	// and sees it when the checkpoint that covers it has completed. It needs checkpoints,
	// TransactionalIDPrefix, and Kafka 3.0 or later.
	ExactlyOnce = connector.ExactlyOnce
	// None: records are acknowledged by the partition's leader only, and may
	// be lost with it, or be written twice or out of order.
	None = connector.NoGuarantee
)

type sinkOption func(*sinkConfig)

func (o sinkOption) applySink(c *sinkConfig) { o(c) }

// Topic sets the topic to write to. It must exist. Either this or
// Sink.WithTopic is required.
func Topic(name string) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.topic = name })
}

// Delivery sets the delivery guarantee: AtLeastOnce (the default), ExactlyOnce or None.
func Delivery(g Guarantee) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.guarantee = g })
}

// TransactionalIDPrefix begins the names of the transactions of an ExactlyOnce sink, and is
// required there. It must be unique among the sinks and jobs that write to the Kafka cluster
// at the same time, and stay the same over restarts: a sink that starts aborts what it
// finds under its prefix, which makes a job that is still running under it fail. A sink that
// is ExactlyOnce no longer and keeps the prefix still cleans up.
//
// Transactional ids are prefix-subtask-number, with few numbers per subtask; the prefix has
// at most 1024 bytes. The job's user needs WRITE and DESCRIBE on them.
func TransactionalIDPrefix(prefix string) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.transactionalIDPrefix = prefix })
}

// TransactionTimeout bounds the time from a transaction's first record to its commit.
// Then the broker aborts it, and its records are lost: it has to cover the interval of
// checkpoints, the time one takes, and the longest time that the job may be down.
// Default 15 minutes, which is the most that brokers allow unless their
// transaction.max.timeout.ms is raised. A job that is killed and not started again holds
// up readers of committed records for as long. d is at least 1 s; one above the brokers' limit
// fails the job.
func TransactionTimeout(d time.Duration) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.transactionTimeout = d })
}

// IgnoreLostTransactions lets a job go on if the transaction of a completed checkpoint
// cannot be committed any more, such as after TransactionTimeout. Each is logged as an
// error; its records are lost. Without the option the job fails.
func IgnoreLostTransactions() SinkOption {
	return sinkOption(func(c *sinkConfig) { c.ignoreLost = true })
}

// MaxBufferedBytes bounds the keys, values and headers that one subtask has
// written and Kafka has not acknowledged. Default 32 MiB; n is at least 1 MiB. A
// subtask that reaches the bound waits, which holds the job back.
func MaxBufferedBytes(n int) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.maxBufferedBytes = n })
}

// DeliveryTimeout bounds how long a record may wait for its acknowledgement
// before the job fails, give or take a second. Default 2 minutes, as in Kafka's
// own producer; d is at least 1 s.
func DeliveryTimeout(d time.Duration) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.deliveryTimeout = d })
}

type sinkConfig struct {
	client           clientConfig
	topic            string
	guarantee        Guarantee
	maxBufferedBytes int
	deliveryTimeout  time.Duration

	transactionalIDPrefix string
	transactionTimeout    time.Duration
	ignoreLost            bool
}

// maxBufferedRecords bounds what the client spends on small records.
const maxBufferedRecords = 64 << 10

func newSinkConfig(opts []SinkOption) *sinkConfig {
	c := &sinkConfig{
		client:             defaultClient(),
		guarantee:          AtLeastOnce,
		maxBufferedBytes:   32 << 20,
		deliveryTimeout:    2 * time.Minute,
		transactionTimeout: 15 * time.Minute,
	}
	for _, o := range opts {
		o.applySink(c)
	}
	return c
}

func (c *sinkConfig) validate(p *problems, topicFrom bool) {
	c.client.validate(p)
	switch {
	case c.topic == "" && !topicFrom:
		p.add("Topic", "none given; want Topic or WithTopic")
	case c.topic != "" && topicFrom:
		p.add("Topic", "cannot be combined with WithTopic; want one of them")
	case c.topic != "":
		p.checkTopic("Topic", c.topic)
	}
	if c.guarantee > ExactlyOnce {
		p.add("Delivery", "unknown guarantee %d; want AtLeastOnce, ExactlyOnce or None", uint8(c.guarantee))
	}
	c.validateTransactions(p)
	if c.maxBufferedBytes < 1<<20 {
		p.add("MaxBufferedBytes", "%d is too small; want at least 1 MiB", c.maxBufferedBytes)
	}
	if c.deliveryTimeout < time.Second {
		p.add("DeliveryTimeout", "%v is too short; want at least 1 s", c.deliveryTimeout)
	}
	options := c.writerOptions(false)
	if c.guarantee == ExactlyOnce {
		options = append(options, transactionOptions(c.transactionalIDPrefix, c.transactionTimeout)...)
	}
	c.client.validateClient(p, nil, options)
}

func (c *sinkConfig) validateTransactions(p *problems) {
	switch {
	case c.transactionalIDPrefix == "" && c.guarantee == ExactlyOnce:
		p.add("TransactionalIDPrefix", "none given; ExactlyOnce wants one that no other sink uses and that stays the same over restarts")
	case len(c.transactionalIDPrefix) > maxPrefix:
		p.add("TransactionalIDPrefix", "it has %d bytes; want at most %d", len(c.transactionalIDPrefix), maxPrefix)
	}
	if c.transactionTimeout < time.Second || c.transactionTimeout.Milliseconds() > math.MaxInt32 {
		p.add("TransactionTimeout", "%v is out of range; want 1 s to %v", c.transactionTimeout, time.Duration(math.MaxInt32)*time.Millisecond)
	}
}

// maxPrefix keeps transactional ids short; brokers allow about 32 KiB.
const maxPrefix = 1024

// writerOptions returns the options of a client that produces.
func (c *sinkConfig) writerOptions(manual bool) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.MaxBufferedBytes(c.maxBufferedBytes),
		kgo.MaxBufferedRecords(maxBufferedRecords),
	}
	if manual {
		opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	switch c.guarantee {
	case None:
		opts = append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case ExactlyOnce:
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()), protocolVersion1())
	default:
		// A record that timed out in flight may have been written. At least
		// once allows that; waiting for a broker for ever helps nobody.
		opts = append(opts, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.AllowIdempotentProduceCancellation())
	}
	return opts
}

func (c *sinkConfig) String() string {
	var b strings.Builder
	b.WriteString("kafka sink: ")
	if c.topic != "" {
		b.WriteString("topic " + c.topic + ", ")
	}
	fmt.Fprintf(&b, "%s, %s", c.client.describe(), c.guarantee)
	if c.transactionalIDPrefix != "" {
		b.WriteString(", transactional ids " + c.transactionalIDPrefix + "-*")
	}
	return b.String()
}
