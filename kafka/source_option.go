package kafka

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
)

// DecodeErrorPolicy says what happens to a record that cannot be decoded.
type DecodeErrorPolicy = connector.DecodeErrorPolicy

const (
	// FailJob ends the job with an error that names topic, partition and
	// offset. It is the default.
	FailJob = connector.FailJob
	// SkipRecord counts the record as dropped, under "malformed" with a
	// sample, and goes on. Each subtask logs its first one, and at the end
	// how many there were.
	SkipRecord = connector.SkipRecord
	// ToDeadLetters sends the record to the source's dead-letter output, the side
	// output lowwater.DeadLetters, and goes on.
	ToDeadLetters = connector.ToDeadLetters
)

type sourceOption func(*sourceConfig)

func (o sourceOption) applySource(c *sourceConfig) { o(c) }

// Topics sets the topics to read. Either this or TopicPattern is required.
func Topics(topics ...string) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.topics = slices.Clone(topics) })
}

// TopicPattern reads all topics whose whole name matches a regular expression
// (Go's syntax), except Kafka's internal ones. It excludes Topics.
func TopicPattern(expr string) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.pattern = expr })
}

// StartFrom sets where partitions are read from when the job starts: Earliest
// (the default), Latest, Timestamp, GroupOffsets or Offsets. A partition that
// appears later is read from its earliest offset, or from the one that Offsets names
// for it. A job that is restored from a checkpoint goes on where that was taken.
func StartFrom(start Start) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.start = start })
}

// Bounded ends the source at the offsets that were the partitions' ends when
// the job started. Nothing that is appended later is read. With ReadCommitted
// the end is the last stable offset: records of transactions that were open at
// the start, and those behind them, are not read.
func Bounded() SourceOption {
	return sourceOption(func(c *sourceConfig) { c.bounded = true })
}

// GroupID makes the job's positions visible as the offsets of a consumer group,
// for tools that show lag. They play no part in assignment or recovery.
//
// With checkpoints, those of a checkpoint are committed when it has completed.
// Without, they are committed every 5 seconds, not when the job ends, and are where
// the source has read to, not what the job has finished: a job that starts from them
// (GroupOffsets) misses the records that were under way when this one ended.
func GroupID(group string) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.group, c.groupSet = group, true })
}

// ReadCommitted leaves out records of aborted transactions, and waits for those
// of open ones.
func ReadCommitted() SourceOption {
	return sourceOption(func(c *sourceConfig) { c.readCommitted = true })
}

// OnDecodeError sets what happens to a record that cannot be decoded. Default
// FailJob.
func OnDecodeError(policy DecodeErrorPolicy) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.onDecodeError = policy })
}

// DiscoveryInterval sets how often to look for new partitions and, with
// TopicPattern, new topics. 0 switches it off; d must not be negative. Default 5
// minutes, as in Flink (spec watermarks 5.15). A bounded source does not look again,
// and does not take the option with more than 0.
func DiscoveryInterval(d time.Duration) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.discovery, c.discoverySet = d, true })
}

// FetchMaxBytes bounds the bytes of one answer of a broker, as they are sent:
// compressed batches take more room here. Default 16 MiB. A reader whose job is
// slower than Kafka holds three answers per broker: one being worked on, one
// waiting, one in the client. Then it stops fetching. n is at least 1024.
func FetchMaxBytes(n int32) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.fetchMaxBytes = n })
}

// FetchMaxPartitionBytes bounds the bytes of one partition in one answer of a
// broker. Default 1 MiB; n is at least 1024. A larger batch is still read.
func FetchMaxPartitionBytes(n int32) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.fetchMaxPartitionBytes = n })
}

// FetchMaxWait bounds how long a broker waits for data before it answers, and
// so how long a resumed or new partition waits to be read. Default 500 ms; d must be
// positive.
func FetchMaxWait(d time.Duration) SourceOption {
	return sourceOption(func(c *sourceConfig) { c.fetchMaxWait = d })
}

type sourceConfig struct {
	client        clientConfig
	topics        []string
	pattern       string
	start         Start
	bounded       bool
	group         string
	groupSet      bool
	readCommitted bool
	onDecodeError DecodeErrorPolicy
	discovery     time.Duration
	discoverySet  bool

	fetchMaxBytes          int32
	fetchMaxPartitionBytes int32
	fetchMaxWait           time.Duration
}

