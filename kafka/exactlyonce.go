package kafka

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
)

// transactions are those of one subtask of an exactly-once sink. From one checkpoint to the
// next records go into a transaction, with a client of its own. At the barrier it is
// prepared: flushed, written down in the checkpoint, and its client closed. It is committed
// when the checkpoint has completed, from this process or a later one.
//
// InitProducerID aborts what a transactional id has under way. So a subtask has several,
// its slots, which go round. A slot whose transaction is committed is used again only when a
// checkpoint has completed that does not name that transaction any more: until then a
// restart commits it again, and must find it as it was left. With checkpoints that
// neither overlap nor fail this takes three slots.
type transactions struct {
	cluster *cluster
	cfg     *sinkConfig
	log     *slog.Logger
	options []kgo.Opt
	subtask int
	// parallelism is the sink's, which says whose ids of earlier runs fall to whom.
	parallelism int

	// base ends what runs in the background.
	base    context.Context
	open    *transaction
	opening chan openedTransaction // delivers the next one to open, if there is none

	// busy are the slots that are not free.
	busy map[int]bool
	// pending are the transactions that are prepared and not committed, oldest first.
	pending []pendingTransaction
	// committed are slots with committed transactions that the last completed checkpoint
	// names, or may name.
	committed []int
}

// transaction is one that records are written to.
type transaction struct {
	*cluster
	id       string
	slot     int
	producer int64
	epoch    int16
	begun    bool
}

type openedTransaction struct {
	*transaction
	err error
}

// noSlot is the slot of a transaction that another subtask of an earlier run prepared.
const noSlot = -1

type pendingTransaction struct {
	preparedTransaction
	slot int
	// frees are the slots that are free when this transaction is committed: theirs were
	// before it was prepared, so that the same checkpoint does not name them.
	frees []int
}

func newTransactions(base context.Context, c *cluster, cfg *sinkConfig, rt connector.WriterRuntime, options []kgo.Opt) *transactions {
	return &transactions{
		cluster: c, cfg: cfg, log: rt.Logger, options: options, base: base,
		subtask: rt.Subtask, parallelism: rt.Parallelism,
		busy: map[int]bool{},
	}
}

// recover commits what earlier runs prepared, except for what is undecided, and aborts
// everything else that those subtasks left which this one succeeds.
func (t *transactions) recover(ctx context.Context, prepared, undecided [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.client.startupTimeout)
	defer cancel()
	keep := map[string]bool{}
	for _, data := range prepared {
		p, err := decodePrepared(data)
		if err != nil {
			return err
		}
		if err := t.settle(ctx, p); err != nil {
			return err
		}
		keep[p.TransactionalID] = true
		if slot, own := t.ownSlot(p); own {
			t.busy[slot] = true
			t.committed = append(t.committed, slot)
		}
	}
	for _, data := range undecided {
		p, err := decodePrepared(data)
		if err != nil {
			return err
		}
		keep[p.TransactionalID] = true
		slot, own := t.ownSlot(p)
		if own {
			t.busy[slot] = true
		}
		t.pending = append(t.pending, pendingTransaction{preparedTransaction: p, slot: slot})
	}
	if t.cfg.transactionalIDPrefix == "" {
		return nil // the sink is exactly-once no longer
	}
	if err := t.abortOthers(ctx, keep); err != nil || t.cfg.guarantee != ExactlyOnce {
		return err
	}
	var err error
	t.open, err = t.start(ctx, t.takeSlot())
	return err
}

// ownSlot returns the slot of a transaction of this subtask, or noSlot.
func (t *transactions) ownSlot(p preparedTransaction) (slot int, own bool) {
	subtask, slot, ok := parseTransactionalID(t.cfg.transactionalIDPrefix, p.TransactionalID)
	if !ok || subtask != t.subtask {
		return noSlot, false
	}
	return slot, true
}

// abortOthers fences the transactional ids that fall to this subtask, except those to keep.
func (t *transactions) abortOthers(ctx context.Context, keep map[string]bool) error {
	prefix := t.cfg.transactionalIDPrefix
	ids, err := t.cluster.listTransactionalIDs(ctx, prefix)
	if err != nil {
		return err
	}
	for _, id := range ids {
		subtask, _, ok := parseTransactionalID(prefix, id)
		if !ok || subtask%t.parallelism != t.subtask || keep[id] {
			continue
		}
		if err := t.cluster.fence(ctx, id, t.cfg.transactionTimeout); err != nil {
			return t.explainStart(ctx, err)
		}
	}
	return nil
}

// settle commits a transaction, or notes that it is lost if the job may go on without it.
func (t *transactions) settle(ctx context.Context, p preparedTransaction) error {
	err := t.cluster.commit(ctx, p)
	var lost *lostTransaction
	if errors.As(err, &lost) && t.cfg.ignoreLost {
		t.log.Error("a transaction could not be committed; the job goes on, as IgnoreLostTransactions says", "error", err)
		return nil
	}
	return err
}

