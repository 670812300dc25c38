//go:build unix

package keyed

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process, so that what other processes take of a
// busy machine is not measured.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
