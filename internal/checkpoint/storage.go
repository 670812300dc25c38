package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// storage is where files are: a folder, an object store, memory. Names have slashes and
// are relative to its root. Errors name the file. It is safe for concurrent use.
type storage interface {
	// path returns the name as the user knows it; "" is the root.
	path(name string) string
	// create begins a file. It appears under its name with commit.
	create(name string) (fileWriter, error)
	// open fails with fs.ErrNotExist if there is none.
	open(name string) (fileReader, error)
	// list returns the files at any depth below dir, "" for all, in the order of names.
	// A dir that is not there has none.
	list(dir string) ([]fileInfo, error)
	// remove removes files, and the folders that are empty then. One that is not there
	// is no error.
	remove(names ...string) error
	// sync makes sure that the names created and removed in dir survive a crash.
	sync(dir string) error
	// publish makes a small file appear, complete and safe, of a name that is not there. It
	// fails with fs.ErrExist if there is one by then with another content.
	publish(name string, data []byte) error
	// lock makes this run the one that writes here.
	lock() (owner, error)
	// free returns the free space in bytes; ok is false if that is not known.
	free() (bytes uint64, ok bool)
	close() error
}

// fileWriter is a file that does not exist yet. After a commit, abort does nothing.
type fileWriter interface {
	io.Writer
	// commit makes the file appear, complete and safe.
	commit() error
	abort() error
}

// fileReader is an open file. ReadAt is safe for concurrent use.
type fileReader interface {
	io.ReaderAt
	io.Closer
	size() int64
}

type fileInfo struct {
	name string
	size int64
}

func sortFiles(files []fileInfo) []fileInfo {
	slices.SortFunc(files, func(a, b fileInfo) int { return cmp.Compare(a.name, b.name) })
	return files
}

// errUnreachable is in the errors of a storage that is somewhere else. What it says nothing
// about may be whole.
var errUnreachable = errors.New("the object store did not do as asked")

// concurrency is how many files are looked at or removed at a time: object stores are far
// away.
const concurrency = 16

// atOnce calls f for all of items and joins the errors in the order of items.
func atOnce[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	room := make(chan struct{}, concurrency)
	var group sync.WaitGroup
	for i, item := range items {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			errs[i] = f(item)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// errNoSpace is what a storage without an operating system below says when it is full.
var errNoSpace = errors.New("no space left")

// withFree adds the free space to err if that may be the reason.
func withFree(s storage, err error) error {
	if err == nil || !isNoSpace(err) {
		return err
	}
	if n, ok := s.free(); ok {
		return fmt.Errorf("%w (%d bytes are free in %s)", err, n, s.path(""))
	}
	return err
}

// openStorage opens the storage of a URL or local path. write creates what is missing.
func openStorage(ctx context.Context, address string, write bool) (storage, error) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return openLocal(address, write)
	}
	switch scheme {
	case "file":
		u, err := parseURL(address)
		if err != nil {
			return nil, err
		}
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return nil, fmt.Errorf("checkpoint: %s: a file URL has three slashes and an absolute path, such as file:///var/lib/job", shown(address))
		}
		return openLocal(filepath.FromSlash(u.Path), write)
	case "mem":
		name, dir, _ := strings.Cut(rest, "/")
		return openMem(name, dir), nil
	}
	if tag, known := blobTags[scheme]; known {
		if openBlob == nil {
			return nil, fmt.Errorf("checkpoint: %s: this lowwater is built without object stores: build it with -tags %s", shown(address), tag)
		}
		return openBlob(ctx, scheme, address)
	}
	return nil, fmt.Errorf("checkpoint: %s: unknown scheme %q: there are /path, file, s3, gs and azblob", shown(address), scheme)
}

// parseURL is url.Parse whose error does not repeat the address.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: not a URL: %w", shown(address), err)
	}
	return u, nil
}

// shown is an address as messages show it, without the user and the options of a URL, which
// may hold secrets. The address need not be a valid one.
func shown(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	rest, _, _ = strings.Cut(rest, "?")
	user := strings.LastIndex(rest, "@")
	if user >= 0 && (strings.Contains(rest[:user], ":") || !strings.Contains(rest[:user], "/")) {
		rest = rest[user+1:]
	}
	return scheme + "://" + rest
}

// blobTags are the build tags that link in the object stores of URL schemes.
var blobTags = map[string]string{"s3": "lowwater_s3", "gs": "lowwater_gcs", "azblob": "lowwater_azure"}

// openBlob is set in builds with object stores.
var openBlob func(ctx context.Context, scheme, address string) (storage, error)

// splitAddress cuts the address of a checkpoint, or of its manifest, into the storage
// that has it and its folder there.
func splitAddress(address string) (root, dir string) {
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		clean := filepath.Clean(address)
		if filepath.Base(clean) == manifestName {
			clean = filepath.Dir(clean)
		}
		if abs, err := filepath.Abs(clean); err == nil {
			clean = abs // "." has a name, too
		}
		return filepath.Dir(clean), filepath.Base(clean)
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	clean := strings.TrimRight(rest, "/")
	if path.Base(clean) == manifestName {
		clean = path.Dir(clean)
	}
	root, dir = path.Split(clean)
	root = scheme + "://" + strings.TrimSuffix(root, "/")
	if scheme == "file" && root == "file://" {
		root += "/"
	}
	if hasQuery {
		root += "?" + query
	}
	return root, dir
}
