package rest

import (
	"maps"
	"slices"
	"time"
)

// CloseTimeout and LingerTimeout are how long Close waits for what has yet to come, which
// it does not where there is nothing.
const (
	CloseTimeout  = closeTimeout
	LingerTimeout = lingerTimeout
)

// Patterns returns the patterns of all that a server answers.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.routes())) }

// SerializedThrowable is for tests of the shape that Java reads.
var SerializedThrowable = serializedThrowable

// LingersFor returns how long a server stays, at most for limit, for a result that has been
// there for age and that nobody has asked for.
func LingersFor(age, limit time.Duration) time.Duration {
	ops := operations{list: []*operation{{done: time.Now().Add(-age), told: make(chan struct{})}}}
	begin := time.Now()
	ops.linger(limit)
	return time.Since(begin)
}
