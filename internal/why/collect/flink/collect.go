package flink

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowwater/lowwater/internal/why"
)

// primeTries bounds how often a cluster is asked for metrics while it has none.
const primeTries = 5

// sqlTree finds an operator of SQL in the description of a chain.
var sqlTree = regexp.MustCompile(`\[\d+\]:\w+\(`)

// Collector looks at one job, again and again.
type Collector struct {
	client  *Client
	job     Job
	version string
	// own is nil on a Flink cluster, and while it is not identified what the server is.
	own        *ownJob
	identified bool
	plan       detail
	evidence   why.Evidence
	ids        map[string][]string // metric ids by vertex
	// emitLags are how far the newest records of the sources were behind the clock at the
	// last look.
	emitLags map[string]int64
	unseen   []string
}

// Open reads the job's plan.
func (c *Client) Open(ctx context.Context, job Job) (*Collector, error) {
	col := &Collector{client: c, job: job}
	var overview struct {
		Version string `json:"flink-version"`
	}
	if err := c.get(ctx, "/overview", "", &overview); err != nil {
		return nil, err
	}
	col.version = overview.Version
	_ = col.identify(ctx) // Look asks again, and says so
	if err := col.readPlan(ctx); err != nil {
		return nil, err
	}
	col.readInterval(ctx)
	return col, nil
}

// readPlan reads the job and starts the evidence anew.
func (c *Collector) readPlan(ctx context.Context) error {
	c.plan = detail{}
	if err := c.client.get(ctx, "/jobs/"+c.job.ID, "", &c.plan); err != nil {
		return err
	}
	if c.plan.State != "RUNNING" {
		return c.client.notRunning(ctx, Job{c.job.ID, c.job.Name, c.plan.State, c.plan.EndMillis})
	}
	if err := c.plan.check(); err != nil {
		return fmt.Errorf("job %q: %w", c.job.Name, err)
	}
	c.evidence = why.Evidence{
		Engine: why.Engine{Name: why.Flink, Version: c.version}, Job: cmp.Or(c.plan.Name, c.job.Name),
		StartedMillis: why.KnowIf(c.plan.Timestamps["RUNNING"], c.plan.Timestamps["RUNNING"] > 0),
		Means:         why.Means{Engine: true}, Operators: operators(&c.plan),
	}
	switch {
	case c.own != nil:
		c.evidence.Engine = why.Engine{Name: why.Lowwater}
		c.own.complete(c.evidence.Operators)
	case slices.ContainsFunc(c.plan.Plan.Nodes, func(n node) bool { return sqlTree.MatchString(n.Description) }):
		c.evidence.Engine.Name = why.FlinkSQL
	}
	return nil
}

// readInterval reads the cluster's auto-watermark interval. A job may have its own, which
// nobody tells.
func (c *Collector) readInterval(ctx context.Context) {
	var config []struct{ Key, Value string }
	if err := c.client.get(ctx, "/jobs/"+c.job.ID+"/jobmanager/config", "", &config); err != nil {
		if err := c.client.get(ctx, "/jobmanager/config", "", &config); err != nil {
			return
		}
	}
	for _, entry := range config {
		if entry.Key != "pipeline.auto-watermark-interval" {
			continue
		}
		if d, ok := parseDuration(entry.Value); ok {
			c.evidence.WatermarkIntervalMillis = why.Know(d.Milliseconds())
		}
	}
}

// durationUnits are the units of durations in Flink's configuration; those of three letters
// or more may have an s behind them. Without a unit it is milliseconds.
var durationUnits = map[string]time.Duration{
	"":  time.Millisecond,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "h": time.Hour, "hour": time.Hour, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"s": time.Second, "sec": time.Second, "second": time.Second, "ms": time.Millisecond, "milli": time.Millisecond, "millisecond": time.Millisecond,
	"µs": time.Microsecond, "micro": time.Microsecond, "microsecond": time.Microsecond, "ns": 1, "nano": 1, "nanosecond": 1,
}

