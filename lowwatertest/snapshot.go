package lowwatertest

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
)

// Snapshot is all state of a part at one moment. It can be restored any number of times,
// in the same test process.
type Snapshot struct {
	path string
	at   time.Time
}

// stores counts the stores of snapshots, each of which has a name of its own.
var stores atomic.Int64

// WithSnapshots is the option of a part that [Harness.Snapshot] is used on. Like
// checkpoints in production it asks of all keys, states and elements of windows that they
// can be stored.
func WithSnapshots() lowwater.Option { return snapshots() }

// Restore is the option of a part that goes on from a snapshot of the same part: built
// by the same calls, and with the same names of inputs. Its parallelism may be another,
// and states may have changed as far as schema evolution allows. Inputs go on behind what
// they were fed, with the watermark that they had. Before the part is built processing
// time passes until the moment of the snapshot. It implies [WithSnapshots].
//
// State that the part has no place for fails the test.
func Restore(s *Snapshot) lowwater.Option {
	with := snapshots(lowwater.ResumeFrom(s.path))
	return func(e *lowwater.Environment) {
		synctest.Sleep(max(time.Until(s.at), 0))
		with(e)
	}
}

func snapshots(options ...lowwater.CheckpointOption) lowwater.Option {
	url := fmt.Sprintf("mem://lowwatertest-%d", stores.Add(1))
	checkpoints, restart := lowwater.WithCheckpoints(url, 0, options...), lowwater.WithRestart(nil)
	return func(e *lowwater.Environment) {
		checkpoints(e)
		restart(e)
	}
}

// Snapshot takes a snapshot, as a checkpoint of the running job would: the part goes on
// afterwards. It needs [WithSnapshots] or [Restore] among the options of [Drive].
func (h *Harness) Snapshot() *Snapshot {
	h.t.Helper()
	h.run()
	synctest.Wait()
	path, err := h.job.Savepoint(h.t.Context(), "")
	if err != nil {
		h.t.Fatalf("Snapshot: %v", err)
	}
	synctest.Wait()
	return &Snapshot{path, time.Now()}
}

// EncodeSplit implements connector.SplitCodec.
func (s *manualSource[T]) EncodeSplit(split connector.Split) ([]byte, error) {
	m := split.(manualSplit)
	return append(binary.AppendVarint(nil, m.next), m.name...), nil
}

// DecodeSplit implements connector.SplitCodec.
func (s *manualSource[T]) DecodeSplit(data []byte) (connector.Split, error) {
	next, n := binary.Varint(data)
	if n <= 0 {
		return nil, fmt.Errorf("split of the input %q: %d bytes", s.name, len(data))
	}
	return manualSplit{string(data[n:]), next}, nil
}

// SnapshotSplits implements connector.SplitSnapshotter.
func (s *manualSource[T]) SnapshotSplits() ([]connector.Split, error) {
	return []connector.Split{manualSplit{s.name, s.next}}, nil
}
