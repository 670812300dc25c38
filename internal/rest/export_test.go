package rest

import (
	"maps"
	"slices"
)

// Patterns returns the patterns of all that a server answers.
func (s *Server) Patterns() []string { return slices.Sorted(maps.Keys(s.routes())) }

// SerializedThrowable is for tests of the shape that Java reads.
var SerializedThrowable = serializedThrowable
