package operator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/snapshot"
)

// watermarkPart holds, for each subtask of an operator that makes watermarks, the last one
// it emitted: 8 bytes.
const (
	watermarkPart    = "watermark"
	watermarkVersion = 1
)

// watermarkFloor keeps the event time of an operator that makes watermarks over a restart:
// the operator emits again what it had reached, before anything else, and nothing that is
// behind it. Its generator begins anew.
type watermarkFloor struct {
	out Output
	// emitted is the last watermark, restored the one of the earlier run; MinTimestamp
	// for none.
	emitted, restored int64
	// pending says that the restored one is still to be emitted, cancel takes back the
	// call that does so if no record comes.
	pending bool
	cancel  func()
}

// open reads what an earlier run had reached: the same subtask, or with another
// parallelism the slowest one.
func (f *watermarkFloor) open(rt *Runtime, out Output) error {
	f.out, f.emitted, f.restored = out, eventtime.MinTimestamp, eventtime.MinTimestamp
	if rt.Restored == nil {
		return nil
	}
	part, ok := rt.Restored.Part(watermarkPart)
	if !ok {
		return nil
	}
	var all []int64
	for e, err := range part.Entries() {
		if err == nil && (len(e.Data) != 8 || part.Part().Version != watermarkVersion) {
			err = errors.New("not of the form that is known here: was it written by a later release?")
		}
		if err != nil {
			return fmt.Errorf("checkpoint %d cannot be restored: part %q: %w", rt.Restored.Checkpoint(), watermarkPart, err)
		}
		all = append(all, int64(binary.LittleEndian.Uint64(e.Data)))
	}
	if len(all) == 0 {
		return nil
	}
	f.restored = slices.Min(all)
	if len(all) == rt.Parallelism {
		f.restored = all[rt.Subtask]
	}
	f.emitted = f.restored
	if f.pending = f.restored != eventtime.MinTimestamp; f.pending {
		f.cancel = rt.Timers.At(rt.Timers.Now(), func(int64) error { return f.resume() })
	}
	return nil
}

// resume emits the restored watermark, unless that or a later one has been emitted. It is
// called before records are passed on.
func (f *watermarkFloor) resume() error {
	if !f.pending {
		return nil
	}
	f.close()
	return f.out.Watermark(f.restored)
}

// watermark emits t if it is not behind what the earlier run had reached.
func (f *watermarkFloor) watermark(t int64) error {
	if f.restored != eventtime.MinTimestamp && t <= f.restored {
		return f.resume()
	}
	f.close()
	f.emitted = t
	return f.out.Watermark(t)
}

func (f *watermarkFloor) snapshot(w snapshot.Writer) error {
	part, err := w.Part(snapshot.Part{Name: watermarkPart, Kind: snapshot.Union, Version: watermarkVersion})
	if err != nil {
		return err
	}
	return errors.Join(part.Append(0, binary.LittleEndian.AppendUint64(nil, uint64(f.emitted))), part.Close())
}

func (f *watermarkFloor) close() {
	f.pending = false
	if f.cancel != nil {
		f.cancel()
		f.cancel = nil
	}
}
