package kafka

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Guarantee is what a sink promises about records when something fails.
type Guarantee uint8

const (
	// AtLeastOnce: every record is acknowledged by all in-sync replicas when
	// Flush returns, which is at the end of input and when the job stops
	// gracefully. It is the default. A job that fails or is cancelled may leave
	// its last records unwritten, and one that is started again may write
	// records again.
	AtLeastOnce Guarantee = iota
	// None: records are acknowledged by the partition's leader only, and may
	// be lost with it, or be written twice or out of order.
	None
)

func (g Guarantee) String() string {
	switch g {
	case AtLeastOnce:
		return "AtLeastOnce"
	case None:
		return "None"
	default:
		return fmt.Sprintf("Guarantee(%d)", uint8(g))
	}
}

type sinkOption func(*sinkConfig)

func (o sinkOption) applySink(c *sinkConfig) { o(c) }

// Topic sets the topic to write to. It must exist. Either this or
// Sink.WithTopic is required.
func Topic(name string) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.topic = name })
}

// Delivery sets the delivery guarantee: AtLeastOnce (the default) or None.
func Delivery(g Guarantee) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.guarantee = g })
}

// MaxBufferedBytes bounds the keys, values and headers that one subtask has
// written and Kafka has not acknowledged. Default 32 MiB. A subtask that
// reaches the bound waits, which holds the job back.
func MaxBufferedBytes(n int) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.maxBufferedBytes = n })
}

// DeliveryTimeout bounds how long a record may wait for its acknowledgement
// before the job fails, give or take a second. Default 2 minutes, as in Kafka's
// own producer.
func DeliveryTimeout(d time.Duration) SinkOption {
	return sinkOption(func(c *sinkConfig) { c.deliveryTimeout = d })
}

type sinkConfig struct {
	client           clientConfig
	topic            string
	guarantee        Guarantee
	maxBufferedBytes int
	deliveryTimeout  time.Duration
}

// maxBufferedRecords bounds what the client spends on small records.
const maxBufferedRecords = 64 << 10

func newSinkConfig(opts []SinkOption) *sinkConfig {
	c := &sinkConfig{
		client:           defaultClient(),
		maxBufferedBytes: 32 << 20,
		deliveryTimeout:  2 * time.Minute,
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
	if c.guarantee > None {
		p.add("Delivery", "unknown guarantee %d; want AtLeastOnce or None (there is no exactly-once yet)", c.guarantee)
	}
	if c.maxBufferedBytes < 1<<20 {
		p.add("MaxBufferedBytes", "%d is too small; want at least 1 MiB", c.maxBufferedBytes)
	}
	if c.deliveryTimeout < time.Second {
		p.add("DeliveryTimeout", "%v is too short; want at least 1 s", c.deliveryTimeout)
	}
	c.client.validateClient(p, nil, c.writerOptions(false))
}

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
	return b.String()
}
