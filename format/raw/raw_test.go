package raw_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/format/raw"
)

func TestBytes(t *testing.T) {
	var f raw.Bytes
	data := []byte("abc")
	var got []byte
	if err := f.Decode(data, &got); err != nil {
		t.Fatal(err)
	}
	data[0] = 'x'
	if diff := cmp.Diff([]byte("abc"), got); diff != "" {
		t.Errorf("Decode kept the caller's bytes (-want +got):\n%s", diff)
	}
	if err := f.Decode([]byte{}, &got); err != nil || got == nil || len(got) != 0 {
		t.Errorf("Decode of an empty record = %#v, %v, want an empty slice", got, err)
	}
	if err := f.DecodeNull(&got); err != nil || got != nil {
		t.Errorf("DecodeNull = %#v, %v, want nil", got, err)
	}
	out, err := f.Encode([]byte("<"), []byte{0, 0xff})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]byte{'<', 0, 0xff}, out); diff != "" {
		t.Errorf("Encode must append (-want +got):\n%s", diff)
	}
	if out, err := f.Encode([]byte{}, nil); err != nil || out != nil {
		t.Errorf("Encode of no value = %#v, %v, want nil", out, err)
	}
	if out, err := f.Encode([]byte{}, []byte{}); err != nil || out == nil {
		t.Errorf("Encode of an empty value = %#v, %v, want an empty slice", out, err)
	}
}

func TestString(t *testing.T) {
	var f raw.String
	data := []byte("a\xffc")
	var got string
	if err := f.Decode(data, &got); err != nil {
		t.Fatal(err)
	}
	data[0] = 'x'
	if got != "a\xffc" {
		t.Errorf("Decode = %q, want %q", got, "a\xffc")
	}
	out, err := f.Encode([]byte("<"), "é")
	if err != nil || string(out) != "<é" {
		t.Errorf("Encode = %q, %v, want %q", out, err, "<é")
	}
}
