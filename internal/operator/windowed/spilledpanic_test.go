package windowed

import (
	"iter"
	"os"
	"testing"
	"time"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/window"
)

// panicsOnMerge is concat that panics when it merges, if it is told to.
type panicsOnMerge struct {
	concat
	on *bool
}

func (p panicsOnMerge) Merge(a, b []int32) []int32 {
	if *p.on {
		panic("merge")
	}
	return p.concat.Merge(a, b)
}

// User code that panics while a window is read from disk leaves nothing behind there.
func TestPanicsWhileReadingFromDisk(t *testing.T) {
	panics := false
	function := func(*Context[string], *operator.Emitter[firing]) func(iter.Seq[element]) error {
		return func(iter.Seq[element]) error {
			if panics {
				panic("function")
			}
			return nil
		}
	}
	options := Options{Assigner: window.Tumbling(10 * time.Millisecond), AllowedLateness: 100}
	merging := aggregateLists(options, panicsOnMerge{on: &panics})
	fire := func(h *harness) { _ = h.op.Watermark(20) }
	for _, tt := range []struct {
		name   string
		op     operator.Operator
		before int64
		do     func(*harness)
	}{
		{"the function of a window", Process(specOf[element](options), function), 0, fire},
		{"Merge", merging, 0, fire},
		{"Merge for a late record", aggregateLists(options, panicsOnMerge{on: &panics}), 20,
			func(h *harness) { _ = h.process(timed{element{"a", 9}, 2, 0}) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			panics = false
			dir := ""
			h := openSpilling(t, tt.op, func(rt *operator.Runtime) { dir = rt.StateDir })
			for i := range int32(3) {
				must(t, h.process(timed{element{"a", i}, 1, 0}))
			}
			if tt.before > 0 {
				must(t, h.op.Watermark(tt.before))
			}
			panics = true
			func() {
				defer func() {
					if recover() == nil {
						t.Error("nothing has panicked")
					}
				}()
				tt.do(h)
			}()
			must(t, h.closeNow())
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
		})
	}
}
