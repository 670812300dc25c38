package kafka

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// This file is what brokers are told and asked about transactions. None of it needs the
// client that wrote a transaction: a transaction that has been flushed is ended by whoever
// knows its transactional id, producer id and epoch, also in another process.
//
// It is done with version 1 of the protocol everywhere, as clients of Kafka 3 do it. There
// EndTxn leaves the epoch as it is, and may be repeated until InitProducerID begins something
// else with the transactional id, which raises the epoch: from then on EndTxn is refused,
// and so it is when the coordinator has aborted the transaction. Version 2 (KIP-890) would
// raise the epoch with each EndTxn, which changes nothing here, and depends on
// the cluster's feature transaction.version: clusters that came from Kafka 3 have a lower
// one and refuse it, and the feature may change between a checkpoint and the commit.
// What version 2 guards against, records that arrive after the end of their transaction, does
// not happen to what is committed, since it was acknowledged before; what is given up
// ends with a raised epoch, so that late records are refused.

// transactionRetryInterval is how long to wait while a coordinator is busy with the end
// of a transaction.
const transactionRetryInterval = 50 * time.Millisecond

// preparedTransaction is one that was flushed and is to be committed, as it is stored.
type preparedTransaction struct {
	TransactionalID string `json:"transactionalId"`
	ProducerID      int64  `json:"producerId"`
	Epoch           int16  `json:"epoch"`
	Checkpoint      int64  `json:"checkpoint"`
}

func (p preparedTransaction) String() string {
	return fmt.Sprintf("transaction %s (producer %d, epoch %d), prepared at checkpoint %d", p.TransactionalID, p.ProducerID, p.Epoch, p.Checkpoint)
}

func decodePrepared(data []byte) (p preparedTransaction, err error) {
	if err = json.Unmarshal(data, &p); err == nil && p.TransactionalID == "" {
		err = errors.New("it has no transactionalId")
	}
	if err != nil {
		err = fmt.Errorf("kafka sink: the prepared transaction %q is unreadable: %w", data, err)
	}
	return p, err
}

