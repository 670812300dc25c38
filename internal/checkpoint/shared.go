package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/zeebo/xxh3"
)

const sharedDir = "shared"

// sharedFiles are the files that never change, of a store or of one savepoint.
type sharedFiles struct {
	storage storage
	dir     string

	// mu is never held while something is read or written.
	mu    sync.Mutex
	files map[string]*sharedFile
	// removing has the files that are being removed, each with what is closed behind that.
	removing map[string]chan struct{}
}

// sharedFile is a file that is there or on its way.
type sharedFile struct {
	stored chan struct{} // closed when ref or err is known
	ref    SharedRef
	err    error
}

// isStored reports whether the file was there when that was looked at last.
func (f *sharedFile) isStored() bool {
	select {
	case <-f.stored:
		return true
	default:
		return false
	}
}

func newSharedFiles(s storage, dir string) *sharedFiles {
	return &sharedFiles{storage: s, dir: dir, files: map[string]*sharedFile{}, removing: map[string]chan struct{}{}}
}

// know takes note of files that a whole checkpoint refers to.
func (s *sharedFiles) know(refs []SharedRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range refs {
		f := &sharedFile{stored: make(chan struct{}), ref: ref}
		close(f.stored)
		s.files[ref.Name] = f
	}
}

// forget has a file that is known be stored anew.
func (s *sharedFiles) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.files[name]; ok && f.isStored() {
		delete(s.files, name)
	}
}

// look forgets the files that are not there any more, because somebody else has removed them.
func (s *sharedFiles) look() error {
	s.mu.Lock()
	var known []string
	for name, f := range s.files {
		if f.isStored() { // else it need not be there yet
			known = append(known, name)
		}
	}
	s.mu.Unlock()
	if len(known) == 0 {
		return nil
	}
	files, err := s.storage.list(s.dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, f := range files {
		there[strings.TrimPrefix(f.name, s.dir+"/")] = true
	}
	for _, name := range known {
		if !there[name] {
			s.forget(name)
		}
	}
	return nil
}

// store returns the reference to a file and stores it if it is not there.
func (s *sharedFiles) store(name string, size int64, open func() (io.ReadCloser, error)) (ref SharedRef, stored bool, err error) {
	s.mu.Lock()
	for s.removing[name] != nil {
		gone := s.removing[name]
		s.mu.Unlock()
		<-gone
		s.mu.Lock()
	}
	f, known := s.files[name]
	if !known {
		f = &sharedFile{stored: make(chan struct{})}
		s.files[name] = f
	}
	s.mu.Unlock()
	if known {
		<-f.stored
		if f.err == nil && f.ref.Size != size {
			return SharedRef{}, false, fmt.Errorf("it is stored with %d bytes and now has %d: a shared file never changes", f.ref.Size, size)
		}
		return f.ref, false, f.err
	}
	f.ref, f.err = s.copy(name, size, open)
	if f.err != nil {
		s.mu.Lock()
		delete(s.files, name) // the next one may try again
		s.mu.Unlock()
	}
	close(f.stored)
	return f.ref, f.err == nil, f.err
}

func (s *sharedFiles) copy(name string, size int64, open func() (io.ReadCloser, error)) (SharedRef, error) {
	from, err := open()
	if err != nil {
		return SharedRef{}, err
	}
	defer from.Close() // only read from
	to, err := s.storage.create(s.dir + "/" + name)
	if err != nil {
		return SharedRef{}, err
	}
	hash := xxh3.New()
	n, err := io.Copy(to, io.TeeReader(from, hash))
	if err == nil && n != size {
		err = fmt.Errorf("it has %d bytes instead of %d", n, size)
	}
	if err == nil {
		err = to.commit()
	}
	if err != nil {
		return SharedRef{}, errors.Join(err, to.abort())
	}
	return SharedRef{Name: name, Size: size, Checksum: hash.Sum64()}, nil
}

// collect removes the files that are not in use, and what dead runs left of others. They
// are listed before the check, so that none is a later run's.
func (s *sharedFiles) collect(owner owner, inUse func(name string) bool) error {
	files, err := s.storage.list(s.dir)
	if err != nil {
		return err
	}
	if err := owner.check(); err != nil {
		return err
	}
	var remove, names []string
	gone := make(chan struct{})
	s.mu.Lock()
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file.name, s.dir+"/"), partSuffix)
		if inUse(name) {
			continue
		}
		remove, names = append(remove, file.name), append(names, name)
		delete(s.files, name)
		s.removing[name] = gone // who wants it now waits, and stores it anew
	}
	s.mu.Unlock()
	err = s.storage.remove(remove...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.removing, name)
	}
	close(gone)
	return err
}

// checkedReader reads a shared file and ends with an error instead of io.EOF if its
// content is not what it was.
type checkedReader struct {
	file fileReader
	from *bufio.Reader
	hash *xxh3.Hasher
	ref  SharedRef
	path string
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	_, _ = r.hash.Write(p[:n]) // never fails
	if err == io.EOF && r.hash.Sum64() != r.ref.Checksum {
		err = fmt.Errorf("checkpoint: shared file %s: %w", r.path, errDamaged)
	}
	return n, err
}

func (r *checkedReader) Close() error { return r.file.Close() }

// readAhead is how much of a shared file is read at a time: each time is a request to an
// object store.
const readAhead = 4 << 20

func newCheckedReader(f fileReader, ref SharedRef, path string) *checkedReader {
	from := bufio.NewReaderSize(io.NewSectionReader(f, 0, f.size()), int(min(f.size(), readAhead)))
	return &checkedReader{file: f, from: from, hash: xxh3.New(), ref: ref, path: path}
}
