package lowwater

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
)

// DefaultAsyncCapacity is the number of records under way in one subtask of AsyncMap unless
// Async.Capacity says otherwise, Flink's default.
const DefaultAsyncCapacity = 100

// ErrAsyncTimeout is in the chain of the error that fails a job, for errors.Is, when the
// function of an AsyncMap had no result for a record within Async.Timeout. It is also the
// cause of the end of the call's context.
var ErrAsyncTimeout = errors.New("no result in time")

// Async is how AsyncMap works. The zero value keeps the order of the records, never times
// out and never retries. Negative numbers are a build error.
type Async struct {
	// Capacity is the number of records that may be under way in one subtask, whose
	// results wait for their turn included. When it is reached the subtask waits. 0 means
	// DefaultAsyncCapacity.
	Capacity int
	// Unordered emits results as they come. Watermarks still follow all records that
	// came before them, and no other (spec watermarks 8.7).
	Unordered bool
	// Timeout is how long one record may take, all attempts and the pauses between them
	// together; 0 means for ever. When it is over, the context of the call ends.
	Timeout time.Duration
	// Retry says whether a call that failed is made again. What has timed out is not.
	Retry AsyncRetry
}

// AsyncRetry is when calls that failed are made again. The zero value is never.
type AsyncRetry struct {
	// Attempts is how often a record is tried in all; 0 and 1 mean once.
	Attempts int
	// Pause returns the time to wait before an attempt, numbered from 2; nil, and 0 or
	// less, mean none. The wait counts towards Timeout.
	Pause func(attempt int) time.Duration
	// If says which errors are worth another attempt; nil means all.
	If func(error) bool
}

func (a Async) validate() error {
	switch {
	case a.Capacity < 0:
		return fmt.Errorf("Async.Capacity is %d: it must be 1 or more, or 0 for %d", a.Capacity, DefaultAsyncCapacity)
	case a.Timeout < 0:
		return fmt.Errorf("Async.Timeout is %v: it must be positive, or 0 for none", a.Timeout)
	case a.Retry.Attempts < 0:
		return fmt.Errorf("Async.Retry.Attempts is %d: it must be 1 or more, or 0 for one", a.Retry.Attempts)
	default:
		return nil
	}
}

// AsyncMap applies a function that waits for the outside, such as a request to a service,
// to many records at the same time. f is called from goroutines of its own and must be
// safe for concurrent use. It must return soon after its context has ended: when the
// record's time is over, or the job. An error that is not retried, and a timeout, end
// the job; f may return a result of its own instead.
//
// Results have the timestamp of their record. Watermarks keep their place behind the
// records that came before them. At the end of the input, and at a graceful stop, all
// records under way are waited for. A checkpoint does not wait for them but stores them,
// and a restored job calls f for them again: f must bear being called twice for a record.
func (s *DataStream[T]) AsyncMap[R any](f func(ctx context.Context, value T) (R, error), options Async) *DataStream[R] {
	if f == nil {
		s.env.fail("AsyncMap: the function is nil")
	}
	if err := options.validate(); err != nil {
		s.env.fail("AsyncMap: %w", err)
	}
	o := operator.AsyncOptions{Capacity: options.Capacity, Unordered: options.Unordered}
	if o.Capacity == 0 {
		o.Capacity = DefaultAsyncCapacity
	}
	return addOperator[T, R](s, "Async Map", func() operator.Operator { return operator.NewAsync(attempts(f, options), o) })
}

// attempts adds a timeout and retries to f.
func attempts[T, R any](f func(context.Context, T) (R, error), options Async) func(context.Context, T) (R, error) {
	retry := options.Retry
	return func(ctx context.Context, v T) (R, error) {
		if options.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, options.Timeout, fmt.Errorf("%w: %v", ErrAsyncTimeout, options.Timeout))
			defer cancel()
		}
		for attempt := 1; ; attempt++ {
			r, err := f(ctx, v)
			switch {
			case err == nil:
				return r, nil
			case ctx.Err() != nil:
				return r, fmt.Errorf("%w (attempt %d: %w)", context.Cause(ctx), attempt, err)
			case attempt >= retry.Attempts || retry.If != nil && !retry.If(err):
				return r, failedAfter(attempt, err)
			case retry.Pause == nil:
				continue
			}
			if pauseErr := pause(ctx, retry.Pause(attempt+1)); pauseErr != nil {
				return r, fmt.Errorf("%w (attempt %d: %w)", pauseErr, attempt, err)
			}
		}
	}
}

// failedAfter says how often a call was tried, if more than once.
func failedAfter(attempts int, err error) error {
	if attempts == 1 {
		return err
	}
	return fmt.Errorf("failed %d times: %w", attempts, err)
}

// pause waits for d, or returns why ctx ended before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
