package lowwater

import "github.com/lowwater/lowwater/internal/graph"

// PartitionBy sends each record to the subtask of the next operator whose number choose
// returns, from 0 to subtasks-1; another number fails the job with an error that shows
// the record. It gives no keyed stream: for state by key use KeyBy. choose is called by
// all subtasks of the sender at the same time.
//
// If the next operator's parallelism changes, records that were on their way to it in an
// unaligned checkpoint (AlignedCheckpointTimeout) are dealt out without asking choose again.
func (s *DataStream[T]) PartitionBy(choose func(value T, subtasks int) int) *DataStream[T] {
	if choose == nil {
		s.env.fail("PartitionBy: the function is nil")
	}
	out := s.partitioned(graph.Custom)
	out.partitioner = choose
	return out
}
