package files

import (
	"context"
	"path/filepath"
	"time"

	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/format"
)

// DecodeErrorPolicy says what happens to a record that cannot be decoded.
type DecodeErrorPolicy = connector.DecodeErrorPolicy

const (
	// FailJob ends the job with an error that names file and byte. It is the default.
	FailJob = connector.FailJob
	// SkipRecord counts the record as dropped, under "malformed" with a sample, and goes
	// on. Each subtask logs its first one.
	SkipRecord = connector.SkipRecord
	// ToDeadLetters sends the record to the source's dead-letter output, the side output
	// lowwater.DeadLetters, and goes on. SplitID is the file, Offset the record's first
	// byte.
	ToDeadLetters = connector.ToDeadLetters
)

// Source reads files. It describes what to read and holds nothing open.
type Source[T any] struct {
	cfg    sourceConfig
	format format.File[T]
}

var (
	_ connector.Source[int]          = (*Source[int])(nil)
	_ connector.DeadLetterSource     = (*Source[int])(nil)
	_ connector.SplitCodec           = (*Source[int])(nil)
	_ connector.Reader[int]          = (*reader[int])(nil)
	_ connector.SplitSnapshotter     = (*reader[int])(nil)
	_ connector.SplitPauser          = (*reader[int])(nil)
	_ connector.SplitPositions       = (*reader[int])(nil)
	_ connector.Enumerator           = (*enumerator)(nil)
	_ connector.Discoverer           = (*enumerator)(nil)
	_ connector.RestorableEnumerator = (*enumerator)(nil)
)

// NewSource returns a source of the records of all files that match a pattern: a directory,
// which stands for all files in it and below, or a pattern of path/filepath.Match.
//
// Hidden files are left out: those with a name, or below a matched directory a folder, that
// begins with a dot or an underscore, and those that end in ".inprogress" or ".tmp". A file
// that matches must be whole, and must not change any more. Files whose names end in ".gz"
// and ".zst" are decompressed.
//
// The source is bounded: it reads the files that are there when the job starts, in order of
// their names, and it is an error if there are none. With Watch it goes on with files that
// appear.
func NewSource[T any](pattern string, f format.File[T], opts ...SourceOption) *Source[T] {
	s := &Source[T]{cfg: sourceConfig{pattern: pattern}, format: f}
	for _, o := range opts {
		o(&s.cfg)
	}
	return s
}

// Validate reports all wrong options at once, and what the format says about itself.
func (s *Source[T]) Validate() error {
	p := &problems{of: "files source"}
	if s.format == nil {
		p.add("format", "nil; want one such as JSONLines")
	} else if err := s.format.Validate(); err != nil {
		p.add("format", "%v", err)
	}
	s.cfg.validate(p)
	return p.err()
}

// Boundedness is connector.Bounded without the option Watch.
func (s *Source[T]) Boundedness() connector.Boundedness { return connector.Boundedness(!s.cfg.watch) }

// EmitsDeadLetters implements connector.DeadLetterSource.
func (s *Source[T]) EmitsDeadLetters() bool { return s.cfg.onDecodeError == ToDeadLetters }

// NewEnumerator implements connector.Source.
func (s *Source[T]) NewEnumerator(context.Context, connector.SourceRuntime) (connector.Enumerator, error) {
	return &enumerator{cfg: s.cfg}, nil
}

// NewReader implements connector.Source.
func (s *Source[T]) NewReader(_ context.Context, rt connector.ReaderRuntime) (connector.Reader[T], error) {
	return newReader(s, rt), nil
}

// String describes the source: its pattern.
func (s *Source[T]) String() string { return "files source: " + s.cfg.pattern }

// SourceOption is a setting of a source.
type SourceOption func(*sourceConfig)

type sourceConfig struct {
	pattern       string
	watch         bool
	interval      time.Duration
	minAge        time.Duration
	onDecodeError DecodeErrorPolicy
}

// Watch has the source look for new files every interval, and makes it unbounded. New files
// are read in order of modification time and name. A file that is known is not read again,
// also not if it has been replaced, unless it was seen missing in between.
func Watch(interval time.Duration) SourceOption {
	return func(c *sourceConfig) { c.watch, c.interval = true, interval }
}

// MinAge leaves out files that were modified less than d ago, for writers that do not hide
// what is not finished. Default 0.
func MinAge(d time.Duration) SourceOption { return func(c *sourceConfig) { c.minAge = d } }

// OnDecodeError sets what happens to a record that cannot be decoded. Default FailJob. A
// file that is broken as a whole ends the job in any case.
func OnDecodeError(policy DecodeErrorPolicy) SourceOption {
	return func(c *sourceConfig) { c.onDecodeError = policy }
}

func (c *sourceConfig) validate(p *problems) {
	if c.pattern == "" {
		p.add("pattern", "it is empty; want a directory or a pattern such as logs/*.jsonl")
	} else if _, err := filepath.Match(c.pattern, ""); err != nil {
		p.add("pattern", "%q: %v", c.pattern, err)
	}
	if c.watch && c.interval <= 0 {
		p.add("Watch", "%v is not positive", c.interval)
	}
	p.notNegative("MinAge", c.minAge)
	if c.onDecodeError > ToDeadLetters {
		p.add("OnDecodeError", "unknown policy %d; want FailJob, SkipRecord or ToDeadLetters", uint8(c.onDecodeError))
	}
}
