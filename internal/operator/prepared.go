package operator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/internal/snapshot"
)

const (
	// preparedPart is the part of an exactly-once sink's snapshot that holds what is
	// prepared and not committed. It goes to all subtasks, which take from it what is theirs
	// to commit.
	preparedPart    = "prepared"
	preparedVersion = 1
)

// preparedOutput is what a writer prepared at a checkpoint, as it is stored: JSON, for
// people to read.
type preparedOutput struct {
	Subtask    int    `json:"subtask"`
	Checkpoint int64  `json:"checkpoint"`
	Output     opaque `json:"output"`
}

// recover has the writer commit what an earlier run prepared.
func (s *Sink[T]) recover() error {
	var outputs, undecided [][]byte
	if s.rt.Restored != nil {
		part, ok := s.rt.Restored.Part(preparedPart)
		if ok {
			prepared, err := s.decodePrepared(part)
			if err != nil {
				return err
			}
			for _, p := range prepared {
				if p.Checkpoint <= s.rt.CommitUpTo || s.twoPhase == nil {
					outputs = append(outputs, p.Output)
					continue
				}
				undecided = append(undecided, p.Output)
				s.prepared = append(s.prepared, p)
			}
		}
	}
	if s.twoPhase != nil {
		return s.twoPhase.Recover(s.rt.Context, outputs, undecided)
	}
	// The sink was exactly-once and is no longer.
	if w, ok := s.writer.(connector.TwoPhaseWriter); ok && s.rt.Restored != nil {
		return w.Recover(s.rt.Context, outputs, nil)
	}
	if len(outputs) > 0 {
		return fmt.Errorf("the checkpoint holds output that is prepared and has to be committed, but %T cannot: "+
			"restore with the sink that wrote it, or give this one another UID and do without that output", s.writer)
	}
	return nil
}

// decodePrepared returns what this subtask has to commit, oldest first. What subtask s
// of the earlier run wrote falls to subtask s modulo the parallelism: to its own successor
// if the parallelism has not changed, and to one that exists if it has shrunk.
func (s *Sink[T]) decodePrepared(part snapshot.PartReader) ([]preparedOutput, error) {
	if v := part.Part().Version; v != preparedVersion {
		return nil, fmt.Errorf("part %q of the checkpoint has layout %d, this version of the program reads %d: use the one that wrote it", preparedPart, v, preparedVersion)
	}
	var own []preparedOutput
	for stored, err := range part.Entries() {
		if err != nil {
			return nil, err
		}
		var p preparedOutput
		if err := json.Unmarshal(stored.Data, &p); err != nil {
			return nil, fmt.Errorf("the checkpoint's prepared output %q is unreadable: %w", stored.Data, err)
		}
		if p.Subtask%s.rt.Parallelism == s.rt.Subtask {
			own = append(own, p)
		}
	}
	slices.SortStableFunc(own, func(a, b preparedOutput) int { return cmp.Compare(a.Checkpoint, b.Checkpoint) })
	return own, nil
}

// PrepareBarrier implements BeforeBarrier.
func (s *Sink[T]) PrepareBarrier(checkpoint int64) error {
	switch {
	case s.twoPhase != nil:
		output, err := s.twoPhase.Prepare(s.rt.Context, checkpoint)
		if err != nil {
			return err
		}
		if len(output) > 0 {
			s.prepared = append(s.prepared, preparedOutput{s.rt.Subtask, checkpoint, output})
		}
	case s.guarantee == connector.AtLeastOnce:
		return s.writer.Flush(s.rt.Context)
	}
	return nil
}

// Snapshot implements Stateful.
func (s *Sink[T]) Snapshot(w snapshot.Writer) error {
	if s.twoPhase == nil {
		return nil
	}
	part, err := w.Part(snapshot.Part{
		Name: preparedPart, Kind: snapshot.Union, Version: preparedVersion,
		Schemas: map[string]string{"text": "json"},
	})
	if err != nil {
		return err
	}
	for _, p := range s.prepared {
		entry, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if err := part.Append(0, entry); err != nil {
			return err
		}
	}
	return part.Close()
}

// CheckpointCompleted implements CheckpointListener: it commits what was prepared up to
// that checkpoint. What a checkpoint that failed had prepared is in the next one, and
// committed with it.
func (s *Sink[T]) CheckpointCompleted(checkpoint int64) error {
	for len(s.prepared) > 0 && s.prepared[0].Checkpoint <= checkpoint {
		if err := s.twoPhase.Commit(s.rt.Context, s.prepared[0].Output); err != nil {
			return fmt.Errorf("committing the output of checkpoint %d: %w", s.prepared[0].Checkpoint, err)
		}
		s.prepared = s.prepared[1:]
	}
	return nil
}