// parseDuration reads a duration as Flink's configuration has it: "200 ms", "1 min", "5000".
func parseDuration(text string) (time.Duration, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	unit := strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseInt(strings.TrimSuffix(text, unit), 10, 64)
	unit = strings.TrimSpace(unit)
	if one := strings.TrimSuffix(unit, "s"); len(one) >= 3 {
		unit = one
	}
	each, known := durationUnits[unit]
	if err != nil || !known || n > math.MaxInt64/int64(each) {
		return 0, false
	}
	return time.Duration(n) * each, true
}

// Look adds a snapshot. Looks within ten seconds see the same metrics.
func (c *Collector) Look(ctx context.Context) error {
	before := c.evidence
	unidentified := c.identify(ctx)
	if err := c.readPlan(ctx); err != nil {
		return err
	}
	c.evidence.WatermarkIntervalMillis, c.evidence.History = before.WatermarkIntervalMillis, before.History
	// Metrics are as old as the fetch that priming starts, by the cluster's clock.
	at := c.plan.Now
	if err := c.prime(ctx); err != nil {
		return err
	}
	if unidentified != nil {
		c.unseen = append(c.unseen, fmt.Sprintf("It is not known whether this is a server of lowwater's, so it was taken for one of Flink's: %v", unidentified))
	}
	c.evidence.Restarts = c.restarts(ctx)
	v := newSnapshot(c.evidence.Operators)
	for _, n := range c.plan.Plan.Nodes {
		values, err := c.client.metricValues(ctx, c.metricsPath(n.ID), c.ids[n.ID])
		if err != nil {
			return err
		}
		v.add(n.ID, values)
	}
	s := v.finish()
	c.emitLags = v.emitLags
	s.AtMillis = at
	if c.own != nil {
		c.own.rename(&s)
	}
	c.evidence.AtMillis = s.AtMillis
	c.evidence.History = append(c.evidence.History, s)
	c.infer()
	return nil
}

func (c *Collector) metricsPath(vertex string) string {
	return "/jobs/" + c.job.ID + "/vertices/" + vertex + "/metrics"
}

// prime asks for the metrics' names, which makes the cluster fetch their values, and waits
// until it has them. The names are read again then: after a pause there were none, or old
// ones. Servers of ours have no such delay.
func (c *Collector) prime(ctx context.Context) error {
	c.ids, c.unseen = map[string][]string{}, nil
	if all, err := c.listMetrics(ctx); err != nil || all && c.own != nil {
		return err
	}
	for range primeTries {
		select {
		case <-time.After(c.client.primeWait):
		case <-ctx.Done():
			return ctx.Err()
		}
		all, err := c.listMetrics(ctx)
		if err != nil {
			return err
		}
		if all {
			return nil
		}
	}
	for _, v := range c.plan.Vertices {
		if len(c.ids[v.ID]) == 0 {
			c.unseen = append(c.unseen, fmt.Sprintf("no metrics of %q: the cluster has none, or cannot reach its TaskManagers", v.Name))
		}
	}
	return nil
}

// listMetrics reads the names of all vertices' metrics, and reports whether all have some.
func (c *Collector) listMetrics(ctx context.Context) (all bool, err error) {
	nodes := c.plan.Plan.Nodes
	lists := make([][]string, len(nodes))
	err = inParallel(ctx, len(nodes), func(ctx context.Context, i int) error {
		var err error
		lists[i], err = c.client.metricIDs(ctx, c.metricsPath(nodes[i].ID))
		return err
	})
	all = true
	for i, n := range nodes {
		c.ids[n.ID] = lists[i]
		all = all && len(lists[i]) > 0
	}
	return all, err
}

// restarts reads how often the job was restarted; the gauge has two names.
func (c *Collector) restarts(ctx context.Context) why.Known[int64] {
	values, err := c.client.metricValues(ctx, "/jobs/"+c.job.ID+"/metrics", []string{"numRestarts", "fullRestarts"})
	if err != nil {
		return why.Known[int64]{}
	}
	for _, m := range values {
		if n, ok := m.integer(); ok {
			return why.Know(n)
		}
	}
	return why.Known[int64]{}
}

