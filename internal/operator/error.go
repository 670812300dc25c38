package operator

import (
	"errors"
	"fmt"
	"io"

	"github.com/lowwater/lowwater/internal/exchange"
)

// Error is an error of one operator: what Execute returns when an operator or a
// user function fails or panics.
type Error struct {
	Operator string
	UID      string
	Subtask  int
	// Err is the cause; for a panic it is a *Panic.
	Err error
}

func (e *Error) Error() string {
	uid := ""
	if e.UID != "" {
		uid = fmt.Sprintf(" (uid %s)", e.UID)
	}
	return fmt.Sprintf("operator %q%s, subtask %d: %v", e.Operator, uid, e.Subtask, e.Err)
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
	// Stack is the panicking goroutine's, as debug.Stack prints it.
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

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
	return &Error{Operator: rt.Name, UID: rt.UID, Subtask: rt.Subtask, Err: err}
}
