package main

import (
	"testing"

	"github.com/google/pprof/profile"
)

func TestClassify(t *testing.T) {
	const (
		reader = "github.com/lowwater/lowwater/kafka.(*reader[go.shape.struct { Amount float64 \"json:\\\"amount\\\"\" }])"
		decode = "github.com/lowwater/lowwater/format/json.decodeInto"
		client = "github.com/twmb/franz-go/pkg/kgo.(*Record).Recycle"
		task   = "github.com/lowwater/lowwater/internal/task.(*Task).Run"
	)
	tests := []struct {
		name  string
		stack []string // the innermost function first
		want  string
	}{
		{"json", []string{"runtime.memmove", decode, reader + ".append", reader + ".Poll", task}, "decode"},
		{"around json", []string{"runtime.mallocgc", reader + ".append", reader + ".Poll", task}, "decode"},
		{"without the type", []string{"github.com/lowwater/lowwater/kafka.(*reader[...]).append", task}, "decode"},
		{"the client below the decoding", []string{client, reader + ".append", task}, "decode"},
		{"the client below the reader", []string{client, reader + ".Poll", task}, "fetch"},
		{"decompression", []string{"github.com/klauspost/compress/zstd.(*Decoder).DecodeAll"}, "fetch"},
		{"passing on", []string{reader + ".pass", reader + ".Poll", task}, "engine"},
		{"background", []string{"runtime.scanobject", "runtime.gcBgMarkWorker"}, "garbage collection"},
	}
	for _, tt := range tests {
		s := &profile.Sample{}
		for _, name := range tt.stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		if got := classify(s); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
