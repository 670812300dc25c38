package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	retryInterval = 250 * time.Millisecond
	// newTopicGrace is how long a topic that was just created may be unknown to
	// a broker.
	newTopicGrace = time.Second
)

// cluster asks Kafka about topics, and explains what goes wrong.
type cluster struct {
	of     string // "kafka source" or "kafka sink"
	needs  string // the permissions on a topic
	cfg    *clientConfig
	client *kgo.Client
	dials  *dialErrors
}

func connect(of, needs string, cfg *clientConfig, log *slog.Logger, base, fixed []kgo.Opt) (*cluster, error) {
	c := &cluster{of: of, needs: needs, cfg: cfg, dials: &dialErrors{}}
	client, err := kgo.NewClient(cfg.options(log, base, append(fixed, kgo.WithHooks(c.dials)))...)
	if err != nil {
		return nil, c.errorf("%w", err)
	}
	c.client = client
	return c, nil
}

func (c *cluster) errorf(format string, args ...any) error {
	return fmt.Errorf(c.of+": "+format, args...)
}

// metadata asks for topics, or for all of them if none are named. It gives a
// topic that was just created time to become known.
func (c *cluster) metadata(ctx context.Context, topics ...string) (*kmsg.MetadataResponse, error) {
	req := metadataRequest(topics...)
	began := time.Now()
	for {
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return nil, c.errorf("no answer from %s within %v: %w; check that Kafka runs there, Brokers, and TLS and SASL",
				c.cfg.addresses(), c.cfg.startupTimeout, c.cause(err))
		}
		transient := slices.ContainsFunc(resp.Topics, func(t kmsg.MetadataResponseTopic) bool {
			err := kerr.ErrorForCode(t.ErrorCode)
			return kerr.IsRetriable(err) && (!isUnknownTopic(err) || time.Since(began) < newTopicGrace)
		})
		if !transient || !wait(ctx, retryInterval) {
			return resp, nil
		}
	}
}

func metadataRequest(topics ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	return req
}

// topicError explains what a broker says about a topic.
func (c *cluster) topicError(topic string, err error) error {
	switch {
	case err == nil:
		return nil
	case isUnknownTopic(err):
		return c.errorf("topic %q does not exist on %s; create it or correct the name", topic, c.cfg.addresses())
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return c.errorf("no permission for topic %q on %s; grant the job's user %s", topic, c.cfg.addresses(), c.needs)
	default:
		return c.errorf("topic %q on %s: %w", topic, c.cfg.addresses(), err)
	}
}

// cause prefers the reason why connections fail to the news that time is up.
func (c *cluster) cause(err error) error {
	if dial := c.dials.last(); dial != nil && isContextEnd(err) {
		return dial
	}
	return err
}

func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isUnknownTopic reports whether a broker says that a topic or partition does
// not exist.
func isUnknownTopic(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}

// wait reports whether d passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// dialErrors remembers why the client could not connect last.
type dialErrors struct {
	mu  sync.Mutex
	err error
}

var _ kgo.HookBrokerConnect = (*dialErrors)(nil)

func (d *dialErrors) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil || isContextEnd(err) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialErrors) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}
