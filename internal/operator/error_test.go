package operator

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lowwater/lowwater/internal/exchange"
)

func TestErrorsGetOneName(t *testing.T) {
	inner, outer := &Runtime{Name: "inner", UID: "in", Subtask: 3}, &Runtime{Name: "outer"}
	cause := errors.New("disk full")
	named := inner.WithName(cause)
	if got, want := named.Error(), `operator "inner" (uid in), subtask 3: disk full`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if again := outer.WithName(fmt.Errorf("chain: %w", named)); strings.Contains(again.Error(), "outer") || !errors.Is(again, cause) {
		t.Errorf("got %v, want the name of the inner operator alone", again)
	}
	if err := outer.WithName(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := outer.WithName(exchange.ErrCancelled); err != exchange.ErrCancelled {
		t.Errorf("a cancellation became %v", err)
	}
}

func TestPanicsKeepValueAndStack(t *testing.T) {
	cause := errors.New("disk full")
	err := (&Runtime{Name: "op"}).WithName(&Panic{Value: cause, Stack: []byte("the stack")})
	if !errors.Is(err, cause) {
		t.Errorf("%v does not wrap the value", err)
	}
	for format, want := range map[string]string{
		"%v":  `operator "op", subtask 0: panic: disk full`,
		"%s":  `operator "op", subtask 0: panic: disk full`,
		"%+v": "operator \"op\", subtask 0: panic: disk full\nthe stack",
	} {
		if got := fmt.Sprintf(format, err); got != want {
			t.Errorf("%s gives %q, want %q", format, got, want)
		}
	}
	plain := (&Runtime{Name: "op"}).WithName(&Panic{Value: "just text"})
	if got, want := plain.Error(), `operator "op", subtask 0: panic: just text`; got != want || errors.Unwrap(errors.Unwrap(plain)) != nil {
		t.Errorf("got %q, want %q, wrapping nothing", got, want)
	}
}
