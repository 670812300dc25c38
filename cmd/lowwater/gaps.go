package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lowwater/lowwater/internal/gaps"
)

type gapsCommand struct {
	kafkaFlags
	Topic string `arg:"" help:"The topic to read."`

	TimestampField string    `placeholder:"PATH" help:"Take event times from this field of JSON payloads, such as meta.created. Kafka's record timestamps otherwise."`
	Unit           gaps.Unit `default:"ms" enum:"s,ms,us,ns" help:"What numbers in that field count since the epoch: s, ms, us or ns."`
	Since          flexTime  `placeholder:"AGO|TIME" help:"Begin there: 24h ago, or an RFC 3339 time. At the start of the topic otherwise."`

	Bound     []time.Duration `placeholder:"DURATION" help:"Bounds to try, such as 5s,20s. A few that fit the data otherwise."`
	Idle      []time.Duration `placeholder:"DURATION" help:"Idle timeouts to try; 0s is none. A few that fit the data otherwise."`
	Window    time.Duration   `default:"1m" help:"The size of the tumbling windows that count what is late and how long results wait."`
	Interval  time.Duration   `default:"200ms" help:"The job's auto-watermark interval."`
	LateShare float64         `default:"0.001" help:"The share of late records that is acceptable, for the recommendation."`

	MaxRecords int64         `default:"5000000" help:"Stop reading after so many records; 0 is no limit."`
	MaxBytes   int64         `default:"0" help:"Stop reading after so many bytes of keys and values; 0 is no limit."`
	MaxTime    time.Duration `default:"1m" help:"Stop reading after so long; 0 is no limit."`

	HTML string `name:"html" placeholder:"FILE" help:"Also write a page with charts."`
	JSON bool   `name:"json" help:"Print JSON instead of tables."`
}

// Help is what `lowwater gaps --help` adds.
func (*gapsCommand) Help() string {
	return `Reads the timestamps of a topic, and says which out-of-orderness bound and which
idle timeout fit them: it replays the topic at its append times for each choice and
counts what would have been late, how long results would have waited, and how often
partitions would have gone idle and come back late. It only reads: no consumer
group, nothing is committed. An interrupt ends the reading; what was read is shown.

    lowwater gaps --brokers localhost:9092 orders
    lowwater gaps --brokers localhost:9092 orders --since 24h --timestamp-field created --unit s
    lowwater gaps --brokers localhost:9092 orders --bound 5s,30s --idle 0s,1m --window 10m`
}

// Validate is called by kong.
func (c *gapsCommand) Validate() error {
	switch {
	case c.Window < time.Millisecond:
		return fmt.Errorf("--window=%v: must be 1ms or more", c.Window)
	case c.Interval < time.Millisecond:
		return fmt.Errorf("--interval=%v: must be 1ms or more", c.Interval)
	case c.LateShare < 0 || c.LateShare > 1:
		return fmt.Errorf("--late-share=%v: must be from 0 to 1", c.LateShare)
	case c.MaxRecords < 0 || c.MaxBytes < 0 || c.MaxTime < 0:
		return errors.New("--max-records, --max-bytes, --max-time: must be 0 or more")
	}
	for _, d := range c.Bound {
		if d < 0 {
			return fmt.Errorf("--bound=%v: must be 0 or more", d)
		}
	}
	for _, d := range c.Idle {
		if d < 0 || d > 0 && d < time.Millisecond {
			return fmt.Errorf("--idle=%v: must be 0s or at least 1ms", d)
		}
	}
	return c.kafkaFlags.validate(true)
}

// Run reads, replays and reports. The first interrupt ends the reading, the second the
// replay.
func (c *gapsCommand) Run(stdout io.Writer, stderr stderrWriter) error {
	var field *gaps.Field
	if c.TimestampField != "" {
		var err error
		if field, err = gaps.NewField(c.TimestampField, c.Unit); err != nil {
			return fmt.Errorf("--timestamp-field: %w", err)
		}
	}
	opts, err := c.kafkaFlags.options()
	if err != nil {
		return err
	}
	bar := newProgressBar(stderr)
	defer bar.clear()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	data, err := gaps.Read(ctx, opts, gaps.ReadOptions{
		Topic: c.Topic, Field: field, Since: c.Since.at, Records: c.MaxRecords, Bytes: c.MaxBytes, Time: c.MaxTime,
		Progress: func(read, total int64) {
			bar.show(fmt.Sprintf("reading %s: %d records", c.Topic, read), float64(read)/float64(max(total, 1)))
		},
	})
	stop()
	if err != nil {
		return fmt.Errorf("brokers %s: %w", strings.Join(c.Brokers, ","), err)
	}
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report, err := c.replay(ctx, data, bar)
	if err != nil {
		return err
	}
	bar.clear()
	if c.HTML != "" {
		if err := writeFile(c.HTML, report.HTML); err != nil {
			return err
		}
	}
	if c.JSON {
		return report.JSON(stdout)
	}
	var out strings.Builder
	if err := report.Text(&out); err != nil {
		return err
	}
	return writePlain(stdout, out.String())
}

// replay tries the choices that were asked for, or a grid.
func (c *gapsCommand) replay(ctx context.Context, data *gaps.Data, bar *progressBar) (*gaps.Report, error) {
	options := gaps.ReplayOptions{
		Window: c.Window, Interval: c.Interval,
		Progress: func(done float64) { bar.show("replaying", done) },
	}
	bounds, idles := c.Bound, c.Idle
	if len(bounds) == 0 {
		bounds = gaps.Bounds(data)
	}
	if len(idles) == 0 {
		idles = gaps.Idles(data)
	}
	var outcomes []gaps.Outcome
	if data.Records > 0 {
		var err error
		if outcomes, err = gaps.Replay(ctx, data, gaps.Choices(bounds, idles), options); err != nil {
			return nil, fmt.Errorf("replaying: %w", err)
		}
	}
	return gaps.NewReport(data, options, outcomes, c.LateShare), nil
}

// writeFile writes a file by a function.
func writeFile(name string, write func(io.Writer) error) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}

// flexTime is a flag: a time, or a duration before now.
type flexTime struct{ at time.Time }

// UnmarshalText is called by kong.
func (f *flexTime) UnmarshalText(text []byte) error {
	if ago, err := time.ParseDuration(string(text)); err == nil {
		f.at = time.Now().Add(-ago)
		return nil
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("%q is neither a duration such as 24h nor a time such as 2026-01-31T08:00:00Z", text)
	}
	f.at = at
	return nil
}

// stderrWriter is standard error, for kong to tell it from standard output.
type stderrWriter struct{ io.Writer }

// progressBar is one line on a terminal that is overwritten and then cleared. Elsewhere
// it shows nothing.
type progressBar struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool
	shown bool
	last  time.Time
}

func newProgressBar(w stderrWriter) *progressBar {
	return &progressBar{w: w.Writer, live: newScreen(w.Writer).live}
}

// show says what is done, and the share of it that is.
func (p *progressBar) show(what string, share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.live || time.Since(p.last) < 100*time.Millisecond {
		return
	}
	p.last, p.shown = time.Now(), true
	const width = 30
	full := int(width * min(max(share, 0), 1))
	fmt.Fprintf(p.w, "\r\x1b[K[%s%s] %3.0f%% %s", strings.Repeat("#", full), strings.Repeat(".", width-full), 100*min(share, 1), what)
}

func (p *progressBar) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}
