//go:build unix

package checkpoint

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f until it is closed or the process ends, however it does.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// isLocked reports whether lockFile failed because somebody else has the lock.
func isLocked(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

func freeSpace(dir string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, errNoSpace)
}
