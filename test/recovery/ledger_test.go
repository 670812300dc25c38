package recovery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/lowwater/lowwater/connector"
)

// ledger is an outside system with transactions. It outlives the job.
type ledger struct {
	trial *trial

	mu        sync.Mutex
	next      int
	prepared  map[int][]string
	committed map[int]bool
	visible   []string
}

func newLedger(t *trial) *ledger {
	return &ledger{trial: t, prepared: map[int][]string{}, committed: map[int]bool{}}
}

func (l *ledger) Validate() error                    { return nil }
func (l *ledger) Guarantee() connector.SinkGuarantee { return connector.ExactlyOnce }

func (l *ledger) NewWriter(context.Context, connector.WriterRuntime) (connector.Writer[string], error) {
	return &ledgerWriter{ledger: l}, nil
}

func (l *ledger) prepare(records []string) (id int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	l.prepared[l.next] = records
	return l.next
}

func (l *ledger) commit(id int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	records, ok := l.prepared[id]
	switch {
	case l.committed[id]:
		return nil
	case !ok:
		return fmt.Errorf("transaction %d was never prepared", id)
	}
	l.committed[id] = true
	l.visible = append(l.visible, records...)
	return nil
}

// shown returns how many records are visible, while the job runs.
func (l *ledger) shown() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.visible)
}

type ledgerWriter struct {
	ledger    *ledger
	open      []string
	recovered bool
}

func (w *ledgerWriter) Write(_ context.Context, b *connector.Batch[string]) error {
	if !w.recovered {
		return errors.New("Write before Recover")
	}
	w.open = append(w.open, b.Values...)
	return nil
}

func (w *ledgerWriter) Flush(context.Context) error { return errors.New("Flush of a two-phase writer") }
func (w *ledgerWriter) Close() error                { return nil }

func (w *ledgerWriter) Recover(ctx context.Context, prepared, _ [][]byte) error {
	w.recovered = true
	for _, p := range prepared {
		if err := w.Commit(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (w *ledgerWriter) Prepare(context.Context, int64) ([]byte, error) {
	if err := w.ledger.trial.chance("prepare"); err != nil {
		return nil, err
	}
	if len(w.open) == 0 {
		return nil, nil
	}
	id := w.ledger.prepare(w.open)
	w.open = nil
	return strconv.AppendInt(nil, int64(id), 10), nil
}

func (w *ledgerWriter) Commit(_ context.Context, prepared []byte) error {
	id, err := strconv.Atoi(string(prepared))
	if err != nil {
		return err
	}
	// Before it, or behind it: the caller cannot know whether it was done.
	if err := w.ledger.trial.chance("commit"); err != nil {
		return err
	}
	if err := w.ledger.commit(id); err != nil {
		return err
	}
	return w.ledger.trial.chance("commit, after it")
}
