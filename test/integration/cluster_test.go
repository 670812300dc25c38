//go:build integration

package integration

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// opTimeout bounds every single operation of these tests on the broker, in
// wall-clock time. It is generous: a loaded machine must not fail a test.
const opTimeout = 30 * time.Second

// brokers returns the addresses of the broker under test.
func brokers(t *testing.T) []string {
	t.Helper()
	list := os.Getenv("LOWWATER_TEST_BROKERS")
	if list == "" {
		t.Fatal("LOWWATER_TEST_BROKERS is empty: run `make integration`, or set it to host:port[,host:port]")
	}
	return strings.Split(list, ",")
}

// opContext returns a context that ends with the test or after opTimeout.
func opContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), opTimeout)
	t.Cleanup(cancel)
	return ctx
}

// newClient connects to the broker under test. The client is closed when the
// test ends, before its topics are deleted.
func newClient(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(brokers(t)...)}, opts...)...)
	if err != nil {
		t.Fatalf("connect to %v: %v", brokers(t), err)
	}
	t.Cleanup(client.Close)
	return client
}

// newTopic creates a topic that no other test and no other run uses, and
// deletes it when the test ends. The name holds the test's, for reading the
// broker's log. configs may be nil.
func newTopic(t *testing.T, partitions int32, configs map[string]*string) string {
	t.Helper()
	admin := kadm.NewClient(newClient(t))
	topic := uniqueName(t)
	if _, err := admin.CreateTopic(opContext(t), partitions, 1, configs, topic); err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
		defer cancel()
		if _, err := admin.DeleteTopic(ctx, topic); err != nil {
			t.Errorf("delete topic %s: %v", topic, err)
		}
	})
	return topic
}

// uniqueName returns a legal name for a topic, a group or a transactional id.
func uniqueName(t *testing.T) string {
	legal := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		default:
			return '-'
		}
	}, t.Name())
	return legal + "-" + rand.Text()[:10]
}

// consumeAll returns the first n records that client fetches.
func consumeAll(t *testing.T, client *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx := opContext(t)
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("consume after %d of %d records: %v", len(records), n, err)
		}
		records = append(records, fetches.Records()...)
	}
	return records
}
