//go:build synctests

package kafkatest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Start(t)
		c.CreateTopic(t, "orders", 1)
		began := time.Now().UnixMilli()
		time.Sleep(time.Hour) // which is over at once: this is the test
		c.Produce(t, "orders", Record{Value: []byte("x")})
		got := c.ReadAll(t, "orders")
		if len(got) != 1 || got[0].Millis-began < time.Hour.Milliseconds() {
			t.Errorf("records %+v, want one of an hour after %d", got, began)
		}
	})
}
