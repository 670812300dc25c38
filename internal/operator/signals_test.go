package operator

import (
	"strings"
	"testing"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/eventtime"
)

// What a reader says about event time takes effect behind the records it has emitted, for
// the reader as a whole at once and for a split together with the other splits (spec
// watermarks 5.14).
func TestReaderSignals(t *testing.T) {
	type output = connector.ReaderOutput[int]
	src := &polled{}
	op, out, _, _ := openSource(t, src, eventtime.NoWatermarks[int]())
	poll := func(f func(out output) error) error {
		src.polls = append(src.polls, func(out output) (connector.PollStatus, error) {
			return connector.MoreAvailable, f(out)
		})
		_, err := op.Poll()
		return err
	}
	for _, step := range []struct {
		do   func(out output) error
		want []string
	}{
		{func(o output) error { return o.EmitWatermark("a", 10) }, nil},
		{func(o output) error { return o.EmitWatermark("b", 7) }, []string{"watermark 7"}},
		{func(o output) error { return o.MarkIdle("b") }, []string{"watermark 10"}},
		{func(o output) error { return o.MarkIdle("a") }, []string{"idle true"}},
		{func(o output) error { return o.MarkActive("a") }, nil},
		{func(o output) error { return o.MarkActive("") }, []string{"idle false"}},
		{func(o output) error { return o.EmitWatermark("", 20) }, []string{"watermark 20"}},
		{func(o output) error { return o.EmitWatermark("a", 15) }, nil},
	} {
		must(t, poll(step.do))
		out.expect(t, step.want...)
	}
	err := poll(func(o output) error { return o.MarkIdle("c") })
	if err == nil || !strings.Contains(err.Error(), `split "c"`) {
		t.Errorf("a signal of an unknown split: %v", err)
	}
}
