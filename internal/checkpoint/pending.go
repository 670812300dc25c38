package checkpoint

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
)

// Pending is a checkpoint that is being written. Until Complete it does not exist for
// anyone else. It is safe for concurrent use.
type Pending struct {
	store   *Store
	storage storage // the store's, or that of a savepoint's target
	id      int64
	kind    Kind
	dir     string
	shared  *sharedFiles
	// target is the address that a savepoint was given, empty for the store's own.
	target string

	// mu is never held while something is read or written.
	mu       sync.Mutex
	segments map[string]*Segment // by file
	done     map[string]bool     // finished ones
	refs     map[string]SharedRef
	// ended says that nothing is added any more: Complete has begun, or Abort.
	ended bool
	// sent says that the manifest has been sent to a storage where another run may find it: it
	// may be there although that has failed. It belongs to Complete.
	sent bool
}

// Segment begins the segment of a subtask, of which there is one for each vertex and
// subtask. The caller ends it with Finish or Abort.
func (p *Pending) Segment(vertex string, subtask int) (*Segment, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errAborted
	}
	file := segmentFile(vertex, subtask, runSuffix(p.store.owner.number()))
	if p.segments[file] != nil {
		return nil, fmt.Errorf("checkpoint %d: subtask %d of vertex %s has begun its segment twice", p.id, subtask, vertex)
	}
	s, err := p.newSegment(file, vertex, subtask)
	if err != nil {
		return nil, err
	}
	p.segments[file] = s
	return s, nil
}

// runSuffix makes the names of a run's segments differ from those of all other runs that may
// write meanwhile.
func runSuffix(number int64) string {
	if number == 0 {
		return ""
	}
	return "-run" + strconv.FormatInt(number, 10)
}

// segmentFile returns a name that is safe on any storage and differs for different
// vertices, and for different runs by their suffix.
func segmentFile(vertex string, subtask int, run string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '-' || r < 128 && isFileByte(byte(r)) {
			return r
		}
		return '_'
	}, vertex)
	if clean != vertex || len(vertex) > 100 {
		clean = fmt.Sprintf("%.80s-%016x", clean, xxh3.HashString(vertex))
	}
	return clean + "-" + strconv.Itoa(subtask) + run + segmentSuffix
}

func isFileByte(c byte) bool {
	return c == '_' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

func (p *Pending) finished(s *Segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[s.info.File] = true
}

// Complete publishes the checkpoint and returns where it is. m says what the coordinator
// knows; number, kind, run, segments and sizes are filled in. All segments must be finished.
// When it returns without an error, the checkpoint survives a crash of the machine.
// If it fails, the checkpoint is aborted, and nothing is left of it; but where another run may
// take over, one that may have been published stays, because that run may have found it.
func (p *Pending) Complete(m Manifest) (path string, err error) {
	where := p.storage.path(p.dir)
	if !p.end() {
		return "", fmt.Errorf("checkpoint %d in %s: %w", p.id, where, errAborted)
	}
	if err := p.publish(&m); err != nil {
		err = fmt.Errorf("checkpoint %d in %s: %w", p.id, where, withFree(p.storage, err))
		if p.sent {
			p.store.forget(p)
			return "", err
		}
		return "", errors.Join(err, p.discard())
	}
	p.store.completed(p, &m)
	return where, nil
}

// Address returns where the checkpoint is to be, as Load takes it: Complete's path with the
// options of the URL.
func (p *Pending) Address() string {
	root, query, hasQuery := strings.Cut(p.target, "?")
	if !hasQuery || !strings.Contains(root, "://") {
		return p.storage.path(p.dir)
	}
	return strings.TrimRight(root, "/") + "/" + p.dir + "?" + query
}

// end ends the checkpoint for all but the caller, and reports whether it had not ended.
func (p *Pending) end() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.ended
	p.ended = true
	return !before
}

// publish makes a checkpoint that has ended appear.
func (p *Pending) publish(m *Manifest) error {
	m.ID, m.Kind, m.Run = p.id, p.kind, p.store.owner.run()
	if err := p.describe(m); err != nil {
		return err
	}
	data, err := encodeManifest(m)
	if err != nil {
		return err
	}
	// All that the manifest speaks of must be there, and safe, before it is.
	if err := p.checkStored(m); err != nil {
		return err
	}
	if err := p.storage.sync(p.dir); err != nil {
		return err
	}
	if len(m.sharedRefs()) > 0 {
		if err := p.storage.sync(p.shared.dir); err != nil {
			return err
		}
	}
	if err := p.store.owner.check(); err != nil {
		return err
	}
	err = p.storage.publish(p.dir+"/"+manifestName, data)
	p.sent = p.store.owner.number() > 0 && p.storage == p.store.storage && !errors.Is(err, fs.ErrExist)
	if err != nil {
		return cmp.Or(p.store.owner.check(), err) // another run's may be there
	}
	if err := p.storage.sync(p.dir); err != nil {
		return err
	}
	// A run that has taken over by now may not have seen it.
	return p.store.owner.check()
}

