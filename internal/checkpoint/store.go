package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Store is the checkpoint directory of one job. It is safe for concurrent use.
type Store struct {
	ctx     context.Context
	storage storage
	owner   owner // nil in a view
	shared  *sharedFiles
	// compress is for all segments.
	compress compressor

	mu sync.Mutex
	// record is what this run has written down, and there is none in a view.
	record  record
	pending map[*Pending]bool
	// inUse counts the checkpoints that are open to be restored from, by folder.
	inUse map[string]int
	// refs has the shared files of the store's checkpoints, by folder.
	refs map[string][]SharedRef
}

// Open opens a checkpoint directory for a job that will write to it, and creates it if it
// is not there. The address is a path or a URL: file:///path, mem://name for tests, and in
// builds with the tags lowwater_s3, lowwater_gcs or lowwater_azure s3://, gs:// and
// azblob://. While a directory is open no other process can open it. An object store, and
// memory, belongs to the run that has opened it last: an earlier one gets ErrTakenOver from
// then on. ctx is for the store's whole life.
func Open(ctx context.Context, address string) (*Store, error) {
	s, err := open(ctx, address, true)
	if err != nil {
		return nil, err
	}
	return openStore(ctx, s)
}

func openStore(ctx context.Context, backing storage) (*Store, error) {
	s := newStore(ctx, backing)
	var err error
	if s.owner, err = backing.lock(); err != nil {
		return nil, errors.Join(fmt.Errorf("checkpoint: %w", err), backing.close())
	}
	if err := s.arrive(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// View opens a checkpoint directory to look at it, also while a job writes there.
func View(ctx context.Context, address string) (*Store, error) {
	s, err := open(ctx, address, false)
	if err != nil {
		return nil, err
	}
	return newStore(ctx, s), nil
}

func open(ctx context.Context, address string, write bool) (storage, error) {
	if address == "" {
		return nil, errors.New("checkpoint: no directory is given")
	}
	return openStorage(ctx, address, write)
}

func newStore(ctx context.Context, s storage) *Store {
	return &Store{
		ctx: ctx, storage: s, shared: newSharedFiles(s, sharedDir), compress: newCompressor(),
		pending: map[*Pending]bool{}, inUse: map[string]int{}, refs: map[string][]SharedRef{},
	}
}

// Close gives the directory free for others. Pending checkpoints must have ended.
func (s *Store) Close() error {
	var err error
	if s.owner != nil {
		err = s.owner.release()
	}
	return errors.Join(err, s.storage.close())
}

// Path returns the directory as the user knows it.
func (s *Store) Path() string { return s.storage.path("") }

// CheckOwner fails with ErrTakenOver if the directory belongs to another run by now.
func (s *Store) CheckOwner() error {
	if err := s.owner.check(); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

const checkpointPrefix = "chk-"

// Begin begins a checkpoint, or a savepoint in the target directory; without a target
// that is the store's own. The number must be new.
func (s *Store) Begin(id int64, kind Kind, target string) (*Pending, error) {
	if s.owner == nil {
		return nil, fmt.Errorf("checkpoint: %s is only open to be looked at", s.Path())
	}
	if err := s.CheckOwner(); err != nil {
		return nil, err
	}
	p := &Pending{
		store: s, storage: s.storage, id: id, kind: kind, dir: checkpointPrefix + strconv.FormatInt(id, 10), shared: s.shared,
		segments: map[string]*Segment{}, done: map[string]bool{}, refs: map[string]SharedRef{},
	}
	if kind == KindSavepoint {
		p.dir, p.target = savepointDir(id), target
		if target != "" {
			var err error
			if p.storage, err = openStorage(s.ctx, target, true); err != nil {
				return nil, err
			}
		}
		p.shared = newSharedFiles(p.storage, p.dir+"/"+sharedDir)
	} else if err := errors.Join(s.clear(p.dir), s.shared.look()); err != nil {
		return nil, fmt.Errorf("checkpoint %d: %w", id, withFree(s.storage, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[p] = true
	return p, nil
}

// clear removes what an earlier run left where a checkpoint is to be.
func (s *Store) clear(dir string) error {
	r, err := s.storage.open(dir + "/" + manifestName)
	switch {
	case err == nil:
		if err := errors.Join(r.Close(), s.free(dir)); err != nil {
			return cmp.Or(s.owner.check(), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	s.mu.Lock()
	for p := range s.pending {
		if p.storage == s.storage && p.dir == dir {
			s.mu.Unlock()
			return errors.New("it has begun already")
		}
	}
	s.mu.Unlock()
	return s.removeDir(s.storage, dir)
}

// free returns an error unless the checkpoint of that name does not count.
func (s *Store) free(dir string) error {
	record, err := s.noted()
	if err != nil {
		return err
	}
	if m, err := loadManifest(s.storage, dir); err == nil && record.late(s.storage.path(dir), dir, m) != nil {
		return nil
	}
	return fmt.Errorf("%s is there already: a new checkpoint needs a number that was not used", s.storage.path(dir))
}

// completed takes note of what a checkpoint refers to, and no longer of what it is
// going to.
func (s *Store) completed(p *Pending, m *Manifest) {
	if p.kind == KindCheckpoint {
		s.mu.Lock()
		s.refs[p.dir] = m.sharedRefs()
		s.mu.Unlock()
	}
	s.forget(p)
}

// forget takes a checkpoint off the list of pending ones.
func (s *Store) forget(p *Pending) {
	s.mu.Lock()
	delete(s.pending, p)
	s.mu.Unlock()
	if p.storage != s.storage {
		_ = p.storage.close() // everything in it has been committed or removed
	}
}

// Info is a checkpoint in a list.
type Info struct {
	Path string
	ID   int64
	Kind Kind
	// Manifest is nil if it cannot be read.
	Manifest *Manifest
	// Err says what is wrong with the checkpoint: ErrUnfinished, ErrLate, or damage.
	Err error

	dir string
}

// ErrUnfinished is the error of a checkpoint that never had a manifest: the run that
// wrote it ended before. It is no damage.
var ErrUnfinished = errors.New("it was not completed")

// List returns the checkpoints and savepoints in the directory, the newest first, also
// damaged and late ones and those that were never completed, except for pending ones of this
// process. It looks at manifests, and whether the files are there and whole from the
// outside, as Latest does.
func (s *Store) List() ([]Info, error) {
	infos, err := s.found()
	if err != nil {
		return nil, err
	}
	record, err := s.noted()
	if err != nil {
		return nil, err
	}
	for i := range infos {
		info := &infos[i]
		var c *Checkpoint
		if c, info.Err = load(s.storage, info.dir); c != nil {
			info.Manifest = c.manifest
			info.Err = cmp.Or(record.late(info.Path, info.dir, c.manifest), info.Err)
		}
	}
	return infos, nil
}

// found returns what looks like a checkpoint by its name, the newest first.
func (s *Store) found() ([]Info, error) {
	files, err := s.storage.list("")
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := map[string]bool{}
	for p := range s.pending {
		pending[p.storage.path(p.dir)] = true // a savepoint may have been given this directory
	}
	seen := map[string]bool{}
	var infos []Info
	for _, f := range files {
		dir, _, ok := strings.Cut(f.name, "/")
		if !ok || seen[dir] || pending[s.storage.path(dir)] {
			continue
		}
		seen[dir] = true
		if id, kind, ok := parseDir(dir); ok {
			infos = append(infos, Info{Path: s.storage.path(dir), ID: id, Kind: kind, dir: dir})
		}
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.ID, a.ID), cmp.Compare(b.Kind, a.Kind), cmp.Compare(a.dir, b.dir))
	})
	return infos, nil
}

// parseDir reads the name of a checkpoint's folder.
func parseDir(dir string) (id int64, kind Kind, ok bool) {
	number, ok := strings.CutPrefix(dir, checkpointPrefix)
	if !ok {
		if number, ok = strings.CutPrefix(dir, "savepoint-"); !ok {
			return 0, 0, false
		}
		kind = KindSavepoint
		number, _, _ = strings.Cut(number, "-")
	}
	id, err := strconv.ParseInt(number, 10, 64)
	return id, kind, err == nil && id >= 0
}

// NextID returns a number above all that are or were begun here, also unfinished ones.
func (s *Store) NextID() (int64, error) {
	infos, err := s.found()
	if err != nil {
		return 0, err
	}
	next := int64(1)
	if start, err := s.Start(); err == nil { // else it is about to be replaced
		next = start.After + 1
	}
	for _, info := range infos {
		next = max(next, info.ID+1)
	}
	return next, nil
}

// Latest returns the newest checkpoint or savepoint with a number above after that counts and
// is whole, nil if there is none, and those newer ones that do not, with the reasons. Every
// byte is looked at: an operator that found damage half-way could only fail the job. The
// caller closes it; until then it is not removed. A checkpoint that cannot be reached is an
// error, not skipped.
func (s *Store) Latest(after int64) (latest *Checkpoint, skipped []Info, err error) {
	infos, err := s.found()
	if err != nil {
		return nil, nil, err
	}
	record, err := s.noted()
	if err != nil {
		return nil, nil, err
	}
	for _, info := range infos {
		if info.ID <= after {
			break
		}
		c, err := s.loadWhole(info.dir, &record)
		if err == nil {
			return c, skipped, nil
		}
		if errors.Is(err, errUnreachable) {
			return nil, skipped, err // it may be whole, and then older ones would be wrong
		}
		info.Err = err
		skipped = append(skipped, info)
	}
	return nil, skipped, nil
}

func (s *Store) loadWhole(dir string, record *record) (*Checkpoint, error) {
	c, err := s.load(dir, record)
	if err != nil {
		return nil, err
	}
	if err := c.Verify(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Load opens a checkpoint or savepoint by its path, URL, or name in the directory.
func (s *Store) Load(address string) (*Checkpoint, error) {
	name := strings.TrimSuffix(address, "/"+manifestName)
	if _, _, ok := parseDir(name); ok {
		return s.load(name, nil)
	}
	if rest, ok := strings.CutPrefix(name, s.storage.path("")); ok {
		if dir := path.Clean(strings.Trim(rest, "/")); dir != "." && !strings.Contains(dir, "/") {
			return s.load(dir, nil)
		}
	}
	return Load(s.ctx, address)
}

// load opens one of the store's own and holds it against removal. With a record it is an error
// if the checkpoint does not count.
func (s *Store) load(dir string, record *record) (*Checkpoint, error) {
	s.mu.Lock()
	s.inUse[dir]++
	s.mu.Unlock()
	free := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inUse[dir]--
		return nil
	}
	c, err := load(s.storage, dir)
	if c != nil && record != nil {
		err = cmp.Or(record.late(c.Path(), dir, c.manifest), err)
	}
	if err != nil {
		return nil, errors.Join(err, free())
	}
	c.release = free
	return c, nil
}

// Load opens a checkpoint or savepoint by its path or URL, which may be that of its
// manifest. The caller closes it.
func Load(ctx context.Context, address string) (*Checkpoint, error) {
	root, dir := splitAddress(address)
	s, err := open(ctx, root, false)
	if err != nil {
		return nil, err
	}
	c, err := load(s, dir)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	c.release = s.close
	return c, nil
}

// readFile returns the whole content of a file of at most limit bytes.
func readFile(s storage, name string, limit int64) ([]byte, error) {
	r, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close() // only read from
	if r.size() > limit {
		return nil, fmt.Errorf("it has %d bytes, more than the %d that are possible", r.size(), limit)
	}
	data := make([]byte, r.size())
	if _, err := io.ReadFull(io.NewSectionReader(r, 0, r.size()), data); err != nil {
		return nil, err
	}
	return data, nil
}
