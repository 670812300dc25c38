//go:build synctests

package kafka

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

// endOf returns what a reader says of a partition of the topic orders.
func endOf(s *subtask[string], partition int) (next, end int64) {
	s.reader.Positions(func(id string, n, e int64) {
		if id == fmt.Sprint("orders-", partition) {
			next, end = n, e
		}
	})
	return next, end
}

// TestEndsOfABlockedSubtask: a subtask that takes nothing, or little, and a split that
// alignment has paused, have a backlog that grows.
func TestEndsOfABlockedSubtask(t *testing.T) {
	for _, how := range []string{"blocked", "slow", "paused"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := kafkatest.Start(t)
				c.CreateTopic(t, "orders", 1)
				const first, each = 40 * connector.BatchSize, 10
				c.Produce(t, "orders", numbered(0, first)...)
				s := start(t, NewSource(raw.String{}, at(c), Topics("orders")))
				s.want(connector.BatchSize)
				if how == "paused" {
					s.reader.PauseSplits([]string{"orders-0"})
				}
				for appended := int64(first); appended < first+30*each; {
					c.Produce(t, "orders", numbered(0, each)...)
					appended += each
					time.Sleep(time.Second)
					if how == "slow" {
						if _, err := s.reader.Poll(s.out); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					if _, end := endOf(s, 0); end < appended-10*each || end > appended {
						t.Fatalf("with %d records the end is %d", appended, end)
					}
				}
			})
		})
	}
}

// TestEndsWithoutAnswers: where brokers do not answer any more, it is not known where
// partitions end, however seldom they were asked before.
func TestEndsWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kafkatest.Start(t)
		net := plug(c)
		c.CreateTopic(t, "orders", 1)
		c.Produce(t, "orders", numbered(0, 3)...)
		s := start(t, NewSource(raw.String{}, at(c), Topics("orders"), net.option()))
		s.want(3)
		time.Sleep(time.Hour)
		if _, end := endOf(s, 0); end != 3 {
			t.Fatalf("the end is %d, want 3", end)
		}
		net.set(true)
		for range 10 {
			time.Sleep(20 * time.Second)
			if next, end := endOf(s, 0); next != 3 || end != -1 {
				t.Fatalf("during the outage: %d of %d, want 3 of -1", next, end)
			}
		}
		net.set(false)
		time.Sleep(20 * time.Second)
		if _, end := endOf(s, 0); end != 3 {
			t.Errorf("after the outage the end is %d, want 3", end)
		}
	})
}