func newSourceConfig(opts []SourceOption) *sourceConfig {
	c := &sourceConfig{
		client:                 defaultClient(),
		start:                  Earliest(),
		discovery:              5 * time.Minute,
		fetchMaxBytes:          16 << 20,
		fetchMaxPartitionBytes: 1 << 20,
		fetchMaxWait:           500 * time.Millisecond,
	}
	for _, o := range opts {
		o.applySource(c)
	}
	if c.bounded && !c.discoverySet {
		c.discovery = 0
	}
	return c
}

func (c *sourceConfig) validate(p *problems) {
	c.client.validate(p)
	c.validateTopics(p)
	c.start.validate(p, c)
	if c.groupSet && c.group == "" {
		p.add("GroupID", "the group is empty; leave the option out to commit no offsets")
	}
	if c.onDecodeError > ToDeadLetters {
		p.add("OnDecodeError", "unknown policy %d; want FailJob, SkipRecord or ToDeadLetters", c.onDecodeError)
	}
	if c.discovery < 0 {
		p.add("DiscoveryInterval", "%v is negative; want 0 (off) or more", c.discovery)
	}
	if c.bounded && c.discovery > 0 {
		p.add("DiscoveryInterval", "a bounded source reads what is there when it starts; leave the option out or set 0")
	}
	p.atLeast("FetchMaxBytes", c.fetchMaxBytes, 1024)
	p.atLeast("FetchMaxPartitionBytes", c.fetchMaxPartitionBytes, 1024)
	p.positive("FetchMaxWait", c.fetchMaxWait)
	base, fixed := c.readerOptions()
	c.client.validateClient(p, base, fixed)
	if len(p.errs) == 0 && c.consumesRegex(base, fixed) {
		p.add("ClientOptions", "ConsumeRegex keeps the client from reading partitions; want TopicPattern instead")
	}
}

// consumesRegex reports whether valid options have the client find topics by itself. Then
// it ignores the partitions it is given, which it says only of those in its options.
func (c *sourceConfig) consumesRegex(base, fixed []kgo.Opt) bool {
	some := kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"x": {0: kgo.NewOffset()}})
	return kgo.ValidateOpts(c.client.options(slog.New(slog.DiscardHandler), base, append(fixed, some))...) != nil
}

func (c *sourceConfig) validateTopics(p *problems) {
	switch {
	case len(c.topics) == 0 && c.pattern == "":
		p.add("Topics", "none given; want Topics or TopicPattern")
	case len(c.topics) > 0 && c.pattern != "":
		p.add("TopicPattern", "cannot be combined with Topics; want one of them")
	}
	seen := map[string]bool{}
	for _, t := range c.topics {
		p.checkTopic("Topics", t)
		if seen[t] {
			p.add("Topics", "%q is given twice", t)
		}
		seen[t] = true
	}
	if _, err := regexp.Compile(c.pattern); err != nil {
		p.add("TopicPattern", "%v", err)
	}
}

// matcher compiles the valid topic pattern for whole names.
func (c *sourceConfig) matcher() (*regexp.Regexp, error) {
	return regexp.Compile(`^(?:` + c.pattern + `)$`)
}

// isolation is the protocol's isolation level.
func (c *sourceConfig) isolation() int8 {
	if c.readCommitted {
		return 1
	}
	return 0
}

func (c *sourceConfig) subject() string {
	if c.pattern != "" {
		return fmt.Sprintf("topics matching %q", c.pattern)
	}
	return "topics " + strings.Join(c.topics, ",")
}

func (c *sourceConfig) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kafka source: %s, %s, from %s", c.subject(), c.client.describe(), c.start)
	if c.bounded {
		b.WriteString(", bounded")
	}
	if c.readCommitted {
		b.WriteString(", read committed")
	}
	if c.group != "" {
		fmt.Fprintf(&b, ", group %s", c.group)
	}
	return b.String()
}

// readerOptions returns the options of a client that fetches.
func (c *sourceConfig) readerOptions() (base, fixed []kgo.Opt) {
	base = []kgo.Opt{
		kgo.FetchMaxBytes(c.fetchMaxBytes),
		kgo.FetchMaxPartitionBytes(c.fetchMaxPartitionBytes),
		kgo.FetchMaxWait(c.fetchMaxWait),
		kgo.WithPools(&recordPool{}),
	}
	isolation := kgo.ReadUncommitted()
	if c.readCommitted {
		isolation = kgo.ReadCommitted()
	}
	fixed = []kgo.Opt{
		kgo.ConsumerGroup(""),
		kgo.ConsumeTopics(),
		kgo.ConsumePartitions(nil),
		kgo.FetchIsolationLevel(isolation),
		// Control records say how far a partition is read when nothing but
		// transaction markers is left.
		kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	}
	return base, fixed
}
