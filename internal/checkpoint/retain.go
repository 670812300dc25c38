package checkpoint

import (
	"errors"
	"fmt"
	"slices"
)

// Retain removes all but the newest n whole checkpoints, what dead runs left unfinished or
// wrote too late, and the shared files that nothing refers to any more. It keeps savepoints, pending
// checkpoints, those that are open, damaged ones newer than the oldest it keeps, and
// the one that the newest run began with until there are n whole ones since.
// n is at least 1.
func (s *Store) Retain(n int) error {
	if n < 1 {
		return fmt.Errorf("checkpoint: retaining %d checkpoints: there must be at least one", n)
	}
	infos, err := s.found()
	if err != nil {
		return err
	}
	record, err := s.noted()
	if err == nil {
		err = record.damage
	}
	if err != nil {
		return err
	}
	unreadable := false
	whole, since := 0, 0
	for _, info := range infos {
		if info.Kind == KindSavepoint {
			continue // it belongs to the user, and has its own shared files
		}
		begun := info.Path == record.From
		keep := whole < n || begun && since < n
		if keep {
			c, err := load(s.storage, info.dir)
			switch {
			case c != nil && !begun && record.late(info.Path, info.dir, c.manifest) != nil:
				keep = false
			case err == nil:
				whole++
				if info.ID > record.After {
					since++
				}
			case errors.Is(err, ErrUnfinished):
				keep = false
			case c == nil:
				unreadable = true
			}
		}
		if keep || s.isOpen(info.dir) {
			continue
		}
		if err := s.discard(info); err != nil {
			return err
		}
	}
	if unreadable {
		return nil // it may refer to any of the shared files
	}
	if err := s.shared.collect(s.owner, s.refersTo); err != nil {
		return fmt.Errorf("checkpoint: removing shared files: %w", err)
	}
	return nil
}

func (s *Store) discard(info Info) error {
	if err := s.removeDir(s.storage, info.dir); err != nil {
		return fmt.Errorf("checkpoint: removing %s: %w", info.Path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refs, info.dir)
	return nil
}

// isOpen reports whether a checkpoint is being restored from.
func (s *Store) isOpen(dir string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse[dir] > 0
}

// refersTo reports whether a checkpoint, or a pending one, refers to a shared file.
func (s *Store) refersTo(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, refs := range s.refs {
		if slices.ContainsFunc(refs, func(r SharedRef) bool { return r.Name == name }) {
			return true
		}
	}
	for p := range s.pending {
		if p.shared == s.shared && p.uses(name) {
			return true
		}
	}
	return false
}

// sharedRefs returns the shared files that a checkpoint refers to.
func (m *Manifest) sharedRefs() []SharedRef {
	var refs []SharedRef
	for _, segment := range m.Segments {
		refs = append(refs, segment.Shared...)
	}
	return refs
}
