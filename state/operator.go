package state

// OperatorListDescriptor declares a list that belongs to a subtask of an operator
// instead of to a key. Make it with OperatorList or OperatorUnionList. It has no TTL.
type OperatorListDescriptor[V any] struct {
	Declaration
	union bool
}

// OperatorList declares a list of each subtask, such as the positions that it has read up
// to. It is a ListState that needs no current key. When the job is restored with the same
// parallelism, every subtask has its list again; with another one, the elements of all
// lists are dealt out anew, and what a subtask had added stays in order. It is Flink's
// ListState of operators.
func OperatorList[V any](name string) OperatorListDescriptor[V] {
	return OperatorListDescriptor[V]{Declaration: Declaration{name: name}}
}

// OperatorUnionList declares a list of each subtask that every subtask is restored with
// as a whole: the elements of all subtasks, those of subtask 0 first. Each subtask then
// keeps what concerns it and removes the rest, since the next snapshot has the lists of
// all subtasks again. It is Flink's union list state.
func OperatorUnionList[V any](name string) OperatorListDescriptor[V] {
	return OperatorListDescriptor[V]{Declaration: Declaration{name: name}, union: true}
}

// IsUnion reports whether every subtask is restored with all elements.
func (d OperatorListDescriptor[V]) IsUnion() bool { return d.union }
