package kafka

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format/raw"
	"github.com/lowwater/lowwater/internal/kafkatest"
)

const sinkPartitions = 4

// stage is a cluster with a topic of sinkPartitions partitions.
type stage struct {
	t       *testing.T
	options []Option
	client  []kgo.Opt
	topic   string
	admin   *kadm.Client
	fake    bool
}

// onBoth runs a test on kfake, and on the real broker if there is one.
func onBoth(t *testing.T, f func(t *testing.T, s *stage)) {
	t.Run("kfake", func(t *testing.T) {
		c := kafkatest.Start(t)
		c.CreateTopic(t, "out", sinkPartitions)
		f(t, &stage{
			t: t, topic: "out", admin: kadm.NewClient(c.Client(t)), fake: true,
			options: []Option{Brokers(c.Brokers()...), ClientOptions(c.Options()...)},
			client:  append(c.Options(), kgo.SeedBrokers(c.Brokers()...)),
		})
	})
	t.Run("RealBroker", func(t *testing.T) {
		b := realBroker(t, sinkPartitions)
		f(t, &stage{
			t: t, topic: b.topic, admin: b.admin,
			options: []Option{Brokers(b.addrs...)},
			client:  []kgo.Opt{kgo.SeedBrokers(b.addrs...)},
		})
	})
}

// sink is an exactly-once sink for values like "17", of which each goes to partition 17
// modulo sinkPartitions.
func (s *stage) sink(opts ...SinkOption) *Sink[string] {
	all := []SinkOption{Topic(s.topic), Delivery(ExactlyOnce), TransactionalIDPrefix(s.topic)}
	for _, o := range s.options {
		all = append(all, o)
	}
	return NewSink(raw.String{}, append(all, opts...)...).WithPartition(func(v string, _ int) int {
		n, _ := strconv.Atoi(v)
		return n % sinkPartitions
	})
}

// committed returns what readers of committed records see, by partition, once no transaction
// is open.
func (s *stage) committed() [][]string {
	s.t.Helper()
	s.settled()
	var opts []SourceOption
	for _, o := range s.options {
		opts = append(opts, o)
	}
	read := start(s.t, NewSource(raw.String{}, append(opts, Topics(s.topic), Bounded(), ReadCommitted())...))
	read.toEnd()
	parts := make([][]string, sinkPartitions)
	for i := range parts {
		parts[i] = read.out.values()[fmt.Sprint(s.topic, "-", i)]
	}
	return parts
}

// settled waits until nothing holds up readers of committed records.
func (s *stage) settled() {
	s.t.Helper()
	for range 200 {
		stable, err := s.admin.ListCommittedOffsets(s.t.Context(), s.topic)
		end, err2 := s.admin.ListEndOffsets(s.t.Context(), s.topic)
		if err := errors.Join(err, err2); err != nil {
			s.t.Fatal(err)
		}
		open := 0
		end.Each(func(o kadm.ListedOffset) {
			if at, _ := stable.Lookup(s.topic, o.Partition); at.Offset != o.Offset {
				open++
			}
		})
		if open == 0 {
			return
		}
		wait(s.t.Context(), 50*time.Millisecond)
	}
	s.t.Fatal("a transaction stays open")
}

// stored is a checkpoint: how many values are written, and what the subtasks prepared.
type stored struct {
	written  int
	prepared [][]preparedBy
}

type preparedBy struct {
	checkpoint int64
	data       []byte
}

// job is a run of an exactly-once sink's subtasks, as an engine would drive them.
type job struct {
	*stage
	writers    []*writer[string]
	written    int
	checkpoint int64
	// prepared is what is not committed, by subtask.
	prepared [][]preparedBy
}

// restore starts a run from a checkpoint.
func (s *stage) restore(from stored, parallelism int, opts ...SinkOption) (*job, error) {
	j := &job{stage: s, written: from.written, prepared: make([][]preparedBy, parallelism)}
	for i := range parallelism {
		w, err := s.sink(opts...).NewWriter(s.t.Context(), connector.WriterRuntime{
			Operator: "sink", Subtask: i, Parallelism: parallelism, Logger: testLogger(s.t)})
		if err != nil {
			return j, err
		}
		j.writers = append(j.writers, w.(*writer[string]))
	}
	for i, w := range j.writers {
		var own []preparedBy
		for subtask, prepared := range from.prepared {
			for _, p := range prepared {
				j.checkpoint = max(j.checkpoint, p.checkpoint)
				if subtask%parallelism == i {
					own = append(own, p)
				}
			}
		}
		slices.SortStableFunc(own, func(a, b preparedBy) int { return int(a.checkpoint - b.checkpoint) })
		var outputs [][]byte
		for _, p := range own {
			outputs = append(outputs, p.data)
		}
		if err := w.Recover(s.t.Context(), outputs, nil); err != nil {
			return j, err
		}
	}
	return j, nil
}

