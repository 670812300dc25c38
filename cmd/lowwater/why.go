package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/lowwater/lowwater/internal/gaps"
	"github.com/lowwater/lowwater/internal/why"
	"github.com/lowwater/lowwater/internal/why/collect/flink"
	"github.com/lowwater/lowwater/internal/why/collect/kafka"
)

const (
	exitFindings = 1
	exitBlind    = 2
	// remembered is how much history a watch keeps.
	remembered = 5 * time.Minute
)

type whyCommand struct {
	clusterFlags
	kafkaFlags

	TimestampField string    `placeholder:"PATH" help:"Where the event time is in JSON payloads, to judge the last records in Kafka. Their timestamps otherwise."`
	Unit           gaps.Unit `default:"ms" enum:"s,ms,us,ns" help:"What the job takes numbers in that field for: s, ms, us or ns."`
	Records        int64     `default:"200" help:"How many of the last records of each partition to read; 0 is none."`

	For     time.Duration `default:"12s" help:"How long to look: what moves is told by the difference. 0s looks once."`
	Watch   bool          `help:"Look again and again, and report changes, until interrupted."`
	JSON    bool          `name:"json" help:"Print JSON."`
	Details bool          `help:"Also print the numbers that prove the findings, and the watermarks of all operators and partitions."`
}

// Help is what `lowwater why --help` adds.
func (*whyCommand) Help() string {
	return `Says why event time in a job stands still, runs ahead or loses records: which input
is to blame, by which numbers, and what to change. The job runs on Apache Flink (1.17
to 2.3) or is one of lowwater's, with its REST interface on; without --url at
http://localhost:8081. With --brokers the topics are looked at, too: ends, last records.
Nothing is changed anywhere.

    lowwater why
    lowwater why --url http://jobmanager:8081 --job orders --brokers kafka:9092
    lowwater why --watch --for 30s

Exit codes: 0 nothing is wrong, 1 something is, 2 could not look, or not see enough.
A silence counts after 30 s, or 5 min where records come seldom: a shorter --for may not
tell. A job of lowwater's has looked since its start and answers at once, unless
--brokers are given. --watch waits for a job if none runs yet, and follows one that
is started again by its name.
Flink's metrics are up to 10 s old: looking for less than 11 s does not tell what moves.`
}

// Validate is called by kong.
func (c *whyCommand) Validate() error {
	if c.For < 0 {
		return fmt.Errorf("--for=%v: must be 0 or more", c.For)
	}
	if c.Watch && c.For == 0 {
		return errors.New("--watch needs a time between looks: --for")
	}
	if c.Records < 0 {
		return fmt.Errorf("--records=%d: must be 0 or more", c.Records)
	}
	return errors.Join(c.clusterFlags.validate(), c.kafkaFlags.validate(false))
}

// Run looks and reports. A second interrupt ends the process at once.
func (c *whyCommand) Run(stdout io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return blind(c.run(ctx, stdout))
}

// run looks and reports until ctx ends.
func (c *whyCommand) run(ctx context.Context, stdout io.Writer) error {
	find := c.observer
	if c.Watch {
		find = func(ctx context.Context) (*observer, error) { return c.await(ctx, stdout) }
	}
	o, err := find(ctx)
	if err != nil {
		if c.Watch && ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer o.close()
	if c.Watch {
		return c.watch(ctx, o, stdout)
	}
	if err := o.look(ctx); err != nil {
		return err
	}
	if c.For > 0 && o.told == nil {
		if !sleep(ctx, c.For) {
			return errors.New("interrupted")
		}
		if err := o.look(ctx); err != nil {
			return err
		}
	}
	d := o.diagnose()
	if err := c.report(stdout, o, d); err != nil {
		return err
	}
	switch f := d.Answer(); {
	case f.Code == why.NotEnoughEvidence && f.Severity == why.Fine:
		return &exitError{code: exitBlind}
	case f.Severity != why.Fine:
		return &exitError{code: exitFindings}
	}
	return nil
}

// observer looks at a job with all means there are.
type observer struct {
	client *flink.Client
	job    *flink.Collector
	kafka  *kafka.Collector // nil without brokers
	// told is what the server of a job of ours says itself, nil where there is none. With
	// Kafka, what is seen here is more, if it is seen.
	told    *why.Report
	details bool // look even if the server says it all
	unseen  []string
	// noKafka is what could not be seen in Kafka, though brokers were given.
	noKafka []string
}

func (c *whyCommand) observer(ctx context.Context) (_ *observer, err error) {
	o := &observer{details: c.Details}
	if o.client, err = c.clusterFlags.client(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.close()
			err = fmt.Errorf("%s: %w", o.client, err)
		}
	}()
	job, err := o.client.Find(ctx, c.Job)
	if err != nil {
		return nil, err
	}
	if o.job, err = o.client.Open(ctx, job); err != nil {
		return nil, err
	}
	if len(c.Brokers) > 0 {
		o.kafka, err = c.kafkaCollector()
	}
	return o, err
}

func (c *whyCommand) kafkaCollector() (*kafka.Collector, error) {
	opts, err := c.kafkaFlags.options()
	if err != nil {
		return nil, err
	}
	o := kafka.DefaultOptions
	o.Records = c.Records
	if c.TimestampField != "" {
		if o.Payload, err = gaps.NewField(c.TimestampField, c.Unit); err != nil {
			return nil, fmt.Errorf("--timestamp-field: %w", err)
		}
	}
	return kafka.New(opts, o)
}

