package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	ordersTopic  = "orders"
	returnsTopic = "returns"
)

// order is the value of a record. Returns of goods look the same.
type order struct {
	Number         int64  `json:"number"`
	Shop           int32  `json:"shop"`
	EventType      string `json:"eventType"`
	PlacedAtMillis int64  `json:"placedAtMillis"`
}

var eventTypes = []string{"coffee", "tea", "cake"}

// ordersPerSecond is how many orders an open shop writes.
const ordersPerSecond = 20

// shops write orders in real time, each shop to one partition.
type shops struct {
	broker *broker
	client *kgo.Client
	cancel context.CancelFunc
	done   chan struct{}
	// failed holds the first error of writing.
	failed chan error

	mu     sync.Mutex
	open   map[shop]bool
	lag    map[shop]time.Duration
	number int64
}

// shop is a partition of a topic.
type shop struct {
	topic     string
	partition int32
}

func openShops(b *broker) (*shops, error) {
	client, err := b.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &shops{
		broker: b, client: client, cancel: cancel, done: make(chan struct{}), failed: make(chan error, 1),
		open: map[shop]bool{}, lag: map[shop]time.Duration{},
	}
	go s.run(ctx)
	return s, nil
}

func (s *shops) close() {
	s.cancel()
	<-s.done
	s.client.Close()
}

// set opens or closes shops of a topic.
func (s *shops) set(open bool, topic string, partitions ...int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range partitions {
		s.open[shop{topic, p}] = open
	}
}

// setLag makes a shop write its orders that long after they were placed.
func (s *shops) setLag(topic string, partition int32, lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag[shop{topic, partition}] = lag
}

func (s *shops) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(time.Second / ordersPerSecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.writeAll(ctx, now)
		}
	}
}

func (s *shops) writeAll(ctx context.Context, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for shop, open := range s.open {
		if open {
			s.write(ctx, shop, now.Add(-s.lag[shop]))
		}
	}
}

// writeOne writes one order that was placed at a given time, and returns its
// number.
func (s *shops) writeOne(ctx context.Context, topic string, partition int32, placed time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(ctx, shop{topic, partition}, placed)
}

// write must be called with mu held.
func (s *shops) write(ctx context.Context, to shop, placed time.Time) int64 {
	s.number++
	value, err := json.Marshal(order{
		Number:         s.number,
		Shop:           to.partition,
		EventType:      eventTypes[s.number%int64(len(eventTypes))],
		PlacedAtMillis: placed.UnixMilli(),
	})
	if err != nil {
		s.fail(err)
		return s.number
	}
	record := &kgo.Record{Topic: s.broker.topic(to.topic), Partition: to.partition, Value: value}
	s.client.Produce(ctx, record, func(_ *kgo.Record, err error) {
		if err != nil && ctx.Err() == nil {
			s.fail(fmt.Errorf("writing an order to %s-%d: %w", to.topic, to.partition, err))
		}
	})
	return s.number
}

func (s *shops) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}
