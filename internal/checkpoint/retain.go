package checkpoint

import (
	"errors"
	"fmt"
	"slices"
)

// Retain removes all but the newest n whole checkpoints, what dead runs left unfinished,
// and the shared files that nothing refers to any more. It keeps savepoints, pending
// checkpoints, those that are open, and damaged ones newer than the oldest it keeps.
// n is at least 1.
func (s *Store) Retain(n int) error {
	if n < 1 {
		return fmt.Errorf("checkpoint: retaining %d checkpoints: there must be at least one", n)
	}
	infos, err := s.List()
	if err != nil {
		return err
	}
	unreadable := false
	whole := 0
	for _, info := range infos {
		if info.Err == nil && info.Kind == KindCheckpoint {
			whole++
		}
		if s.keeps(info, whole, n) {
			unreadable = unreadable || info.Manifest == nil
			continue
		}
		if err := removeDir(s.storage, info.dir); err != nil {
			return fmt.Errorf("checkpoint: removing %s: %w", info.Path, err)
		}
		s.mu.Lock()
		delete(s.refs, info.dir)
		s.mu.Unlock()
	}
	if unreadable {
		return nil // it may refer to any of the shared files
	}
	if err := s.shared.collect(s.refersTo); err != nil {
		return fmt.Errorf("checkpoint: removing shared files: %w", err)
	}
	return nil
}

// keeps decides on one checkpoint; whole is how many whole ones there are down to it.
func (s *Store) keeps(info Info, whole, n int) bool {
	s.mu.Lock()
	inUse := s.inUse[info.dir] > 0
	s.mu.Unlock()
	switch {
	case info.Kind == KindSavepoint || inUse:
		return true
	case errors.Is(info.Err, ErrUnfinished):
		return false
	case info.Err != nil:
		return whole < n
	}
	return whole <= n
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
		if p.uses(name) {
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