// checkStored sees that what the manifest speaks of has not been removed meanwhile by somebody
// else. Of shared files, others may be stored anew.
func (p *Pending) checkStored(m *Manifest) error {
	c := &Checkpoint{storage: p.storage, dir: p.dir, manifest: m}
	whole, damage, err := c.checkFiles()
	if err != nil || len(damage) == 0 {
		return err
	}
	for _, ref := range m.sharedRefs() {
		if !whole[c.sharedName(ref)] {
			p.shared.forget(ref.Name)
		}
	}
	return fmt.Errorf("something else has removed or changed %d of its files: %w", len(damage), damage[0])
}

// describe fills in what the segments know.
func (p *Pending) describe(m *Manifest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	sizes := map[string]int64{}
	m.Segments = nil
	for _, file := range slices.Sorted(maps.Keys(p.segments)) {
		s := p.segments[file]
		if !p.done[file] {
			return fmt.Errorf("subtask %d of vertex %s has not finished its segment", s.info.Subtask, s.info.Vertex)
		}
		m.Segments = append(m.Segments, s.info)
		s.sizes(func(operator string, raw int64) { sizes[operator] += raw })
	}
	m.Operators = slices.Clone(m.Operators)
	for i := range m.Operators {
		op := &m.Operators[i]
		op.Size = sizes[op.ID]
		delete(sizes, op.ID)
	}
	for operator := range sizes {
		return fmt.Errorf("there is state of operator %s, which the manifest does not name", operator)
	}
	return nil
}

func writeFile(s storage, name string, data []byte) error {
	w, err := s.create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.abort())
	}
	if err := w.commit(); err != nil {
		return errors.Join(err, w.abort())
	}
	return nil
}

// Abort gives the checkpoint up and removes all of it. Segments under way are aborted,
// too. Once Complete has been called, and the second time, it does nothing.
func (p *Pending) Abort() error {
	if !p.end() {
		return nil
	}
	return p.discard()
}

// discard removes all of a checkpoint that has ended.
func (p *Pending) discard() error {
	p.mu.Lock()
	segments := slices.Collect(maps.Values(p.segments))
	p.mu.Unlock()
	for _, s := range segments {
		s.Abort()
	}
	err := p.store.removeDir(p.storage, p.dir)
	p.store.forget(p)
	if err != nil {
		return fmt.Errorf("checkpoint %d: removing what was written of it: %w", p.id, err)
	}
	return nil
}

// removeDir removes a checkpoint, the manifest first: without it, the rest is nothing. What
// it removes is listed before the check: another run may have one of that number by now.
func (s *Store) removeDir(from storage, dir string) error {
	files, err := from.list(dir)
	if err != nil {
		return err
	}
	if err := s.owner.check(); err != nil {
		return err
	}
	manifest := dir + "/" + manifestName
	var names []string
	for _, f := range files {
		if f.name != manifest {
			names = append(names, f.name)
			continue
		}
		if err := from.remove(manifest); err != nil {
			return err
		}
	}
	if err := from.sync(dir); err != nil {
		return err
	}
	return from.remove(names...)
}

func savepointDir(id int64) string {
	var unique [3]byte
	_, _ = rand.Read(unique[:]) // never fails
	return fmt.Sprintf("savepoint-%d-%s", id, hex.EncodeToString(unique[:]))
}

// Shared makes a file that never changes part of the checkpoint. It is stored once,
// however many checkpoints refer to it by that name, until none does any more. open is
// called if it is to be stored, and gives size bytes.
func (s *Segment) Shared(name string, size int64, open func() (io.ReadCloser, error)) (SharedRef, error) {
	ref, stored, err := s.pending.share(name, size, open)
	if err != nil {
		return SharedRef{}, fmt.Errorf("checkpoint %d: shared file %q: %w", s.pending.id, name, withFree(s.pending.storage, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.err != nil {
		return SharedRef{}, s.over()
	}
	if !slices.Contains(s.index.Shared, ref) {
		s.index.Shared = append(s.index.Shared, ref)
	}
	if stored {
		s.info.NewShared += ref.Size
	}
	return ref, nil
}

// share returns the reference to a file, and whether it has been stored now.
func (p *Pending) share(name string, size int64, open func() (io.ReadCloser, error)) (ref SharedRef, stored bool, err error) {
	if name == "" || len(name) > 200 || strings.Trim(name, ".") == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '.' && (r >= 128 || !isFileByte(byte(r)))
	}) {
		return SharedRef{}, false, errors.New("the name must be of letters, digits, -, _ and .")
	}
	// Noted first: from now on it is in use.
	p.mu.Lock()
	if p.ended {
		p.mu.Unlock()
		return SharedRef{}, false, errAborted
	}
	p.refs[name] = SharedRef{Name: name, Size: size}
	p.mu.Unlock()
	ref, stored, err = p.shared.store(name, size, open)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.ended && p.kind == KindSavepoint {
		// Abort has cleared up before the file was there; nobody else will.
		return SharedRef{}, false, errors.Join(errAborted, p.storage.remove(p.shared.dir+"/"+name))
	}
	return ref, stored, err
}

// uses reports whether the pending checkpoint refers to a shared file.
func (p *Pending) uses(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.refs[name]
	return ok
}
