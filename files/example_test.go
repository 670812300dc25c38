package files_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/files"
	"github.com/lowwater/lowwater/format/csv"
	"github.com/lowwater/lowwater/window"
)

// Purchases are counted by shop and hour, from JSON lines.
func Example() {
	type purchase struct {
		Shop string    `json:"shop"`
		At   time.Time `json:"at"`
	}
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	lines := `{"shop":"north","at":"2026-03-01T10:10:00Z"}
{"shop":"south","at":"2026-03-01T10:20:00Z"}
{"shop":"north","at":"2026-03-01T10:50:00Z"}
{"shop":"north","at":"2026-03-01T11:05:00Z"}
`
	if err := os.WriteFile(filepath.Join(dir, "purchases.jsonl"), []byte(lines), 0o666); err != nil {
		log.Fatal(err)
	}

	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	strategy := eventtime.ForMonotonousTimestamps[purchase]().
		WithTimestampAssigner(func(p purchase, _ int64) int64 { return p.At.UnixMilli() })
	lowwater.FromSource(env, files.NewSource(filepath.Join(dir, "*.jsonl"), files.JSONLines[purchase]()), strategy, "purchases").
		KeyBy(func(p purchase) string { return p.Shop }).
		Window(window.Tumbling(time.Hour)).
		Aggregate(lowwater.Count[purchase]()).
		Map(func(p window.Pane[string, int64]) string {
			return fmt.Sprint(p.Key, " ", time.UnixMilli(p.Window.Start).UTC().Format("15:04"), " ", p.Value)
		}).
		Print()
	if err := env.Execute(context.Background(), "purchases"); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// north 10:00 2
	// south 10:00 1
	// north 11:00 1
}

// Records become a CSV file per day, with a header.
func ExampleNewSink() {
	type reading struct {
		Sensor string   `csv:"sensor"`
		Day    string   `csv:"-"`
		Value  *float64 `csv:"value"`
	}
	dir, err := os.MkdirTemp("", "files")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	value := 21.5
	env := lowwater.NewEnvironment(lowwater.WithParallelism(1))
	sink := files.NewSink(dir, csv.File[reading](csv.Null("NULL"))).
		WithBucket(func(r reading, _ int64) string { return "day=" + r.Day })
	lowwater.FromSlice(env, []reading{
		{"roof, south", "2026-03-01", &value},
		{"cellar", "2026-03-01", nil},
		{"cellar", "2026-03-02", &value},
	}).SinkTo(sink)
	if err := env.Execute(context.Background(), "readings"); err != nil {
		log.Fatal(err)
	}

	parts, err := filepath.Glob(filepath.Join(dir, "*", "part-*.csv"))
	if err != nil {
		log.Fatal(err)
	}
	for _, part := range parts {
		data, err := os.ReadFile(part)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n%s", filepath.Base(filepath.Dir(part)), data)
	}
	// Output:
	// day=2026-03-01
	// sensor,value
	// "roof, south",21.5
	// cellar,NULL
	// day=2026-03-02
	// sensor,value
	// cellar,21.5
}
