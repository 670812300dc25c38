package gaps

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unit is what a number in a payload counts since the epoch.
type Unit string

// The units that producers write.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
	Microseconds Unit = "us"
	Nanoseconds  Unit = "ns"
)

// nanos returns the length of the unit.
func (u Unit) nanos() (int64, error) {
	switch u {
	case Seconds:
		return 1e9, nil
	case Milliseconds:
		return 1e6, nil
	case Microseconds:
		return 1e3, nil
	case Nanoseconds:
		return 1, nil
	default:
		return 0, fmt.Errorf("unit %q: must be s, ms, us or ns", string(u))
	}
}

// Field finds the event time in a JSON payload. It is not safe for concurrent use.
type Field struct {
	path  []string
	nanos int64

	reader  bytes.Reader
	decoder *jsontext.Decoder
}

// NewField returns the field at a path of member names separated by dots, such as
// "meta.created". Numbers count units since the epoch; texts are RFC 3339, SQL's form of
// it with a space and without a zone (taken as UTC), or digits.
func NewField(path string, unit Unit) (*Field, error) {
	nanos, err := unit.nanos()
	if err != nil {
		return nil, err
	}
	names := strings.Split(path, ".")
	for _, name := range names {
		if name == "" {
			return nil, fmt.Errorf("field %q: must be names separated by dots", path)
		}
	}
	f := &Field{path: names, nanos: nanos}
	f.decoder = jsontext.NewDecoder(&f.reader)
	return f, nil
}

func (f *Field) String() string { return strings.Join(f.path, ".") }

var errNoField = errors.New("the payload has no such field")

// Millis returns the event time of a payload in milliseconds since the epoch, rounded
// down.
func (f *Field) Millis(payload []byte) (int64, error) {
	f.reader.Reset(payload)
	f.decoder.Reset(&f.reader)
	for depth, name := range f.path {
		if err := f.enter(name); err != nil {
			return 0, fmt.Errorf("%s: %w", strings.Join(f.path[:depth+1], "."), err)
		}
	}
	token, err := f.decoder.ReadToken()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f, err)
	}
	switch token.Kind() {
	case '0':
		return f.number(token.String())
	case '"':
		return f.text(token.String())
	default:
		return 0, fmt.Errorf("%s: is %v, not a time", f, token.Kind())
	}
}

// enter reads up to the value of the member of that name.
func (f *Field) enter(name string) error {
	token, err := f.decoder.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("the payload is empty")
	case err != nil:
		return err
	case token.Kind() != '{':
		return fmt.Errorf("is in %v, not in an object", token.Kind())
	}
	for {
		token, err := f.decoder.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '}' {
			return errNoField
		}
		if token.String() == name {
			return nil
		}
		if err := f.decoder.SkipValue(); err != nil {
			return err
		}
	}
}

func (f *Field) number(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return f.scale(n)
	}
	x, err := strconv.ParseFloat(text, 64)
	// The fraction of a float is not exact: 0.123 s may be 122.9999 ms.
	millis := math.Floor(x*(float64(f.nanos)/1e6) + 0.001)
	if err != nil || math.Abs(millis) >= math.MaxInt64 {
		return 0, fmt.Errorf("%s: %s is out of range", f, text)
	}
	return int64(millis), nil
}

func (f *Field) scale(n int64) (int64, error) {
	if f.nanos < 1e6 {
		perMilli := 1e6 / f.nanos
		millis := n / perMilli
		if n%perMilli < 0 {
			millis--
		}
		return millis, nil
	}
	factor := f.nanos / 1e6
	if n > math.MaxInt64/factor || n < math.MinInt64/factor {
		return 0, fmt.Errorf("%s: %d is out of range", f, n)
	}
	return n * factor, nil
}

func (f *Field) text(s string) (int64, error) {
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMilli(), nil
		}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return f.scale(n)
	}
	return 0, fmt.Errorf("%s: %.40q is not a time", f, s)
}
