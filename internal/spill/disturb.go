package spill

import (
	"path/filepath"
	"sync"
)

// disturbances has what DisturbImages was told, by directory.
var disturbances sync.Map

// DisturbImages has f called before an image is taken of a store that was opened under dir:
// until f returns, writes are held back, as while a disk is slow. nil ends that. It is for
// tests of jobs in virtual time, where a disk takes none.
func DisturbImages(dir string, f func()) {
	if f == nil {
		disturbances.Delete(dir)
		return
	}
	disturbances.Store(dir, f)
}

// disturbed is called before an image is taken, without a lock.
func (p *place) disturbed() {
	if f, ok := disturbances.Load(filepath.Dir(p.dir)); ok {
		f.(func())()
	}
}
