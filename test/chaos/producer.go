package main

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/test/chaos/input"
)

// producer writes the input at a steady pace, whatever happens to the broker: it is
// idempotent and tries again for ever.
type producer struct {
	client *kgo.Client
	cancel context.CancelFunc
	ended  chan struct{}
	sent   atomic.Int64
	// failed is the first failure; there must be none.
	failed atomic.Pointer[error]
}

// pace is the time between two records of a partition.
const pace = 5 * time.Millisecond

func startProducer(address string) (*producer, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(topicIn),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxBufferedRecords(1_000_000))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &producer{client: client, cancel: cancel, ended: make(chan struct{})}
	go p.run(ctx)
	return p, nil
}

func (p *producer) run(ctx context.Context) {
	defer close(p.ended)
	ticker := time.NewTicker(10 * pace)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			for range 10 {
				n := p.sent.Load()
				for i := range partitions {
					p.send(i, input.At(*seed, i, n))
				}
				p.sent.Store(n + 1)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (p *producer) send(partition int, e input.Event) {
	value, err := json.Marshal(e)
	if err == nil {
		p.client.Produce(context.Background(), &kgo.Record{Partition: int32(partition), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				p.failed.CompareAndSwap(nil, &err)
			}
		})
		return
	}
	p.failed.CompareAndSwap(nil, &err)
}

// perPartition returns how many records each partition has been given.
func (p *producer) perPartition() int64 { return p.sent.Load() }

// finish ends the input with a record that lets all windows fire, and returns how many
// records each partition has without it.
func (p *producer) finish(seed uint64) (perPartition int64, err error) {
	p.cancel()
	<-p.ended
	n := p.sent.Load()
	for i := range partitions {
		p.send(i, input.Flush(seed, n))
	}
	if err := p.client.Flush(context.Background()); err != nil {
		return 0, err
	}
	if failed := p.failed.Load(); failed != nil {
		return 0, *failed
	}
	return n, nil
}

func (p *producer) close() {
	p.cancel()
	<-p.ended
	p.client.Close()
}
