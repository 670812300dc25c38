package files

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format"
)

// Sink writes part files into a directory. It describes what to write and holds nothing
// open. Its With methods return a changed copy.
type Sink[T any] struct {
	dir     string
	cfg     sinkConfig
	format  format.File[T]
	bucket  func(v T, timestamp int64) string
	missing []string // the methods that were given a nil function
}

var (
	_ connector.Sink[int]      = (*Sink[int])(nil)
	_ connector.GuaranteedSink = (*Sink[int])(nil)
)

// NewSink returns a sink that writes files of a format into dir, which is made if it is not
// there. All subtasks must see the same directory.
//
// A subtask writes one file at a time, or one per bucket. A file ends when it is large or
// old enough (RollSize, RollInterval), and at each checkpoint.
func NewSink[T any](dir string, f format.File[T], opts ...SinkOption) *Sink[T] {
	s := &Sink[T]{dir: dir, format: f, cfg: sinkConfig{
		guarantee: connector.AtLeastOnce,
		prefix:    "part",
		rollSize:  128 << 20,
		rollAfter: time.Minute,
		maxOpen:   100,
	}}
	for _, o := range opts {
		o(&s.cfg)
	}
	return s
}

// WithBucket puts each record into a folder of dir, its bucket, by its value and event time in
// milliseconds, eventtime.MinTimestamp if it has none. The empty bucket is dir itself.
//
// A bucket is a relative path with slashes. One that leads out of the directory, or has a
// part that is empty or begins with a dot, is an error that ends the job. bucket is called
// for each record, by all subtasks at once. For buckets by event time see BucketByTime.
func (s *Sink[T]) WithBucket(bucket func(v T, timestamp int64) string) *Sink[T] {
	c := *s
	if c.bucket = bucket; bucket == nil {
		c.missing = append(slices.Clip(c.missing), "WithBucket")
	}
	return &c
}

// Validate reports all wrong options at once, and what the format says about itself.
func (s *Sink[T]) Validate() error {
	p := &problems{of: "files sink"}
	if s.dir == "" {
		p.add("directory", "it is empty")
	}
	for _, m := range s.missing {
		p.add(m, "the function is nil")
	}
	s.cfg.validate(p)
	if s.bucket != nil && s.cfg.bucketLayout != "" {
		p.add("BucketByTime", "cannot be combined with WithBucket; want one of them")
	}
	if s.format == nil {
		p.add("format", "nil; want one such as JSONLines")
		return p.err()
	}
	if err := s.format.Validate(); err != nil {
		p.add("format", "%v", err)
	} else if _, err := s.format.NewWriter(io.Discard); err != nil {
		p.add("format", "%v", err)
	}
	if s.cfg.codec != NoCompression && !s.format.Compressible() {
		p.add("Compression", "files that end in %q are not compressed as a whole; leave the option out", s.format.Extension())
	}
	if err := checkExtension(s.format.Extension()); err != nil {
		p.add("format", "%v", err)
	}
	return p.err()
}

func checkExtension(ext string) error {
	if ext == "" || ext[0] != '.' || strings.ContainsAny(ext, "/\\\x00") || strings.HasSuffix(ext, unfinished) {
		return fmt.Errorf("%q is no extension; want one such as .txt", ext)
	}
	return nil
}

// Guarantee implements connector.GuaranteedSink.
func (s *Sink[T]) Guarantee() connector.SinkGuarantee { return s.cfg.guarantee }

// NewWriter implements connector.Sink.
func (s *Sink[T]) NewWriter(_ context.Context, rt connector.WriterRuntime) (connector.Writer[T], error) {
	return newWriter(s, rt)
}

// String describes the sink: its directory and guarantee.
func (s *Sink[T]) String() string {
	return fmt.Sprintf("files sink: %s, %s", s.dir, s.cfg.guarantee)
}

// SinkOption is a setting of a sink.
type SinkOption func(*sinkConfig)

