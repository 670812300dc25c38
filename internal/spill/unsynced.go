package spill

import "github.com/cockroachdb/pebble/v2/vfs"

// unsynced is a file system that leaves it to the machine when files get to the disk. Nothing
// here is to survive it. After an error it makes no more files.
type unsynced struct {
	vfs.FS
	health *health
}

// Create implements vfs.FS.
func (u unsynced) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := u.health.mayCreate(); err != nil {
		return nil, err
	}
	return unsyncedFile(u.FS.Create(name, category))
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
