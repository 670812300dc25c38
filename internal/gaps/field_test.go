package gaps

import (
	"strings"
	"testing"
)

func TestField(t *testing.T) {
	tests := []struct {
		path, payload string
		unit          Unit
		want          int64
	}{
		{"ts", `{"ts":1700000000123}`, Milliseconds, 1700000000123},
		{"ts", `{"a":{"ts":7},"b":[1,{"ts":8}],"ts":1700000000,"ts2":9}`, Seconds, 1700000000000},
		{"a.b.ts", ` {"ts":1,"a":{"c":null,"b":{"ts":5}}}`, Milliseconds, 5},
		{"ts", `{"ts":1700000000.25}`, Seconds, 1700000000250},
		{"ts", `{"ts":1.7e9}`, Seconds, 1700000000000},
		{"ts", `{"ts":1999}`, Microseconds, 1},
		{"ts", `{"ts":-1}`, Microseconds, -1},
		{"ts", `{"ts":1700000000123456789}`, Nanoseconds, 1700000000123},
		{"ts", `{"ts":"2024-02-29T12:00:00.5+02:00"}`, Milliseconds, 1709200800500},
		{"ts", `{"ts":"2024-02-29 10:00:00.5"}`, Milliseconds, 1709200800500},
		{"ts", `{"ts":"1700000000"}`, Seconds, 1700000000000},
	}
	for _, test := range tests {
		f, err := NewField(test.path, test.unit)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a field is used again
			if got, err := f.Millis([]byte(test.payload)); err != nil || got != test.want {
				t.Errorf("%s of %s in %s: %d, %v, want %d", test.path, test.payload, test.unit, got, err, test.want)
			}
		}
	}
}

func TestFieldErrors(t *testing.T) {
	tests := map[string]string{
		``:                                 "the payload is empty",
		`{}`:                               "a: the payload has no such field",
		`{"a":{"b":1}}`:                    "a.ts: the payload has no such field",
		`{"a":[]}`:                         "a.ts: is in [, not in an object",
		`{"a":{"ts":null}}`:                "a.ts: is null, not a time",
		`{"a":{"ts":"tomorrow"}}`:          `a.ts: "tomorrow" is not a time`,
		`{"a":{"ts":1e300}}`:               "out of range",
		`{"a":{"ts":9223372036854775807}}`: "out of range",
		`{"a"`:                             "unexpected EOF",
		"\x00\x01avro":                     "invalid character",
	}
	f, err := NewField("a.ts", Seconds)
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range tests {
		if _, err := f.Millis([]byte(payload)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", payload, err, want)
		}
	}
	for _, path := range []string{"", "a.", ".a", "a..b"} {
		if _, err := NewField(path, Seconds); err == nil {
			t.Errorf("field %q is accepted", path)
		}
	}
	if _, err := NewField("a", "fortnights"); err == nil {
		t.Error("a unit of fortnights is accepted")
	}
}