type sinkConfig struct {
	guarantee     connector.SinkGuarantee
	prefix        string
	rollSize      int64
	rollAfter     time.Duration
	maxOpen       int
	codec         Codec
	bucketLayout  string
	ignoreMissing bool
}

// Delivery sets the guarantee: connector.AtLeastOnce, the default, or
// connector.ExactlyOnce, which needs checkpoints.
//
// At-least-once makes files visible when they end, and at each checkpoint. After a failure,
// records that are written again are then in two files.
//
// Exactly-once makes a file visible when the checkpoint has completed that covers all of
// it, and at the end of a bounded job.
func Delivery(g connector.SinkGuarantee) SinkOption {
	return func(c *sinkConfig) { c.guarantee = g }
}

// RollSize ends a file when it has that many bytes, before compression. What a format holds
// back, such as a row group of Parquet, does not count. Default 128 MiB.
func RollSize(bytes int64) SinkOption { return func(c *sinkConfig) { c.rollSize = bytes } }

// RollInterval ends a file when it is that old, 0 never. The sink looks when a record or a
// watermark comes. Default 1 minute.
func RollInterval(d time.Duration) SinkOption { return func(c *sinkConfig) { c.rollAfter = d } }

// MaxOpenFiles bounds how many buckets a subtask has a file open for. If there is one more,
// the file that was not written to for longest is ended. Default 100.
func MaxOpenFiles(n int) SinkOption { return func(c *sinkConfig) { c.maxOpen = n } }

// Prefix sets what names of files begin with. Sinks that write into one directory must have
// different ones, or they remove each other's unfinished files. Default "part".
func Prefix(prefix string) SinkOption { return func(c *sinkConfig) { c.prefix = prefix } }

// Compression compresses files as a whole. Default NoCompression.
func Compression(codec Codec) SinkOption { return func(c *sinkConfig) { c.codec = codec } }

// BucketByTime puts records into buckets by their event time in UTC, in a layout as for
// time.Time.Format: "2006-01-02/15" makes one folder per hour. Records without a
// timestamp go to the bucket "no-time".
func BucketByTime(layout string) SinkOption { return func(c *sinkConfig) { c.bucketLayout = layout } }

// IgnoreMissing has the job go on if files that a checkpoint names are gone when they are to
// be made visible. Use it if something takes files away from the directory as soon as it
// sees them: a restart may then look for files that were made visible before it. Without
// it, or for other reasons, such files are data that is lost, and end the job.
func IgnoreMissing() SinkOption { return func(c *sinkConfig) { c.ignoreMissing = true } }

func (c *sinkConfig) validate(p *problems) {
	if c.guarantee != connector.AtLeastOnce && c.guarantee != connector.ExactlyOnce {
		p.add("Delivery", "want connector.AtLeastOnce or connector.ExactlyOnce")
	}
	if c.prefix == "" || len(c.prefix) > 100 || c.prefix[0] == '.' || c.prefix[0] == '_' || strings.ContainsAny(c.prefix, "/\\\x00") {
		p.add("Prefix", "%q: want 1 to 100 bytes that begin a visible file's name", c.prefix)
	}
	if c.rollSize < 1 {
		p.add("RollSize", "%d: want at least 1 byte", c.rollSize)
	}
	p.notNegative("RollInterval", c.rollAfter)
	if c.maxOpen < 1 {
		p.add("MaxOpenFiles", "%d: want at least 1", c.maxOpen)
	}
	if c.codec > Zstd {
		p.add("Compression", "unknown codec %d; want NoCompression, Gzip or Zstd", uint8(c.codec))
	}
	if c.bucketLayout != "" {
		if err := checkBucket(time.Unix(0, 0).UTC().Format(c.bucketLayout)); err != nil {
			p.add("BucketByTime", "%q: %v", c.bucketLayout, err)
		}
	}
}
