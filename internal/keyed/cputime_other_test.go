//go:build !unix

package keyed

import "time"

var processStart = time.Now()

// cpuTime is the time that has passed, where that of the CPU cannot be asked for.
func cpuTime() time.Duration { return time.Since(processStart) }
