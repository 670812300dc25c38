package exchange

import (
	"fmt"

	"github.com/lowwater/lowwater/connector"
)

// custom sends each record where a function says.
type custom[T any] struct {
	plainWriter[T]
	choose func(value T, receivers int) int
}

// Custom sends each record to the receiver whose number choose returns, from 0 to
// receivers-1. Another number is an error.
func Custom[T any](choose func(value T, receivers int) int) WriterFactory {
	return func(out *Outbox, channels []*Channel, _ int) Writer {
		return &custom[T]{newPlainWriter[T](out, channels), choose}
	}
}

func (w *custom[T]) Write(p Payload) error {
	b := p.(*connector.Batch[T])
	receivers := len(w.lanes.lanes)
	for i, v := range b.Values {
		to := w.choose(v, receivers)
		if to < 0 || to >= receivers {
			return fmt.Errorf("the partitioner returned %d for the record %v: it must return a number from 0 to %d", to, v, receivers-1)
		}
		dst := w.lane(to)
		dst.Append(v, b.Timestamps[i], b.Origins[i])
		if dst.Full() {
			if err := w.sendPending(to); err != nil {
				return err
			}
		}
	}
	b.Release()
	return nil
}
