package spill

import "github.com/cockroachdb/pebble/v2"

// RunBytes is from how many bytes on a batch of a store of runs goes to a file of its own,
// without being sorted into those before it.
const RunBytes = 512 << 10

// forRuns makes of options those of a store of runs. It merges files rarely, many at once:
// reading in order merges them, too, and most are removed before that.
func (o *Options) forRuns(options *pebble.Options) {
	options.MemTableSize = 2*RunBytes + 64<<10 // a batch of half of it counts as large
	options.L0CompactionThreshold = mergedFiles
	options.L0CompactionFileThreshold = mergedFiles
	options.Experimental.ReadSamplingMultiplier = -1 // reading is no reason to merge
}

// mergedFiles is how many files are merged at once.
const mergedFiles = 200

// maxFiles is how many files may wait to be sorted into others: as many as Pebble would let.
const maxFiles = 12

// throttle returns what writers of a store with such options wait for.
func (o *Options) throttle(options *pebble.Options) throttle {
	t := throttle{memTable: int(options.MemTableSize), maxFiles: maxFiles}
	if o.Runs {
		t.maxFiles = 4 * mergedFiles
	}
	return t
}

// DeletePrefix adds the removal of all keys that begin with prefix, which has a byte below
// 255.
func (b *Batch) DeletePrefix(prefix []byte) error {
	return b.batch.DeleteRange(prefix, after(prefix), nil)
}
