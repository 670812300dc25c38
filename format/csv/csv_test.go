package csv_test

import (
	"bytes"
	stdcsv "encoding/csv"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lowwater/lowwater/format"
	"github.com/lowwater/lowwater/format/csv"
)

type place struct {
	City string `csv:"city"`
}

type row struct {
	Text  string `csv:"text"`
	Int   int8
	Uint  uint64    `csv:"uint"`
	Real  float64   `csv:"real"`
	Real4 float32   `csv:"real4"`
	Yes   bool      `csv:"yes"`
	At    time.Time `csv:"at"`
	Maybe *string   `csv:"maybe"`
	Count *int      `csv:"count"`
	place
	Left string `csv:"-"`
}

func input(s string) format.FileInput {
	return io.NewSectionReader(strings.NewReader(s), 0, int64(len(s)))
}

func write[T any](t require, f *csv.Format[T], rows []T) string {
	t.Helper()
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := f.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

type require interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func read[T any](t require, f *csv.Format[T], text string, position int64) (rows []T) {
	t.Helper()
	r, err := f.NewReader(input(text), position)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var v T
		err := r.Next(&v)
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatalf("byte %d: %v", r.Start(), err)
		}
		rows = append(rows, v)
	}
}

func rows(t *rapid.T) []row {
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab ,;\"\n\t\\.é\x00")))
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) row {
		r := row{
			Text: text.Draw(t, "text"), Int: rapid.Int8().Draw(t, "int"), Uint: rapid.Uint64().Draw(t, "uint"),
			Real: rapid.Float64().Draw(t, "real"), Real4: rapid.Float32().Draw(t, "real4"), Yes: rapid.Bool().Draw(t, "yes"),
			At: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 5).UTC(), place: place{text.Draw(t, "city")},
		}
		if s := text.Draw(t, "maybe"); s != "" {
			r.Maybe = &s
		}
		if n := rapid.Int().Draw(t, "count"); n%2 == 0 {
			r.Count = &n
		}
		return r
	})).Draw(t, "rows")
}

// TestRoundTrip: what is written is read, by encoding/csv too, and from every position.
func TestRoundTrip(t *testing.T) {
	for _, f := range []*csv.Format[row]{csv.File[row](), csv.File[row](csv.Comma(';')), csv.File[row](csv.NoHeader())} {
		rapid.Check(t, func(t *rapid.T) {
			want := rows(t)
			text := write(t, f, want)
			same := cmp.Options{cmp.AllowUnexported(row{}), cmpopts.EquateEmpty()}
			if diff := cmp.Diff(want, read(t, f, text, 0), same); diff != "" {
				t.Fatalf("%q (-want +got):\n%s", text, diff)
			}
			r, err := f.NewReader(input(text), 0)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				var v row
				if err := r.Next(&v); err != nil {
					t.Fatal(err)
				}
				rest := want[i+1:]
				if diff := cmp.Diff(rest, read(t, f, text, r.Position()), same); diff != "" {
					t.Fatalf("from record %d on (-want +got):\n%s", i+1, diff)
				}
			}
		})
	}
}

func TestQuotesAsEncodingCSV(t *testing.T) {
	type one struct{ A, B string }
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab ,\"\n\r\t\\.é")))
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		var want bytes.Buffer
		std := stdcsv.NewWriter(&want)
		if err := std.WriteAll([][]string{{"A", "B"}, {a, b}}); err != nil {
			t.Fatal(err)
		}
		if got := write(t, csv.File[one](), []one{{a, b}}); got != want.String() {
			t.Fatalf("wrote %q, encoding/csv %q", got, want.String())
		}
	})
}

func TestNull(t *testing.T) {
	type nullable struct {
		A *string
		B *int
		C string
	}
	empty, null := "", "NULL"
	one := 1
	f := csv.File[nullable](csv.Null("NULL"))
	want := []nullable{{nil, nil, ""}, {&empty, &one, "x"}}
	text := write(t, f, want)
	if text != "A,B,C\nNULL,NULL,\n,1,x\n" {
		t.Errorf("wrote %q", text)
	}
	if diff := cmp.Diff(want, read(t, f, text, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w, err := f.NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(nullable{A: &null}); err == nil || !strings.Contains(err.Error(), "read as null") {
		t.Errorf("a value like null: %v", err)
	}
	r, err := f.NewReader(input("A,B,C\nx,1,NULL\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Next(new(nullable)); err == nil || !strings.Contains(err.Error(), "must be a pointer") {
		t.Errorf("null without a pointer: %v", err)
	}
	type single struct{ S *int }
	nils := []single{{}, {&one}, {}}
	if diff := cmp.Diff(nils, read(t, csv.File[single](), write(t, csv.File[single](), nils), 0)); diff != "" {
		t.Errorf("lines of one null (-want +got):\n%s", diff)
	}
}

// TestWrongRecords: reading goes on behind a wrong record, which is shown as it is.
func TestWrongRecords(t *testing.T) {
	type rec struct {
		N    int    `csv:"n"`
		Note string `csv:"note,optional"`
	}
	const text = "\ufeffother,n\nx,1\nx,many\n\"a\nb\",2\nx\nx,y\"z\nq,3"
	r, err := csv.File[rec]().NewReader(input(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		var v rec
		err := r.Next(&v)
		var wrong *format.RecordError
		switch {
		case errors.Is(err, io.EOF):
			want := []string{"1", `"x,many\n": csv: column "n": "many": invalid syntax`, "2",
				`"x\n": csv: wrong number of fields`, `"x,y\"z\n": csv: bare " in non-quoted-field`, "3"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		case errors.As(err, &wrong):
			if string(wrong.Data) != text[r.Start():r.Position()] {
				t.Errorf("data %q from %d to %d", wrong.Data, r.Start(), r.Position())
			}
			got = append(got, strings.TrimSpace(strings.Join([]string{quote(wrong.Data), err.Error()}, ": ")))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, quoteInt(v.N))
		}
	}
}

func quote(b []byte) string {
	return strings.ReplaceAll(`"`+strings.ReplaceAll(string(b), `"`, `\"`)+`"`, "\n", `\n`)
}

func quoteInt(n int) string { return string(rune('0' + n)) }

func TestRefuses(t *testing.T) {
	type bad struct{ C chan int }
	type twice struct {
		A string `csv:"x"`
		B string `csv:"x"`
	}
	type option struct {
		A string `csv:"a,omitempty"`
	}
	type none struct{ a int }
	_ = none{}.a
	tests := map[string]format.Validator{
		"must be a struct":          csv.File[int](),
		"chan int has no text":      csv.File[bad](),
		`are both column "x"`:       csv.File[twice](),
		`unknown option "omitempty`: csv.File[option](),
		"no field":                  csv.File[none](),
		"Comma":                     csv.File[place](csv.Comma('"')),
		"Null":                      csv.File[place](csv.Null("a,b")),
	}
	for want, f := range tests {
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for text, want := range map[string]string{"town\nx\n": `no column "city"`, "city,city\nx,y\n": "twice", "a\"b\n": "header"} {
		if _, err := csv.File[place]().NewReader(input(text), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if got := read(t, csv.File[place](), "", 0); got != nil {
		t.Errorf("an empty file has %v", got)
	}
}

func TestAllocations(t *testing.T) {
	type sample struct {
		S string
		I int
		F float64
		T time.Time
	}
	f := csv.File[sample]()
	w, err := f.NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	v := sample{"some, text", 12345, math.Pi, time.Unix(1e9, 0).UTC()}
	if n := testing.AllocsPerRun(1000, func() {
		if err := w.Write(v); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("writing a record allocates %v times", n)
	}
}