// commit makes a transaction's records visible to readers of committed records. It does
// nothing if that has been done.
func (c *cluster) commit(ctx context.Context, p preparedTransaction) error {
	err := c.untilAnswered(ctx, func() error {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = p.TransactionalID, p.ProducerID, p.Epoch
		req.Commit = true
		resp, err := req.RequestWith(ctx, c.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	switch {
	case err == nil:
		return nil
	case isSuperseded(err):
		return &lostTransaction{p, err, c.describeTransaction(ctx, p.TransactionalID)}
	default:
		return c.errorf("committing %s on %s: %w", p, c.cfg.addresses(), c.cause(err))
	}
}

// lostTransaction is the error of a transaction that cannot be committed any more.
type lostTransaction struct {
	preparedTransaction
	cause error
	// now is what the coordinator says of the transactional id.
	now string
}

func (e *lostTransaction) Unwrap() error { return e.cause }

func (e *lostTransaction) Error() string {
	return fmt.Sprintf("kafka sink: %s, cannot be committed any more: %v. The coordinator has it as %s. "+
		"Either it was aborted, and its records are lost to readers of committed records: because more than TransactionTimeout passed "+
		"between its first record and now (raise it, and transaction.max.timeout.ms of the brokers), because another job uses the same TransactionalIDPrefix, "+
		"or because the job was restored from a savepoint, after which it had gone back to an older checkpoint and written the records again. "+
		"Or it was committed long ago, and the job was restored from a checkpoint that is not its latest. "+
		"To go on without it, set IgnoreLostTransactions", e.preparedTransaction, e.cause, e.now)
}

// isSuperseded reports whether a coordinator says that a transaction is not, or no longer,
// the producer's to go on with.
func isSuperseded(err error) bool {
	for _, code := range []error{
		kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.InvalidTxnState,
		kerr.InvalidProducerIDMapping, kerr.TransactionalIDNotFound,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// describeTransaction says, for a message, how the coordinator has a transactional id.
func (c *cluster) describeTransaction(ctx context.Context, id string) string {
	described, err := kadm.NewClient(c.client).DescribeTransactions(ctx, id)
	switch t := described[id]; {
	case err != nil:
		return "unknown (" + err.Error() + ")"
	case t.Err != nil:
		return "unknown (" + t.Err.Error() + ")"
	default:
		return fmt.Sprintf("%s with producer %d, epoch %d", t.State, t.ProducerID, t.ProducerEpoch)
	}
}

// fence aborts what is under way with a transactional id and keeps earlier producers of
// it from writing, committing or aborting anything.
func (c *cluster) fence(ctx context.Context, id string, timeout time.Duration) error {
	err := c.untilAnswered(ctx, func() error { return c.initProducer(ctx, id, -1, -1, timeout) })
	if err != nil {
		return c.errorf("aborting what an earlier run left in transaction %s on %s: %w", id, c.cfg.addresses(), c.cause(err))
	}
	return nil
}

// giveUp has the coordinator abort the transaction of a producer, unless another one has
// taken over. Raising the epoch, as InitProducerID does, keeps records that are still on
// their way from being written after the end.
func (c *cluster) giveUp(ctx context.Context, id string, producer int64, epoch int16, timeout time.Duration) error {
	err := c.initProducer(ctx, id, producer, epoch, timeout)
	if errors.Is(err, kerr.ConcurrentTransactions) {
		return nil // it has begun to
	}
	return err
}

func (c *cluster) initProducer(ctx context.Context, id string, producer int64, epoch int16, timeout time.Duration) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &id
	req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = producer, epoch
	resp, err := req.RequestWith(ctx, c.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode)
}

// untilAnswered repeats a question to a coordinator while the answer is that it is busy, or
// there is none, until ctx ends.
func (c *cluster) untilAnswered(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		var answer *kerr.Error
		final := errors.As(err, &answer) && !answer.Retriable && !errors.Is(err, kerr.ConcurrentTransactions)
		if err == nil || final || !wait(ctx, transactionRetryInterval) {
			return err
		}
	}
}

// transactionalID names the transaction of a subtask in one of its slots. A prefix must
// not be used by two jobs at once. Ids of different prefixes never mix, also where one
// prefix begins with another.
func transactionalID(prefix string, subtask, slot int) string {
	return prefix + "-" + strconv.Itoa(subtask) + "-" + strconv.Itoa(slot)
}

// parseTransactionalID is transactionalID's reverse.
func parseTransactionalID(prefix, id string) (subtask, slot int, ok bool) {
	rest, ok := strings.CutPrefix(id, prefix+"-")
	if !ok {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(rest, "-")
	subtask, err1 := strconv.Atoi(first)
	slot, err2 := strconv.Atoi(second)
	return subtask, slot, err1 == nil && err2 == nil && transactionalID(prefix, subtask, slot) == id
}

// listTransactionalIDs returns the transactional ids with a prefix that the brokers know.
func (c *cluster) listTransactionalIDs(ctx context.Context, prefix string) (ids []string, err error) {
	pattern := "^" + regexp.QuoteMeta(prefix) + "-[0-9]+-[0-9]+$"
	err = c.untilAnswered(ctx, func() error {
		ids = ids[:0]
		req := kmsg.NewPtrListTransactionsRequest()
		req.TransactionalIDPattern = &pattern // brokers before 4.1 ignore it
		for _, shard := range c.client.RequestSharded(ctx, req) {
			if shard.Err != nil {
				return shard.Err
			}
			resp := shard.Resp.(*kmsg.ListTransactionsResponse)
			if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
				return err
			}
			for _, t := range resp.TransactionStates {
				ids = append(ids, t.TransactionalID)
			}
		}
		return nil
	})
	if err != nil {
		return nil, c.errorf("looking for transactions of earlier runs on %s: %w; exactly-once needs Kafka 3.0 or later",
			c.cfg.addresses(), c.cause(err))
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// maxTransactionTimeout returns the brokers' limit, as text for a message.
func (c *cluster) maxTransactionTimeout(ctx context.Context) string {
	admin := kadm.NewClient(c.client)
	brokers, err := admin.ListBrokers(ctx)
	if err != nil || len(brokers) == 0 {
		return "unknown"
	}
	configs, err := admin.DescribeBrokerConfigs(ctx, brokers[0].NodeID)
	for _, resource := range configs {
		err = cmp.Or(err, resource.Err)
		for _, config := range resource.Configs {
			if ms, err := strconv.ParseInt(config.MaybeValue(), 10, 64); err == nil && config.Key == "transaction.max.timeout.ms" {
				return (time.Duration(ms) * time.Millisecond).String()
			}
		}
	}
	return fmt.Sprintf("unknown (%v)", err)
}

// timeoutRefused explains a transaction timeout that brokers do not allow.
func (c *cluster) timeoutRefused(ctx context.Context, timeout time.Duration, err error) error {
	return c.errorf("TransactionTimeout: %v is more than the brokers on %s allow, by transaction.max.timeout.ms: %s; lower the one or raise the other: %w",
		timeout, c.cfg.addresses(), c.maxTransactionTimeout(ctx), err)
}

// endTxnVersion is the last version of EndTxn that is version 1 of the protocol. A client that
// may not use later ones keeps to that version in everything.
const endTxnVersion = 4

func protocolVersion1() kgo.Opt {
	versions := kversion.Tip()
	versions.SetMaxKeyVersion(int16(kmsg.EndTxn), endTxnVersion)
	return kgo.MaxVersions(versions)
}

// transactionOptions returns the options of a client that writes one transaction.
func transactionOptions(id string, timeout time.Duration) []kgo.Opt {
	return []kgo.Opt{kgo.TransactionalID(id), kgo.TransactionTimeout(timeout)}
}