// takeSlot returns the lowest free slot, which then is not.
func (t *transactions) takeSlot() int {
	slot := 0
	for t.busy[slot] {
		slot++
	}
	t.busy[slot] = true
	return slot
}

// start makes the client of a transaction. Whatever its slot has been used for is over
// then.
func (t *transactions) start(ctx context.Context, slot int) (*transaction, error) {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.client.startupTimeout)
	defer cancel()
	id := transactionalID(t.cfg.transactionalIDPrefix, t.subtask, slot)
	// Each transaction's client learns about its topics anew, and a checkpoint waits for it
	// if a broker does not know one yet.
	base := []kgo.Opt{kgo.MetadataMinAge(retryInterval)}
	fixed := slices.Concat(t.options, transactionOptions(id, t.cfg.transactionTimeout))
	c, err := connect(t.cluster.of, t.cluster.needs, t.cluster.cfg, t.log, base, fixed)
	if err != nil {
		return nil, err
	}
	tx := &transaction{cluster: c, id: id, slot: slot}
	if tx.producer, tx.epoch, err = c.client.ProducerID(ctx); err != nil {
		c.client.Close()
		return nil, t.explainStart(ctx, c.errorf("starting transaction %s on %s: %w", id, c.cfg.addresses(), c.cause(err)))
	}
	return tx, nil
}

func (t *transactions) explainStart(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		return t.cluster.timeoutRefused(ctx, t.cfg.transactionTimeout, err)
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		return t.cluster.errorf("no permission for transactional ids that begin with %q; grant the job's user WRITE and DESCRIBE: %w",
			t.cfg.transactionalIDPrefix+"-", err)
	default:
		return err
	}
}

// begin returns the client to write with. It waits for the one that is being made.
func (t *transactions) begin(ctx context.Context) (*kgo.Client, error) {
	if t.opening != nil {
		select {
		case next := <-t.opening:
			t.opening = nil
			if next.err != nil {
				return nil, next.err
			}
			t.open = next.transaction
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if !t.open.begun {
		if err := t.open.client.BeginTransaction(); err != nil {
			return nil, t.cluster.errorf("beginning transaction %s: %w", t.open.id, err)
		}
		t.open.begun = true
	}
	return t.open.client, nil
}

var errNotOne = errors.New("its records cannot be committed as one")

// prepare ends the open transaction once its records are flushed, and has the next one made.
func (t *transactions) prepare(ctx context.Context, checkpoint int64) ([]byte, error) {
	tx := t.open
	producer, epoch, err := tx.client.ProducerID(ctx)
	if err != nil || producer != tx.producer || epoch != tx.epoch {
		return nil, t.cluster.errorf("transaction %s began with producer %d, epoch %d, and now has %d, %d: %w", tx.id, tx.producer, tx.epoch, producer, epoch,
			cmp.Or(err, errNotOne))
	}
	tx.client.Close()
	t.open = nil
	p := preparedTransaction{TransactionalID: tx.id, ProducerID: producer, Epoch: epoch, Checkpoint: checkpoint}
	t.pending = append(t.pending, pendingTransaction{p, tx.slot, t.committed})
	t.committed = nil

	t.opening = make(chan openedTransaction, 1)
	slot, opening := t.takeSlot(), t.opening
	go func() {
		next, err := t.start(t.base, slot)
		opening <- openedTransaction{next, err}
	}()
	return json.Marshal(p)
}

// commit commits the oldest prepared transaction.
func (t *transactions) commit(ctx context.Context, data []byte) error {
	p, err := decodePrepared(data)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, t.cfg.deliveryTimeout)
	defer cancel()
	if err := t.settle(ctx, p); err != nil {
		return err
	}
	if len(t.pending) == 0 || t.pending[0].preparedTransaction != p {
		return nil // again
	}
	for _, slot := range t.pending[0].frees {
		delete(t.busy, slot)
	}
	if slot := t.pending[0].slot; slot != noSlot {
		t.committed = append(t.committed, slot)
	}
	t.pending = t.pending[1:]
	return nil
}

// giveUpTimeout bounds how long closing waits for the coordinator.
const giveUpTimeout = 2 * time.Second

// close aborts the open transaction, so that readers need not wait for its timeout,
// unless another run has taken over. What is prepared stays for the next run.
func (t *transactions) close(takenOver bool) {
	if t.opening != nil {
		if next := <-t.opening; next.transaction != nil {
			next.client.Close()
		}
	}
	if t.open == nil {
		return
	}
	t.open.client.Close()
	if !t.open.begun || takenOver {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveUpTimeout)
	defer cancel()
	if err := t.cluster.giveUp(ctx, t.open.id, t.open.producer, t.open.epoch, t.cfg.transactionTimeout); err != nil && !isSuperseded(err) {
		t.log.Warn("a transaction could not be aborted; readers of committed records wait for the next start of the job or for its timeout",
			"transaction", t.open.id, "timeout", t.cfg.transactionTimeout, "error", err)
	}
}
