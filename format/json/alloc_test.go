//go:build !race

package json

import "testing"

func TestAllocations(t *testing.T) {
	type numbers struct {
		A int64
		B float64
		C bool
		D [3]uint16
		S string `lowwater:"intern"`
	}
	type strings2 struct{ A, B string }
	tests := []struct {
		name string
		run  func() error
		want float64
	}{
		{"numbers", decodeRun[numbers](`{"A":1719504000123,"B":-12.75,"C":true,"x":{"y":["z",null]},"D":[1,2,3],"S":"EUR"}`), 0},
		{"two strings", decodeRun[strings2](`{"A":"a string","B":"another one, not so short"}`), 2},
		{"escapes", decodeRun[strings2](`{"A":"a\nb","B":"\u00e9"}`), 2},
		{"other case", decodeRun[numbers](`{"a":1,"b":2,"Größe":3}`), 0},
		{"encode", encodeRun(allSix{"o", "c", 1.5, "EUR", 1719504000123, "text with \"quotes\" and é"}), 0},
		{"encode nested", encodeRun(order{Items: []item{{}, {}}, Note: new("n"), Labels: map[string]string{"b": "1", "a": "2"}}.Items), 0},
	}
	for _, tt := range tests {
		if err := tt.run(); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := testing.AllocsPerRun(100, func() { tt.run() }); got != tt.want {
			t.Errorf("%s: %v allocations per record, want %v", tt.name, got, tt.want)
		}
	}
}

func decodeRun[T any](record string) func() error {
	dec, data, into := Value[T](), []byte(record), new(T)
	return func() error {
		*into = *new(T)
		return dec.Decode(data, into)
	}
}

func encodeRun[T any](v T) func() error {
	enc, buf := Encode[T](), make([]byte, 0, 1024)
	return func() error {
		_, err := enc.Encode(buf, v)
		return err
	}
}
