package operator

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/lowwater/lowwater/internal/exchange"
)

// Error is an error of one operator: what Execute returns when an operator or a
// user function fails or panics.
type Error struct {
	Operator string
	UID      string
	// Where is the file and line of the API call that made the operator.
	Where string
	// Subtask is -1 for errors before there are subtasks, such as an unknown topic.
	Subtask int
	// Err is the cause; for a panic it is a *Panic.
	Err error
}

func (e *Error) Error() string {
	place := ""
	switch {
	case e.UID != "" && e.Where != "":
		place = fmt.Sprintf(" (%s, uid %s)", e.Where, e.UID)
	case e.UID != "":
		place = fmt.Sprintf(" (uid %s)", e.UID)
	case e.Where != "":
		place = fmt.Sprintf(" (%s)", e.Where)
	}
	if e.Subtask >= 0 {
		place += fmt.Sprintf(", subtask %d", e.Subtask)
	}
	return fmt.Sprintf("operator %q%s: %v", e.Operator, place, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Format prints the stack of a panic with %+v.
func (e *Error) Format(s fmt.State, verb rune) {
	_, _ = io.WriteString(s, e.Error())
	var p *Panic
	if verb == 'v' && s.Flag('+') && errors.As(e.Err, &p) {
		_, _ = fmt.Fprintf(s, "\n%s", p.Stack)
	}
}

// Panic is a panic in user code, turned into an error.
type Panic struct {
	Value any
	// Where is the file and line that panicked, empty if unknown.
	Where string
	// Stack is the panicking goroutine's, as debug.Stack prints it.
	Stack []byte
}

// NewPanic describes a panic. Call it in the function that recovered value.
func NewPanic(value any) *Panic {
	return &Panic{Value: value, Where: panicSite(), Stack: debug.Stack()}
}

// panicSite returns the file and line of the innermost function below the runtime's own
// that was running when the panic began.
func panicSite() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for panicking := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(f.Function, "runtime."):
			return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(filepath.Dir(f.File)), filepath.Base(f.File)), f.Line)
		}
		if !more {
			return ""
		}
	}
}

func (p *Panic) Error() string {
	if p.Where == "" {
		return fmt.Sprintf("panic: %v", p.Value)
	}
	return fmt.Sprintf("panic: %v at %s", p.Value, p.Where)
}

// Unwrap returns the value if the code panicked with an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// WithName adds an operator's name to an error, once: the name of the operator
// in which it arose. Cancellation is nobody's error and stays as it is.
func (rt *Runtime) WithName(err error) error {
	if err == nil || errors.Is(err, exchange.ErrCancelled) {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Operator: rt.Name, UID: rt.UID, Where: rt.Where, Subtask: rt.Subtask, Err: err}
}
