package flink

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

const (
	// longestQuery keeps a request line below 4096 bytes, which is where Flink answers
	// that it does not know the page.
	longestQuery = 3500
	// parallelRequests is how many requests run at once.
	parallelRequests = 4
)

// metric is one of /…/metrics.
type metric struct {
	ID    string `json:"id"`
	Value string `json:"value"`
}

// integer is the value if it is a number.
func (m metric) integer() (int64, bool) {
	if n, err := strconv.ParseInt(m.Value, 10, 64); err == nil {
		return n, true
	}
	x, err := strconv.ParseFloat(m.Value, 64)
	if err != nil || math.IsNaN(x) || math.Abs(x) >= math.MaxInt64 {
		return 0, false
	}
	return int64(math.Round(x)), true
}

// filtered is how a name appears in a metric's: cut to 80 characters, with four of them
// replaced. Different names may become equal.
func filtered(name string) string {
	if len(name) > 80 {
		name = name[:80]
	}
	return filter.Replace(name)
}

var filter = strings.NewReplacer(" ", "_", ".", "_", ":", "_", ",", "_")

// metricID is "<subtask>.<operator>.<metric>", or "<subtask>.<metric>" of the task.
type metricID struct {
	subtask          int
	operator, metric string
}

func parseMetricID(id string) (metricID, bool) {
	number, rest, ok := strings.Cut(id, ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return metricID{}, false
	}
	if operator, name, ok := strings.Cut(rest, "."); ok {
		return metricID{n, operator, name}, true
	}
	return metricID{subtask: n, metric: rest}, true
}

// wanted reports whether a metric is evidence.
func (m metricID) wanted() bool {
	if m.operator == "" {
		switch m.metric {
		case "currentInputWatermark", "busyTimeMsPerSecond", "backPressuredTimeMsPerSecond", "idleTimeMsPerSecond":
			return true
		}
		return false
	}
	switch m.metric {
	case "currentInputWatermark", "currentOutputWatermark", "numRecordsIn", "numRecordsOut", "numLateRecordsDropped",
		"pendingRecords", "currentEmitEventTimeLag",
		"stateBudgetBytes", "stateMemoryBytes", "stateDiskBytes", "stateSpilledEntries", "stateSpillReads", "stateSpillWrites":
		return true
	}
	if _, ok := inputNumber(m.metric); ok {
		return true
	}
	if _, _, ok := partitionOffset(m.metric); ok {
		return true
	}
	_, gauge, ok := splitGauge(m.metric)
	switch gauge {
	case "currentWatermark", "activeTimeMsPerSecond", "idleTimeMsPerSecond", "pausedTimeMsPerSecond":
		return ok
	}
	return false
}

// inputNumber reads currentInput2Watermark; the first input is 0.
func inputNumber(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "currentInput")
	number, found := strings.CutSuffix(rest, "Watermark")
	n, err := strconv.Atoi(number)
	return n - 1, ok && found && err == nil && n > 0 && n <= 64
}

// partitionOffset reads KafkaSourceReader.topic.T.partition.P.currentOffset.
func partitionOffset(name string) (topic string, partition int32, ok bool) {
	rest, found := strings.CutPrefix(name, "KafkaSourceReader.topic.")
	rest, current := strings.CutSuffix(rest, ".currentOffset")
	topic, number, parts := strings.Cut(rest, ".partition.")
	n, err := strconv.ParseInt(number, 10, 32)
	return topic, int32(n), found && current && parts && err == nil
}

// splitGauge reads split.T-P.watermark.G.
func splitGauge(name string) (split, gauge string, ok bool) {
	rest, found := strings.CutPrefix(name, "split.")
	split, gauge, ok = strings.Cut(rest, ".watermark.")
	return split, gauge, found && ok
}

// partitionOf reads the split id of a Kafka partition, such as orders-3.
func partitionOf(split string) (topic string, partition int32, ok bool) {
	i := strings.LastIndexByte(split, '-')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(split[i+1:], 10, 32)
	return split[:i], int32(n), err == nil
}

// metricIDs lists the metrics below a path that are evidence.
func (c *Client) metricIDs(ctx context.Context, path string) ([]string, error) {
	var all []metric
	if err := c.get(ctx, path, "", &all); err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range all {
		if id, ok := parseMetricID(m.ID); ok && id.wanted() {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

// metricValues asks for metrics by their ids, in as many requests as it takes. Flink leaves
// out those that it does not have.
func (c *Client) metricValues(ctx context.Context, path string, ids []string) ([]metric, error) {
	queries := chunks(ids)
	answers := make([][]metric, len(queries))
	err := inParallel(ctx, len(queries), func(ctx context.Context, i int) error {
		return c.get(ctx, path, queries[i], &answers[i])
	})
	if err != nil {
		return nil, err
	}
	var all []metric
	for _, a := range answers {
		all = append(all, a...)
	}
	return all, nil
}

// chunks makes queries "get=a,b" that are short enough.
func chunks(ids []string) []string {
	var queries []string
	var b strings.Builder
	for _, id := range ids {
		escaped := url.QueryEscape(id)
		if b.Len() > 0 && b.Len()+1+len(escaped) > longestQuery {
			queries = append(queries, b.String())
			b.Reset()
		}
		if b.Len() == 0 {
			b.WriteString("get=")
		} else {
			b.WriteByte(',')
		}
		b.WriteString(escaped)
	}
	if b.Len() > 0 {
		queries = append(queries, b.String())
	}
	return queries
}

// inParallel calls do for 0 to n-1, a few at a time, and returns the first error.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free := make(chan struct{}, parallelRequests)
	var wg sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		if ctx.Err() != nil {
			<-free
			break
		}
		wg.Go(func() {
			defer func() { <-free }()
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%w", err)
	}
	return nil
}
