package spill

import "github.com/cockroachdb/pebble/v2"

// Scan is a walk through a view, for those who walk at several places at once.
type Scan struct {
	store *Store
	it    *pebble.Iterator
	begun bool
}

// Scan returns a walk through the entries whose keys begin with prefix, as From visits them.
// The caller closes it, before the view.
func (v *View) Scan(prefix []byte) (*Scan, error) {
	if v.err != nil {
		return nil, v.err
	}
	it, err := v.snapshot.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, v.store.failed("cannot be read", err)
	}
	return &Scan{store: v.store, it: it}, nil
}

// Restart begins anew with the entries of another prefix.
func (s *Scan) Restart(prefix []byte) {
	s.it.SetBounds(prefix, after(prefix))
	s.begun = false
}

// Next returns the next entry, if there is one. It is valid until the next call.
func (s *Scan) Next() (e Entry, ok bool, err error) {
	if s.begun {
		ok = s.it.Next()
	} else {
		ok, s.begun = s.it.First(), true
	}
	if !ok {
		if err = s.it.Error(); err == nil {
			err = s.store.health.cause()
		}
	} else if e.Value, err = s.it.ValueAndErr(); err == nil {
		e.Key = s.it.Key()
		return e, true, nil
	}
	if err != nil {
		err = s.store.failed("cannot be read", err)
	}
	return Entry{}, false, err
}

// Close ends the walk.
func (s *Scan) Close() error {
	if err := s.it.Close(); err != nil {
		return s.store.failed("cannot be read", err)
	}
	return nil
}
