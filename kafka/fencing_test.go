package kafka

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/lowwater/lowwater/connector"
)

// TestZombieCannotCommit has a run that was taken for dead wake up after the next one has
// started.
func TestZombieCannotCommit(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		zombie := s.mustRestore(stored{}, 2)
		zombie.write(100)
		zombie.prepare(2)
		zombie.write(100)
		for _, w := range zombie.writers {
			if err := w.flush(t.Context(), w.exactly.open.client); err != nil {
				t.Fatal(err)
			}
		}

		j := s.mustRestore(stored{}, 2)
		j.write(200)
		for i, w := range zombie.writers {
			var lost *lostTransaction
			if err := w.Commit(t.Context(), zombie.prepared[i][0].data); !errors.As(err, &lost) {
				t.Errorf("subtask %d of the zombie commits what was aborted: %v", i, err)
			}
			err := w.Write(t.Context(), batchOf("0", "1"))
			if err == nil {
				_, err = w.Prepare(t.Context(), 2)
			}
			if missing := mentions(err, "ended by someone else", "TransactionalIDPrefix"); missing != "" {
				t.Errorf("subtask %d of the zombie goes on: %v (does not mention %s)", i, err, missing)
			}
		}
		zombie.close()
		j.prepare(2)
		j.commit(2)
		j.write(20)
		j.prepare(2)
		j.commit(2)
		j.close()
		s.checkOnce(220)
	})
}

// TestZombieRepeatsACommit has both runs commit the same checkpoint.
func TestZombieRepeatsACommit(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		zombie := s.mustRestore(stored{}, 2)
		zombie.write(100)
		zombie.prepare(2)
		last := zombie.store()
		for _, w := range zombie.writers {
			if _, err := w.exactly.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		j := s.mustRestore(last, 4)
		zombie.commit(2)
		err := zombie.writers[0].Write(t.Context(), batchOf("0"))
		if err == nil {
			_, err = zombie.writers[0].Prepare(t.Context(), 2)
		}
		if err == nil {
			t.Error("the zombie goes on")
		}
		j.write(100)
		j.prepare(4)
		j.commit(4)
		j.close()
		zombie.kill()
		s.checkOnce(200)
	})
}

// TestStartAbortsWhatIsLeft checks that readers wait for the start of the next run, not for
// the timeout of a transaction that a dead one with a larger parallelism left.
func TestStartAbortsWhatIsLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		dead := s.mustRestore(stored{}, 4)
		dead.write(100)
		dead.prepare(4)
		dead.write(100)
		for _, w := range dead.writers {
			if err := w.flush(t.Context(), w.exactly.open.client); err != nil {
				t.Fatal(err)
			}
		}
		dead.kill()
		other := s.mustRestore(stored{}, 1, TransactionalIDPrefix(s.topic+"-1"))
		other.write(1)

		j := s.mustRestore(stored{}, 1)
		other.prepare(1) // its prefix begins with the other's
		other.commit(1)
		s.checkOnce(1)
		j.close()
		other.close()
	})
}

// TestCloseAborts checks that a run that ends in peace leaves no transaction open.
func TestCloseAborts(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		j := s.mustRestore(stored{}, 1)
		j.write(10)
		j.prepare(1)
		j.commit(1)
		j.write(10)
		if err := j.writers[0].flush(t.Context(), j.writers[0].exactly.open.client); err != nil {
			t.Fatal(err)
		}
		j.close()
		s.checkOnce(10)
	})
}

// TestFewTransactionalIDs checks that slots are used again.
func TestFewTransactionalIDs(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		j := s.mustRestore(stored{}, 2)
		for range 12 {
			j.write(10)
			j.prepare(2)
			j.commit(2)
		}
		ids, err := j.writers[0].listTransactionalIDs(t.Context(), s.topic)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, suffix := range []string{"-0-0", "-0-1", "-0-2", "-1-0", "-1-1", "-1-2"} {
			want = append(want, s.topic+suffix)
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { _, _, ok := parseTransactionalID(s.topic, id); return !ok })
		if diff := cmp.Diff(want, ids); diff != "" {
			t.Errorf("transactional ids (-want +got):\n%s", diff)
		}
		j.close()
	})
}

func TestTransactionTimeoutIsChecked(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		j, err := s.restore(stored{}, 1, TransactionTimeout(16*time.Minute))
		j.kill()
		if missing := mentions(err, "TransactionTimeout: 16m0s", "transaction.max.timeout.ms", ": 15m0s"); missing != "" {
			t.Errorf("error %v: does not mention %s", err, missing)
		}
	})
}

