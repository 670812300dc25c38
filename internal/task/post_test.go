package task

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/lowwater/lowwater/internal/exchange"
	"github.com/lowwater/lowwater/internal/metric"
	"github.com/lowwater/lowwater/internal/operator"
)

// What an operator posts from a goroutine of its own runs between batches, also without
// input, and its errors and panics are that operator's.
func TestRuntimePost(t *testing.T) {
	broken := errors.New("broken")
	for _, f := range []func() error{func() error { return broken }, func() error { panic(broken) }} {
		synctest.Test(t, func(t *testing.T) {
			first, second := &recorder{}, &recorder{}
			inbox := exchange.NewInbox(1, 4)
			task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
				return Config{Nodes: chainOf(first, second), Inbox: inbox, Logical: []int{0}}
			})
			result := make(chan error, 1)
			go func() { result <- task.Run() }()
			synctest.Wait()
			ran := false
			if !second.rt.Post(t.Context(), func() error { ran = true; return nil }) {
				t.Error("not accepted while the task runs")
			}
			synctest.Wait()
			if !ran {
				t.Error("accepted, but not run")
			}
			second.rt.Post(t.Context(), f)
			err := <-result
			var where *operator.Error
			if !errors.As(err, &where) || where.Operator != "op1" || !errors.Is(err, broken) {
				t.Errorf("error %v, want one of op1", err)
			}
			if second.rt.Post(t.Context(), f) {
				t.Error("accepted after the end of the task")
			}
		})
	}
}

// An operator whose context has ended does not wait for a full mailbox.
func TestRuntimePostGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &recorder{}
		ctx, cancel := context.WithCancel(t.Context())
		task := New(t.Context(), &metric.Task{}, func(*exchange.Outbox) Config {
			return Config{Nodes: chainOf(op), Inbox: exchange.NewInbox(1, 4), Logical: []int{0}}
		})
		accepted := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for task.chain.links[0].rt.Post(ctx, nil) {
				accepted++
			}
		}()
		synctest.Wait()
		cancel()
		<-done
		if accepted != mailboxSize {
			t.Errorf("%d posts accepted, want %d", accepted, mailboxSize)
		}
	})
}