func (s *stage) mustRestore(from stored, parallelism int, opts ...SinkOption) *job {
	s.t.Helper()
	j, err := s.restore(from, parallelism, opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// write writes the next n values, each by the subtask that its partition falls to.
func (j *job) write(n int) {
	j.t.Helper()
	batches := make([]*connector.Batch[string], len(j.writers))
	for i := range batches {
		batches[i] = &connector.Batch[string]{}
	}
	for range n {
		i := j.written % sinkPartitions % len(batches)
		batches[i].Append(strconv.Itoa(j.written), int64(1000+j.written), 0)
		j.written++
	}
	for i, b := range batches {
		if err := j.writers[i].Write(j.t.Context(), b); err != nil {
			j.t.Fatal(err)
		}
	}
}

// prepare has the first n subtasks prepare a checkpoint.
func (j *job) prepare(n int) {
	j.t.Helper()
	j.checkpoint++
	for i, w := range j.writers[:n] {
		data, err := w.Prepare(j.t.Context(), j.checkpoint)
		if err != nil {
			j.t.Fatal(err)
		}
		if len(data) > 0 {
			j.prepared[i] = append(j.prepared[i], preparedBy{j.checkpoint, data})
		}
	}
}

// store returns the checkpoint that all subtasks have prepared.
func (j *job) store() stored {
	s := stored{written: j.written}
	for _, p := range j.prepared {
		s.prepared = append(s.prepared, slices.Clone(p))
	}
	return s
}

// commit has the first n subtasks commit what is prepared.
func (j *job) commit(n int) {
	j.t.Helper()
	for i, w := range j.writers[:n] {
		for _, p := range j.prepared[i] {
			if err := w.Commit(j.t.Context(), p.data); err != nil {
				j.t.Fatal(err)
			}
		}
		j.prepared[i] = nil
	}
}

// kill ends the writers as the end of their process would: nothing more is sent. What is on
// its way arrives first at kfake, which lets a fenced producer begin a transaction.
func (j *job) kill() {
	for _, w := range j.writers {
		if open := w.exactly.open; j.fake && open != nil {
			if err := open.client.Flush(j.t.Context()); err != nil {
				j.t.Error(err)
			}
		}
		w.abort()
		if tx := w.exactly; tx.opening != nil {
			if next := <-tx.opening; next.transaction != nil {
				next.client.Close()
			}
		}
		if w.exactly.open != nil {
			w.exactly.open.client.Close()
		}
		w.client.Close()
	}
}

// close ends the writers in peace.
func (j *job) close() {
	j.t.Helper()
	for _, w := range j.writers {
		if err := w.Close(); err != nil {
			j.t.Error(err)
		}
	}
}

// crashes are the places at which a run ends. Each takes the last checkpoint, and returns the one
// to go on from.
var crashes = map[string]func(j *job, last stored) stored{
	"after the start":          func(j *job, last stored) stored { return last },
	"with an open transaction": func(j *job, last stored) stored { j.write(100); return last },
	"while preparing":          func(j *job, last stored) stored { j.write(100); j.prepare(1); return last },
	"after preparing":          func(j *job, last stored) stored { j.write(100); j.prepare(len(j.writers)); return last },
	"before committing": func(j *job, last stored) stored {
		j.write(100)
		j.prepare(len(j.writers))
		return j.store()
	},
	"while committing": func(j *job, last stored) stored {
		j.write(100)
		j.prepare(len(j.writers))
		last = j.store()
		j.commit(1)
		return last
	},
	"after committing": func(j *job, last stored) stored {
		j.write(100)
		j.prepare(len(j.writers))
		last = j.store()
		j.commit(len(j.writers))
		return last
	},
	"in the next checkpoint": func(j *job, last stored) stored {
		j.write(100)
		j.prepare(len(j.writers))
		last = j.store()
		j.commit(len(j.writers))
		j.write(100)
		j.prepare(1)
		return last
	},
	"after a checkpoint that failed": func(j *job, last stored) stored {
		j.write(50)
		j.prepare(len(j.writers))
		j.write(50)
		j.prepare(len(j.writers))
		return j.store()
	},
	"after an empty checkpoint": func(j *job, last stored) stored {
		j.write(100)
		j.prepare(len(j.writers))
		j.commit(len(j.writers))
		j.prepare(len(j.writers))
		return j.store()
	},
}

// checkOnce checks that readers of committed records see 0 to n-1 once and in order.
func (s *stage) checkOnce(n int) {
	s.t.Helper()
	want := make([][]string, sinkPartitions)
	for i := range n {
		want[i%sinkPartitions] = append(want[i%sinkPartitions], strconv.Itoa(i))
	}
	got := s.committed()
	for i := range want {
		if diff := cmp.Diff(want[i], got[i]); diff != "" {
			s.t.Errorf("partition %d, of %d records (-want +got):\n%.2000s", i, len(got[i]), diff)
		}
	}
}

// TestExactlyOnceOverCrashes has runs crash at each place, one after another, with changing
// parallelism. Where the last run got nowhere it also restores twice from one checkpoint.
func TestExactlyOnceOverCrashes(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		var last stored
		parallelism := []int{4, 2, 4, 1, 4, 3, 2}
		round := 0
		for _, name := range slices.Sorted(maps.Keys(crashes)) {
			for range 2 {
				j := s.mustRestore(last, parallelism[round%len(parallelism)])
				round++
				last = crashes[name](j, last)
				j.kill()
			}
			j := s.mustRestore(last, 2)
			j.close()
			if t.Failed() {
				return
			}
			s.checkOnce(last.written)
			if t.Failed() {
				t.Fatalf("after crashes %s", name)
			}
		}
	})
}

// TestExactlyOnceRandomly writes many records in runs of random lengths that end at random
// places.
func TestExactlyOnceRandomly(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		names := slices.Sorted(maps.Keys(crashes))
		var last stored
		for last.written < 50_000 {
			j := s.mustRestore(last, []int{4, 2, 4}[rnd.IntN(3)])
			for range rnd.IntN(4) {
				j.write(1000 + rnd.IntN(2000))
				j.prepare(len(j.writers))
				last = j.store()
				j.commit(len(j.writers))
			}
			last = crashes[names[rnd.IntN(len(names))]](j, last)
			if rnd.IntN(4) > 0 {
				j.kill()
			} else {
				j.close()
			}
		}
		j := s.mustRestore(last, 4)
		j.close()
		s.checkOnce(last.written)
	})
}
