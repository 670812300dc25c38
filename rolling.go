package lowwater

import (
	"cmp"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/internal/operator/keyedop"
	"github.com/lowwater/lowwater/state"
)

// KeyValue is a value that belongs to a key.
type KeyValue[K comparable, V any] struct {
	Key   K
	Value V
}

// Number is what KeyedStream.Sum adds up.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Reduce combines the records of each key one by one, in the order of their arrival, and
// emits the result so far for every record, with the record's timestamp. The state of a
// key is never dropped; windows are for results that end. combine must not change its
// arguments.
func (s *KeyedStream[K, T]) Reduce(combine func(a, b T) T) *DataStream[T] {
	if combine == nil {
		s.stream.env.fail("Reduce: the function is nil")
	}
	return addRolling(s, "Keyed Reduce", func(x *keyedop.Context[K], emit func(T)) func(T) {
		total := x.Reducing(state.Reducing("total", combine))
		return func(v T) {
			total.Add(v)
			v, _ = total.Get()
			emit(v)
		}
	})
}

// Aggregate folds the records of each key into one accumulator and emits the result so far
// for every record, with the record's timestamp. It never merges accumulators. The state
// of a key is never dropped.
func (s *KeyedStream[K, T]) Aggregate[A, R any](agg Aggregator[T, A, R]) *DataStream[KeyValue[K, R]] {
	if agg == nil {
		s.stream.env.fail("Aggregate: the aggregator is nil")
	}
	return addRolling(s, "Keyed Aggregate", func(x *keyedop.Context[K], emit func(KeyValue[K, R])) func(T) {
		total := x.Aggregating(state.Aggregating("total", agg))
		return func(v T) {
			total.Add(v)
			r, _ := total.Get()
			emit(KeyValue[K, R]{x.Key(), r})
		}
	})
}

// Sum emits the sum so far of a number of each key's records, for every record, with the
// record's timestamp. Integers wrap around. Like that of Reduce, the state of a key is never
// dropped.
func (s *KeyedStream[K, T]) Sum[N Number](of func(T) N) *DataStream[KeyValue[K, N]] {
	return addRunning(s, "Sum", of, func(a, b N) N { return a + b })
}

// Min emits the smallest number so far of each key's records, for every record; see Sum. As
// for Go's min, a NaN stays.
func (s *KeyedStream[K, T]) Min[N cmp.Ordered](of func(T) N) *DataStream[KeyValue[K, N]] {
	return addRunning(s, "Min", of, func(a, b N) N { return min(a, b) })
}

// Max emits the largest number so far of each key's records, for every record; see Min.
func (s *KeyedStream[K, T]) Max[N cmp.Ordered](of func(T) N) *DataStream[KeyValue[K, N]] {
	return addRunning(s, "Max", of, func(a, b N) N { return max(a, b) })
}

// MinBy emits the record with the smallest number so far of each key, for every record; of
// records with the same number the first.
func (s *KeyedStream[K, T]) MinBy[N cmp.Ordered](number func(T) N) *DataStream[T] {
	return s.first("MinBy", number == nil, func(a, b T) bool { return number(b) < number(a) })
}

// MaxBy emits the record with the largest number so far of each key, for every record; of
// records with the same number the first.
func (s *KeyedStream[K, T]) MaxBy[N cmp.Ordered](number func(T) N) *DataStream[T] {
	return s.first("MaxBy", number == nil, func(a, b T) bool { return number(b) > number(a) })
}

// first keeps the record that no later one is better than.
func (s *KeyedStream[K, T]) first(method string, missing bool, better func(a, b T) bool) *DataStream[T] {
	if missing {
		s.stream.env.fail("%s: the function is nil", method)
	}
	return s.Reduce(func(a, b T) T {
		if better(a, b) {
			return b
		}
		return a
	})
}

// addRunning adds an operator that combines one number of each record.
func addRunning[K comparable, T, N any](s *KeyedStream[K, T], name string, of func(T) N, combine func(a, b N) N) *DataStream[KeyValue[K, N]] {
	if of == nil {
		s.stream.env.fail("%s: the function is nil", name)
	}
	return addRolling(s, "Keyed "+name, func(x *keyedop.Context[K], emit func(KeyValue[K, N])) func(T) {
		total := x.Reducing(state.Reducing("total", combine))
		return func(v T) {
			total.Add(of(v))
			n, _ := total.Get()
			emit(KeyValue[K, N]{x.Key(), n})
		}
	})
}

// addRolling adds an operator with state but without timers.
func addRolling[K comparable, T, R any](s *KeyedStream[K, T], name string, open func(x *keyedop.Context[K], emit func(R)) func(T)) *DataStream[R] {
	env := s.stream.env
	n := env.addNode(&graph.Node{
		Name:          name,
		WantsConsumer: true,
		KeepsState:    true,
		NewOperator: func() operator.Operator {
			return keyedop.NewProcess(func(x *keyedop.Context[K], out *operator.Emitter[R]) (keyedop.Function[T], error) {
				f := open(x, func(r R) { out.Append(r, x.Timestamp, x.Origin) })
				return keyedop.Function[T]{Element: func(v T) error { f(v); return nil }}, nil
			})
		},
	})
	s.connect(n, 0)
	return &DataStream[R]{env: env, from: []port{{node: n}}, node: n}
}

// SortByEventTime holds records back until the watermark reaches their timestamps, and
// passes each key's on in the order of these; equal ones stay in the order of their
// arrival. A record without a timestamp fails the job. A record whose turn has passed, at
// or before the watermark, goes to the late output if there is one, with its timestamp, and
// otherwise is dropped and counted in numLateRecordsDropped. At the end of a bounded input
// everything comes out. At most one late output may be given.
func (s *KeyedStream[K, T]) SortByEventTime(late ...OutputTag[T]) *DataStream[T] {
	env := s.stream.env
	var lateOutput string
	if len(late) > 1 {
		env.fail("SortByEventTime: %d late outputs, but there can be one only", len(late))
	}
	for _, tag := range late {
		if err := tag.validate(); err != nil {
			env.fail("SortByEventTime: %w", err)
		}
		lateOutput = tag.key()
	}
	n := env.addNode(&graph.Node{
		Name:          "Sort",
		WantsConsumer: true,
		InMemory:      "sorting",
		EventTime:     true,
		NewOperator:   func() operator.Operator { return keyedop.NewSorter[K, T](lateOutput) },
	})
	s.connect(n, 0)
	return &DataStream[T]{env: env, from: []port{{node: n}}, node: n}
}
