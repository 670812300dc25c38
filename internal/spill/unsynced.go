package spill

import (
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// unsynced is a file system that leaves it to the machine when files get to the disk. Nothing
// here is to survive it. After an error it makes no more files.
//
// Pebble's list of files is for the next time that a store is opened, which never comes, and
// for images. So what cannot be written of it is noted, which ends the use of the store, and
// Pebble is told that it was: it could do nothing but end the process.
type unsynced struct {
	vfs.FS
	health *health
}

// Create implements vfs.FS.
func (u unsynced) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if !isListOfFiles(name) {
		if err := u.health.mayCreate(); err != nil {
			return nil, err
		}
		return unsyncedFile(u.FS.Create(name, category))
	}
	err := u.health.cause()
	var f vfs.File
	if err == nil {
		f, err = u.FS.Create(name, category)
	}
	if err != nil {
		u.health.breakBy(err)
		if f, err = vfs.NewMem().Create(filepath.Base(name), category); err != nil {
			return nil, err
		}
	}
	return &listOfFiles{withoutSync{f}, u.health}, nil
}

// isListOfFiles reports whether a file is a list of the store's files, or says which of them is
// the one that counts.
func isListOfFiles(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.")
}

// OpenDir implements vfs.FS.
func (u unsynced) OpenDir(name string) (vfs.File, error) { return unsyncedFile(u.FS.OpenDir(name)) }

func unsyncedFile(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &withoutSync{f}, nil
}

type withoutSync struct{ vfs.File }

func (*withoutSync) Sync() error                { return nil }
func (*withoutSync) SyncData() error            { return nil }
func (*withoutSync) SyncTo(int64) (bool, error) { return false, nil }

// listOfFiles is a file of which Pebble is not told that it cannot be written.
type listOfFiles struct {
	withoutSync
	health *health
}

func (f *listOfFiles) Write(data []byte) (int, error) {
	if f.health.cause() == nil {
		if _, err := f.File.Write(data); err != nil {
			f.health.breakBy(err)
		}
	}
	return len(data), nil
}

func (f *listOfFiles) Close() error {
	if err := f.File.Close(); err != nil {
		f.health.breakBy(err)
	}
	return nil
}
