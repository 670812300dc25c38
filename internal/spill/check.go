package spill

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
)

// CheckDir returns an error if no store could be made under a directory, the system's for
// temporary files if it is empty. It makes the directory if it is not there.
func CheckDir(dir string) error {
	p := place{dir: cmp.Or(dir, os.TempDir())}
	err := os.MkdirAll(p.dir, 0o755)
	if err == nil {
		var made string
		if made, err = os.MkdirTemp(p.dir, dirPrefix); err == nil {
			if err = os.Remove(made); errors.Is(err, fs.ErrNotExist) {
				err = nil // another process took it for a dead one's
			}
		}
	}
	if err != nil {
		return p.failed("cannot be used", err)
	}
	return nil
}