// look takes a snapshot.
func (o *observer) look(ctx context.Context) error {
	if o.kafka == nil {
		var err error
		if o.told, err = o.job.Report(ctx); err != nil {
			return fmt.Errorf("%s: %w", o.client, err)
		}
		if o.told != nil && !o.details {
			return nil
		}
	}
	if err := o.job.Look(ctx); err != nil {
		return fmt.Errorf("%s: %w", o.client, err)
	}
	o.unseen = o.job.Unseen()
	if o.kafka == nil {
		return nil
	}
	o.noKafka = o.kafka.Look(ctx, o.job.Evidence())
	o.told = nil
	if o.sawNoKafka() { // the server knows more than is seen here then
		var err error
		if o.told, err = o.job.Report(ctx); err != nil {
			return fmt.Errorf("%s: %w", o.client, err)
		}
	}
	return nil
}

// sawNoKafka reports whether the last look saw nothing of Kafka, though it was to look there.
func (o *observer) sawNoKafka() bool {
	return o.kafka != nil && len(o.noKafka) > 0 && !o.job.Evidence().Means.KafkaOffsets
}

// follow turns to the job that has taken the place of one that a look did not find. The
// error says why there is none.
func (o *observer) follow(ctx context.Context, look error) error {
	next, err := o.job.Successor(ctx, look)
	switch {
	case err == nil:
		o.job, o.told = next, nil
		return nil
	case errors.Is(err, look):
		return err
	}
	return fmt.Errorf("%s: %w", o.client, err)
}

func (o *observer) diagnose() *why.Diagnosis {
	var d *why.Diagnosis
	if o.told != nil {
		d = o.told.Diagnosis(o.job.Evidence().Engine)
	} else {
		d = why.Diagnose(o.job.Evidence())
		d.Blind = append(d.Blind, o.unseen...)
	}
	d.Failed = o.noKafka
	if f := d.Answer(); f.Code == why.None && o.sawNoKafka() {
		f.Code = why.NotEnoughEvidence
		f.Answer = "There is not enough evidence: Kafka was to be asked, and was not seen. Without it: " + f.Answer
	}
	return d
}

func (o *observer) close() {
	if o.kafka != nil {
		o.kafka.Close()
	}
	o.client.Close()
}

func (c *whyCommand) report(w io.Writer, o *observer, d *why.Diagnosis) error {
	if c.JSON {
		encoder := json.NewEncoder(w)
		if !c.Watch { // a watch prints a line for each change
			encoder.SetIndent("", "  ")
		}
		return encoder.Encode(d.Report())
	}
	s := newScreen(w)
	if err := d.Write(w, why.Style{Width: s.width(), Bold: s.live, Numbers: c.Details}); err != nil {
		return err
	}
	if c.Details {
		return writeDetails(w, o.job.Evidence())
	}
	return nil
}

// await returns an observer as soon as there is a job.
func (c *whyCommand) await(ctx context.Context, w io.Writer) (*observer, error) {
	for last := ""; ; {
		o, err := c.observer(ctx)
		if !errors.Is(err, flink.ErrNoJob) {
			return o, err
		}
		if text := "waiting: " + err.Error(); text != last {
			last = text
			if err := c.news(w, text); err != nil {
				return nil, err
			}
		}
		if !sleep(ctx, c.For) {
			return nil, ctx.Err()
		}
	}
}

// watch looks until it is interrupted and reports what is new. Losing sight of the job is
// news, too, and does not end it: a job that runs again under the same name is followed.
func (c *whyCommand) watch(ctx context.Context, o *observer, w io.Writer) error {
	last := ""
	tell := func(text string) error {
		if text == last {
			return nil
		}
		last = text
		return c.news(w, text)
	}
	for looks := 1; ; looks++ {
		look := o.look(ctx)
		var lost, err error
		if look != nil && ctx.Err() == nil {
			lost = o.follow(ctx, look)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case lost != nil:
			err = tell("could not look: " + lost.Error())
		case look != nil:
			looks = 0
			err = tell(fmt.Sprintf("job %q runs again, as %s", o.job.Job().Name, o.job.Job().ID))
		case looks > 1 || o.told != nil:
			o.job.Forget(remembered)
			d := o.diagnose()
			if is := identity(d); is != last {
				last = is
				err = errors.Join(c.news(w, ""), c.report(w, o, d))
			}
		}
		if err != nil {
			return err
		}
		if !sleep(ctx, c.For) {
			return nil
		}
	}
}

// news begins a change on the screen with the time; in JSON there are reports and errors
// only.
func (c *whyCommand) news(w io.Writer, text string) error {
	if c.JSON {
		if text == "" {
			return nil
		}
		return json.NewEncoder(w).Encode(map[string]string{"error": text})
	}
	_, err := fmt.Fprintf(w, "\n== %s UTC %s\n", time.Now().UTC().Format(time.TimeOnly), inOneLine(text))
	return err
}

// identity is what makes a diagnosis news: its findings and whom they blame, not the
// numbers.
func identity(d *why.Diagnosis) string {
	var parts []string
	for i := range d.Findings {
		f := &d.Findings[i]
		parts = append(parts, fmt.Sprint(f.Code, f.Culprit.Source, f.Culprit.Operator, f.Culprit.Topic, f.Culprit.Partitions, f.Culprit.Subtasks))
	}
	slices.Sort(parts[1:])
	return fmt.Sprint(parts)
}

// sleep reports whether d passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
