//go:build !unix

package checkpoint

import (
	"errors"
	"os"
)

// lockFile does nothing: there is no lock here that ends with the process. Two
// processes with one directory are not found out.
func lockFile(*os.File) error { return nil }

func isLocked(error) bool { return false }

func freeSpace(string) (uint64, bool) { return 0, false }

func isNoSpace(err error) bool { return errors.Is(err, errNoSpace) }
