package parquet_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/format/parquet"
)

type row struct {
	ID    int64    `parquet:"id"`
	Name  string   `parquet:"name,zstd"`
	Tags  []string `parquet:"tags,list"`
	Maybe *float64 `parquet:"maybe,optional"`
	Raw   []byte   `parquet:"raw"`
}

func rows(n int) (all []row) {
	for i := range n {
		r := row{ID: int64(i), Name: fmt.Sprint("name ", i), Raw: fmt.Appendf(nil, "raw %d", i)}
		for tag := range i % 3 {
			r.Tags = append(r.Tags, fmt.Sprint(i, "/", tag))
		}
		if i%2 == 0 {
			f := float64(i) / 4
			r.Maybe = &f
		}
		all = append(all, r)
	}
	return all
}

func write(t *testing.T, f *parquet.Format[row], all []row) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := f.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t *testing.T, f *parquet.Format[row], data []byte, position int64) (all []row) {
	t.Helper()
	r, err := f.NewReader(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), position)
	if err != nil {
		t.Fatal(err)
	}
	for at := position; ; at++ {
		var v row
		if err := r.Next(&v); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Start() != at || r.Position() != at+1 {
			t.Fatalf("row %d is from %d to %d", at, r.Start(), r.Position())
		}
		all = append(all, v)
	}
}

// TestRoundTrip reads on from many rows, over row groups. Values stay what they were while
// others are read.
func TestRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 1000} {
		f := parquet.File[row](parquet.RowGroup(300))
		if err := f.Validate(); err != nil {
			t.Fatal(err)
		}
		want := rows(n)
		data := write(t, f, want)
		for _, from := range []int{0, 1, 128, 299, 300, 301, n - 1, n} {
			if from < 0 || from > n {
				continue
			}
			if diff := cmp.Diff(want[from:], read(t, f, data, int64(from)), equateEmpty); diff != "" {
				t.Fatalf("%d rows from %d on (-want +got):\n%.1000s", n, from, diff)
			}
		}
	}
}

var equateEmpty = cmp.Transformer("", func(r []row) string { return fmt.Sprintf("%q", texts(r)) })

func texts(rows []row) (all []string) {
	for _, r := range rows {
		maybe := "nil"
		if r.Maybe != nil {
			maybe = fmt.Sprint(*r.Maybe)
		}
		all = append(all, fmt.Sprintf("%d %s %q %s %s", r.ID, r.Name, r.Tags, maybe, r.Raw))
	}
	return all
}

func TestRefuses(t *testing.T) {
	type none struct{}
	type channel struct{ C chan int }
	for name, err := range map[string]error{
		"no field": parquet.File[none]().Validate(),
		"schema":   parquet.File[channel]().Validate(),
		"RowGroup": parquet.File[row](parquet.RowGroup(0)).Validate(),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
	data := write(t, parquet.File[row](), rows(10))
	for want, data := range map[string][]byte{"parquet": []byte("no such file"), "opening it": data[:len(data)/2]} {
		_, err := parquet.File[row]().NewReader(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), 0)
		if err == nil || !strings.Contains(err.Error(), "parquet") {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := parquet.File[row]().NewReader(io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data))), 11); err == nil {
		t.Error("row 11 of 10 can be read")
	}
}
