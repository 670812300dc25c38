package files

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// unfinished ends the hidden name that a file has until it is visible.
const unfinished = ".inprogress"

// directory is where a sink writes. Names in it are relative, with slashes, and cannot lead
// out of it, not by links either.
type directory struct {
	root *os.Root
	path string
	// known are the buckets that are there and safe on disk.
	known map[string]bool
}

func openDirectory(dir string) (*directory, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := makeAll(abs); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	return &directory{root: root, path: abs, known: map[string]bool{".": true}}, nil
}

// makeAll makes a directory and what is missing above it, safely on disk.
func makeAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := makeAll(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncPath(above)
}

func syncPath(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeBucket makes a bucket's folder. What it is called has been checked.
func (d *directory) makeBucket(bucket string) error {
	if d.known[bucket] {
		return nil
	}
	above := path.Dir(bucket)
	if err := d.makeBucket(above); err != nil {
		return err
	}
	if err := d.root.Mkdir(bucket, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.sync(above); err != nil {
		return err
	}
	d.known[bucket] = true
	return nil
}

// sync makes names in a folder safe on disk.
func (d *directory) sync(folder string) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncOf does so for the folders that files are in.
func (d *directory) syncOf(files []string) error {
	done := map[string]bool{}
	for _, f := range files {
		folder := path.Dir(f)
		if done[folder] {
			continue
		}
		done[folder] = true
		if err := d.sync(folder); err != nil {
			return err
		}
	}
	return nil
}

// reveal makes an unfinished file visible. It does nothing if the file is visible.
func (d *directory) reveal(file string) error {
	err := d.root.Rename(hidden(file), file)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = d.root.Lstat(file)
	return err
}

// checkBucket reports a bucket that is no folder in the directory, or not a visible one.
func checkBucket(bucket string) error {
	if bucket == "" {
		return nil
	}
	if len(bucket) > 1024 || strings.ContainsAny(bucket, "\\\x00") || !filepath.IsLocal(bucket) {
		return errors.New("it is not a relative path that stays in the directory")
	}
	for part := range strings.SplitSeq(bucket, "/") {
		if part == "" || part[0] == '.' {
			return errors.New("it has a part that is empty or begins with a dot")
		}
	}
	return nil
}

// hidden returns the name that a file has until it is visible.
func hidden(file string) string {
	folder, name := path.Split(file)
	return folder + "." + name + unfinished
}

// runBytes is the length of what tells the runs of a sink apart in names.
const runBytes = 20

// newRun names a run of a subtask, later ones after earlier ones: the time, and what is at
// random.
func newRun() string {
	var random [4]byte
	rand.Read(random[:])
	return fmt.Sprintf("%012x%08x", uint64(time.Now().UnixMilli())&(1<<48-1), binary.BigEndian.Uint32(random[:]))
}

// partName names file number n of a run.
func partName(prefix string, subtask int, run string, n int, extension string) string {
	return fmt.Sprintf("%s-%05d-%s-%06d%s", prefix, subtask, run, n, extension)
}

// subtaskOf tells which subtask of a sink with that prefix writes an unfinished file.
func subtaskOf(prefix, hiddenName string) (subtask int, ok bool) {
	name, ok := strings.CutPrefix(hiddenName, "."+prefix+"-")
	if !ok || !strings.HasSuffix(name, unfinished) {
		return 0, false
	}
	number, name, _ := strings.Cut(name, "-")
	run, name, _ := strings.Cut(name, "-")
	count, _, _ := strings.Cut(name, ".")
	if len(run) != runBytes || strings.Trim(run, "0123456789abcdef") != "" || count == "" || strings.Trim(count, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 31)
	return int(n), err == nil
}

// removeUnfinished removes the unfinished files of a sink that keep does not name, of the
// subtasks that are succeeded. Others may be removing theirs meanwhile.
func (d *directory) removeUnfinished(prefix string, keep map[string]bool, succeeded func(subtask int) bool) (removed int, err error) {
	err = fs.WalkDir(d.root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || keep[file] {
			return err
		}
		subtask, ok := subtaskOf(prefix, entry.Name())
		if !ok || !succeeded(subtask) {
			return nil
		}
		removed++
		return d.root.Remove(file)
	})
	return removed, err
}