// infer completes the operators with what the snapshots tell.
func (c *Collector) infer() {
	s := &c.evidence.History[len(c.evidence.History)-1]
	for i := range c.evidence.Operators {
		o := &c.evidence.Operators[i]
		switch {
		case o.Kind == why.KindSource:
			for _, sp := range s.Splits {
				if sp.Source == o.ID && !slices.Contains(o.Source.Topics, sp.Topic) {
					o.Source.Topics = append(o.Source.Topics, sp.Topic)
				}
			}
			slices.Sort(o.Source.Topics)
		case o.Kind == why.KindPlain && makesWatermarks(s, o.ID):
			o.Kind = why.KindAssign
		}
	}
	for _, sp := range s.Splits {
		c.evidence.Means.SplitGauges = c.evidence.Means.SplitGauges || sp.Watermark.OK
	}
	if n := len(c.evidence.History); n > 1 {
		lastReads(&c.evidence.History[n-2], s, c.emitLags)
	}
}

// lastReads infers when splits had their last record that have had none between two
// snapshots and have been read to their end. Nobody tells; it is taken that their records
// were as fresh as the newest of the source are, of which emitLags say how far they are
// behind the clock. Without gauges of splits, a subtask whose watermark stands still is
// held by those of its splits that stand still.
func lastReads(before, now *why.Snapshot, emitLags map[string]int64) {
	newest := map[string]int64{}
	see := func(source string, t why.Known[int64]) {
		if most, ok := newest[source]; t.OK && t.Value != why.MaxTime && (!ok || t.Value > most) {
			newest[source] = t.Value
		}
	}
	held := map[place]why.Known[int64]{}
	for _, sub := range now.Subtasks {
		see(sub.Operator, sub.OutputWatermark)
		if w := sub.OutputWatermark; slices.ContainsFunc(before.Subtasks, func(b why.Subtask) bool {
			return b.Operator == sub.Operator && b.Index == sub.Index && b.OutputWatermark == w
		}) {
			held[place{sub.Operator, sub.Index}] = w
		}
	}
	for _, sp := range now.Splits {
		see(sp.Source, sp.Watermark)
	}
	for source, lag := range emitLags {
		see(source, why.Know(now.AtMillis-lag))
	}
	for i := range now.Splits {
		sp := &now.Splits[i]
		still := slices.ContainsFunc(before.Splits, func(b why.Split) bool {
			return b.Source == sp.Source && filtered(b.Topic) == filtered(sp.Topic) && b.Partition == sp.Partition && b.PositionOffset.OK && b.PositionOffset == sp.PositionOffset
		})
		w := sp.Watermark
		if !w.OK {
			w = held[place{sp.Source, sp.Subtask.Or(-1)}]
		}
		if ahead := newest[sp.Source] - w.Value; still && !sp.LastReadMillis.OK && sp.Lag == why.Know[int64](0) && w.OK && w.Value != why.MinTime && ahead > 0 {
			sp.LastReadMillis = why.Know(min(now.AtMillis-ahead, before.AtMillis))
		}
	}
}

// makesWatermarks reports whether an operator has sent a larger watermark than it got.
func makesWatermarks(s *why.Snapshot, id string) bool {
	return slices.ContainsFunc(s.Subtasks, func(t why.Subtask) bool {
		return t.Operator == id && t.InputWatermark.OK && t.OutputWatermark.OK && t.OutputWatermark.Value > t.InputWatermark.Value
	})
}

// Evidence returns what was seen so far. It stays the collector's until the next Look.
func (c *Collector) Evidence() *why.Evidence { return &c.evidence }

// Forget keeps only the snapshots of the last d.
func (c *Collector) Forget(d time.Duration) {
	c.evidence.History = slices.DeleteFunc(c.evidence.History, func(s why.Snapshot) bool {
		return c.evidence.AtMillis-s.AtMillis > d.Milliseconds()
	})
}

// Unseen says what the last look could not see, and why.
func (c *Collector) Unseen() []string { return c.unseen }
