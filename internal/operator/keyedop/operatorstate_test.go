package keyedop

import (
	"testing"

	"github.com/lowwater/lowwater/internal/operator"
	"github.com/lowwater/lowwater/state"
)

// A wrong declaration is the error of opening, also if the function uses the list at once.
func TestWrongListIsUsedInOpen(t *testing.T) {
	for name, open := range map[string]struct {
		wrong func(*OperatorStates) state.ListState[int]
		want  string
	}{
		"no name": {func(s *OperatorStates) state.ListState[int] { return s.List(state.OperatorList[int]("")) }, "no name"},
		"declared twice": {func(s *OperatorStates) state.ListState[int] {
			s.List(state.OperatorUnionList[int]("twice"))
			return s.List(state.OperatorList[int]("twice"))
		}, "declared twice"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			err := h.tryOpen(NewProcess(func(x *Context[string], _ *operator.Emitter[row]) (Function[row], error) {
				l := open.wrong(x.Operator)
				l.Add(1)
				l.AddAll(l.Get())
				l.Set(nil)
				l.Clear()
				return Function[row]{Element: func(row) error { return nil }}, nil
			}))
			wantError(t, err, open.want)
		})
	}
}
