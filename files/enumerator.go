package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lowwater/lowwater/connector"
)

// enumerator finds the files of a source.
type enumerator struct {
	cfg sourceConfig
	// known are the files that Discover has returned, in this run or in the one that is
	// restored, nil before the first time. Those that are gone are forgotten.
	known map[string]bool
	next  int64 // the number of the next file
}

// found is a file that matches.
type found struct {
	path     string
	modified time.Time
}

// DiscoveryInterval implements connector.Discoverer.
func (e *enumerator) DiscoveryInterval() time.Duration { return e.cfg.interval }

// Owner deals the files out one by one: those that follow each other are read at the same
// time.
func (e *enumerator) Owner(s connector.Split, parallelism int) int {
	return int(s.(split).number % int64(parallelism))
}

func (e *enumerator) Close() error { return nil }

// Discover implements connector.Enumerator.
func (e *enumerator) Discover(context.Context) ([]connector.Split, error) {
	if e.known != nil && !e.cfg.watch {
		return nil, nil
	}
	files, err := e.cfg.list()
	if err != nil {
		return nil, fmt.Errorf("files source: listing %s: %w", e.cfg.pattern, err)
	}
	if len(files) == 0 && !e.cfg.watch {
		return nil, fmt.Errorf("files source: no file matches %s: correct the pattern, or use Watch to wait for files", e.cfg.pattern)
	}
	slices.SortFunc(files, func(a, b found) int {
		if e.cfg.watch {
			return cmp.Or(a.modified.Compare(b.modified), cmp.Compare(a.path, b.path))
		}
		return cmp.Compare(a.path, b.path)
	})
	known := map[string]bool{}
	var splits []connector.Split
	for _, f := range files {
		// The clock of the file system may be ahead of ours.
		young := e.cfg.minAge > 0 && time.Since(f.modified) < e.cfg.minAge
		if !e.known[f.path] {
			if young {
				continue
			}
			splits = append(splits, split{path: f.path, number: e.next})
			e.next++
		}
		known[f.path] = true
	}
	e.known = known
	return splits, nil
}

// list returns all files that match, of any age.
func (c *sourceConfig) list() (files []found, err error) {
	add := func(path string, info fs.FileInfo) {
		if info.Mode().IsRegular() && !isHidden(info.Name()) {
			files = append(files, found{path, info.ModTime()})
		}
	}
	if info, err := os.Stat(c.pattern); err == nil && info.IsDir() {
		err := filepath.WalkDir(c.pattern, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // it was removed while we looked
			case err != nil:
				return err
			case entry.IsDir() && path != c.pattern && isHidden(entry.Name()):
				return fs.SkipDir
			case entry.IsDir():
				return nil
			}
			return addAt(path, add)
		})
		return files, err
	}
	paths, err := filepath.Glob(c.pattern)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if err := addAt(path, add); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addAt adds what is at path, also behind a link, if it is still there.
func addAt(path string, add func(string, fs.FileInfo)) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if name := filepath.Base(path); !isHidden(name) {
		add(path, info)
	}
	return nil
}

// isHidden reports whether files and folders of that name are left out.
func isHidden(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
		strings.HasSuffix(name, unfinished) || strings.HasSuffix(name, ".tmp")
}

// enumeratorJSON is how what Discover has found is stored.
type enumeratorJSON struct {
	// Files are nil before the first Discover.
	Files []string `json:"files"`
	Next  int64    `json:"next"`
}

// SnapshotEnumerator implements connector.RestorableEnumerator.
func (e *enumerator) SnapshotEnumerator() ([]byte, error) {
	stored := enumeratorJSON{Next: e.next}
	if e.known != nil {
		stored.Files = slices.AppendSeq([]string{}, maps.Keys(e.known))
		slices.Sort(stored.Files)
	}
	return json.Marshal(stored)
}

// RestoreEnumerator implements connector.RestorableEnumerator.
func (e *enumerator) RestoreEnumerator(data []byte) error {
	var stored enumeratorJSON
	if err := json.Unmarshal(data, &stored); err != nil {
		return fmt.Errorf("files source: the files in the checkpoint are unreadable: %w", err)
	}
	if stored.Files == nil {
		return nil
	}
	e.next, e.known = stored.Next, map[string]bool{}
	for _, f := range stored.Files {
		e.known[f] = true
	}
	return nil
}