// TestExpiredTransaction restores a checkpoint whose transactions have timed out.
func TestExpiredTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		j := s.mustRestore(stored{}, 1, TransactionTimeout(time.Second))
		j.write(10)
		j.prepare(1)
		last := j.store()
		j.kill()
		for state := ""; state != "CompleteAbort"; { // real brokers look every 10 s
			wait(t.Context(), 100*time.Millisecond)
			d, err := s.admin.DescribeTransactions(t.Context(), transactionalID(s.topic, 0, 0))
			if err != nil {
				t.Fatal(err)
			}
			if state = d[transactionalID(s.topic, 0, 0)].State; state == "Empty" {
				break // kfake
			}
		}

		failed, err := s.restore(last, 1)
		failed.kill()
		var lost *lostTransaction
		if missing := mentions(err, s.topic+"-0-0", "checkpoint 1", "TransactionTimeout", "IgnoreLostTransactions", "lost"); missing != "" || !errors.As(err, &lost) {
			t.Errorf("error %v: does not mention %s", err, missing)
		}
		j = s.mustRestore(last, 1, IgnoreLostTransactions())
		j.write(10)
		j.prepare(1)
		j.commit(1)
		j.close()
		read := 0
		for _, values := range s.committed() {
			read += len(values)
		}
		if read != 10 {
			t.Errorf("%d records, want the 10 that were not lost", read)
		}
	})
}

// TestExactlyOnceNoLonger restores a checkpoint of an exactly-once sink with one that is not.
func TestExactlyOnceNoLonger(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		j := s.mustRestore(stored{}, 2)
		j.write(10)
		j.prepare(2)
		last := j.store()
		j.write(10)
		j.kill()
		j = s.mustRestore(last, 1, Delivery(AtLeastOnce))
		j.write(10)
		if err := j.writers[0].Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.close()
		s.checkOnce(20)
	})
}

func TestTransactionalIDs(t *testing.T) {
	for id, want := range map[string][2]int{"a-0-0": {0, 0}, "a-12-3": {12, 3}} {
		subtask, slot, ok := parseTransactionalID("a", id)
		if !ok || subtask != want[0] || slot != want[1] || transactionalID("a", subtask, slot) != id {
			t.Errorf("%s is parsed as %d, %d, %t", id, subtask, slot, ok)
		}
	}
	for _, id := range []string{"", "a", "a-", "a-1", "a-1-", "a--1", "a-1-2-3", "a-b-1-2", "a-+1-2", "a-01-2", "b-1-2", "aa-1-2", "a--1-2"} {
		if _, _, ok := parseTransactionalID("a", id); ok {
			t.Errorf("%q is parsed", id)
		}
	}
}

func TestUnreadablePrepared(t *testing.T) {
	for _, data := range []string{"", "{", "{}", `{"transactionalId":5}`} {
		if _, err := decodePrepared([]byte(data)); err == nil || !strings.Contains(err.Error(), "unreadable") {
			t.Errorf("%q: %v", data, err)
		}
	}
}

// TestRealBrokerRefusesTheFuture: Kafka 4 takes no timestamps that are more than an hour
// ahead.
func TestRealBrokerRefusesTheFuture(t *testing.T) {
	b := realBroker(t, sinkPartitions)
	s := &stage{t: t, topic: b.topic, admin: kadm.NewClient(b.client(t)), options: []Option{Brokers(b.addrs...)}}
	w := openWriter(t, s.sink(Delivery(AtLeastOnce)))
	batch := &connector.Batch[string]{}
	batch.Append("3", time.Now().Add(3*time.Hour).UnixMilli(), 0)
	err := errors.Join(w.Write(t.Context(), batch), w.Flush(t.Context()))
	if missing := mentions(err, b.topic+"-3", "WithTimestamp", "message.timestamp.after.max.ms"); missing != "" {
		t.Errorf("error %v: does not mention %s", err, missing)
	}
}

// TestUndecidedTransactions restores transactions that are to be committed only later, of
// this subtask and of another one; meanwhile nothing ends them.
func TestUndecidedTransactions(t *testing.T) {
	onBoth(t, func(t *testing.T, s *stage) {
		j := s.mustRestore(stored{}, 2)
		j.write(10)
		j.prepare(2)
		last := j.store()
		j.write(10)
		j.kill()

		undecided := [][]byte{last.prepared[0][0].data, last.prepared[1][0].data}
		for range 2 { // the first one crashes before the decision
			w, err := s.sink().NewWriter(t.Context(), connector.WriterRuntime{Operator: "sink", Parallelism: 1, Logger: testLogger(t)})
			if err != nil {
				t.Fatal(err)
			}
			j = &job{stage: s, writers: []*writer[string]{w.(*writer[string])}, written: 10, checkpoint: 1, prepared: make([][]preparedBy, 1)}
			if err := j.writers[0].Recover(t.Context(), nil, undecided); err != nil {
				t.Fatal(err)
			}
			j.write(10)
			j.prepare(1)
			defer j.kill()
		}
		for _, data := range undecided {
			if err := j.writers[0].Commit(t.Context(), data); err != nil {
				t.Fatal(err)
			}
		}
		j.commit(1)
		s.checkOnce(20)
	})
}
