package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/kafka"
)

const (
	partitions = 3
	// brokerTimeout bounds the demo's own requests to Kafka.
	brokerTimeout = 10 * time.Second
)

// broker is the Kafka that a demo runs on, with the topics that it made there.
type broker struct {
	addrs []string
	// options are what clients need besides the addresses.
	options []kgo.Opt
	fake    *kfake.Cluster // nil on a real Kafka
	admin   *kadm.Client
	// prefix begins the topics' names. On a broker that others use no other run has it.
	prefix string
	topics []string
}

// newBroker connects to the Kafka at addrs, or starts an embedded one if there
// are none, and creates topics.
func newBroker(ctx context.Context, addrs, topics []string) (_ *broker, err error) {
	b := &broker{addrs: addrs}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if len(addrs) == 0 {
		network := &kfake.VirtualNetwork{}
		if b.fake, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(network.Listen)); err != nil {
			return b, fmt.Errorf("starting the embedded Kafka: %w", err)
		}
		b.addrs = b.fake.ListenAddrs()
		b.options = []kgo.Opt{kgo.Dialer(network.DialContext)}
	} else {
		b.prefix = ownPrefix()
	}
	client, err := b.client(kgo.RetryTimeout(brokerTimeout / 2))
	if err != nil {
		return b, err
	}
	b.admin = kadm.NewClient(client)
	if err := ping(ctx, client); err != nil {
		return b, fmt.Errorf("no Kafka answers at %s: %w", strings.Join(b.addrs, ","), err)
	}
	for _, t := range topics {
		if err := b.createTopic(ctx, t); err != nil {
			return b, err
		}
	}
	return b, nil
}

// ownPrefix returns one that no other run has.
func ownPrefix() string { return "lowwater-demo-" + strings.ToLower(rand.Text()[:8]) + "-" }

func (b *broker) client(opts ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append(append(opts, b.options...), kgo.SeedBrokers(b.addrs...))...)
	if err != nil {
		return nil, fmt.Errorf("brokers %s: %w", strings.Join(b.addrs, ","), err)
	}
	return client, nil
}

func ping(ctx context.Context, client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	return client.Ping(ctx)
}

// createTopic does not end with ctx: interrupted, it would not know whether the
// topic exists.
func (b *broker) createTopic(ctx context.Context, topic string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), brokerTimeout)
	defer cancel()
	name := b.topic(topic)
	if _, err := b.admin.CreateTopic(ctx, partitions, -1, nil, name); err != nil {
		return fmt.Errorf("creating topic %s on %s: %w", name, strings.Join(b.addrs, ","), err)
	}
	b.topics = append(b.topics, name)
	return nil
}

// topic returns the name on the broker of one of the demo's topics.
func (b *broker) topic(name string) string { return b.prefix + name }

// split shortens the name of a split to what the demo calls its topic.
func (b *broker) split(id string) string { return strings.TrimPrefix(id, b.prefix) }

// source returns the options of a source of one of the demo's topics.
func (b *broker) source(topic string) []kafka.SourceOption {
	return []kafka.SourceOption{
		kafka.Brokers(b.addrs...), kafka.Topics(b.topic(topic)), kafka.ClientOptions(b.options...),
	}
}

// close removes the topics. It does so also when the demo was interrupted.
func (b *broker) close() (err error) {
	if b.admin != nil {
		if b.fake == nil {
			err = b.deleteTopics()
		}
		b.admin.Close()
	}
	if b.fake != nil {
		b.fake.Close()
	}
	return err
}

func (b *broker) deleteTopics() error {
	ctx, cancel := context.WithTimeout(context.Background(), brokerTimeout)
	defer cancel()
	var errs []error
	for _, t := range b.topics {
		if _, err := b.admin.DeleteTopic(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("topic %s could not be removed: %w", t, err))
		}
	}
	return errors.Join(errs...)
}
