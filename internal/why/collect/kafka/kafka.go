package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/internal/gaps"
	"github.com/lowwater/lowwater/internal/why"
)

// askTimeout bounds each question.
const askTimeout = 10 * time.Second

// Options says what to read of records.
type Options struct {
	// Records is how many of the last records of each partition are read; 0 is none.
	Records int64
	// Bytes bounds what is read of all partitions together, of keys and values, and Time
	// how long.
	Bytes int64
	Time  time.Duration
	// Payload finds the event time in a payload, in the unit that the job takes it for; nil
	// if nobody knows where it is. Event times are the records' timestamps then.
	Payload *gaps.Field
}

// DefaultOptions reads little.
var DefaultOptions = Options{Records: 200, Bytes: 16 << 20, Time: 5 * time.Second}

// Collector asks one Kafka cluster.
type Collector struct {
	options []kgo.Opt
	o       Options
	client  *kgo.Client
	admin   *kadm.Client
}

// New returns a collector with a client of its own. It does not connect yet.
func New(opts []kgo.Opt, o Options) (*Collector, error) {
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	return &Collector{options: opts, o: o, client: client, admin: kadm.NewClient(client)}, nil
}

// Close ends the connections.
func (c *Collector) Close() { c.client.Close() }

// Look adds to the last snapshot of e what Kafka knows of the topics of its sources, and
// corrects names of topics that the engine has mangled. It returns what it could not see.
func (c *Collector) Look(ctx context.Context, e *why.Evidence) (unseen []string) {
	if len(e.History) == 0 {
		return nil
	}
	l := &look{c: c, e: e, now: &e.History[len(e.History)-1]}
	if err := l.topics(ctx); err != nil {
		return []string{fmt.Sprintf("anything of Kafka: %v", short(err))}
	}
	if len(l.names) == 0 {
		return l.unseen
	}
	known := l.offsets(ctx)
	if known && l.foreign() {
		return l.unseen
	}
	l.addUnassigned()
	if known {
		l.describe(ctx)
	}
	if c.o.Records > 0 {
		l.sample(ctx)
	}
	return l.unseen
}

// look is one time that Kafka is asked.
type look struct {
	c   *Collector
	e   *why.Evidence
	now *why.Snapshot
	// names are the topics' true names, partitions their numbers of partitions.
	names      []string
	partitions map[string]int
	starts     kadm.ListedOffsets
	ends       kadm.ListedOffsets
	unseen     []string
}

func (l *look) cannot(format string, args ...any) {
	l.unseen = append(l.unseen, fmt.Sprintf(format, args...))
}

// topics finds the topics that the sources read.
func (l *look) topics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	all, err := l.c.admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	l.partitions = map[string]int{}
	for i := range l.e.Operators {
		o := &l.e.Operators[i]
		if o.Source == nil {
			continue
		}
		if len(o.Source.Topics) == 0 {
			l.cannot("the topics of source %q: the engine does not tell them", o.Name)
		}
		for k, name := range o.Source.Topics {
			topic, ok := trueName(all, name)
			if !ok {
				l.cannot("topic %q of source %q: there is none on these brokers, or no permission to see it", name, o.Name)
				continue
			}
			o.Source.Topics[k] = topic
			l.rename(o.ID, name, topic)
			l.partitions[topic] = len(all[topic].Partitions)
		}
	}
	for name := range l.partitions {
		l.names = append(l.names, name)
	}
	slices.Sort(l.names)
	return nil
}

// trueName returns the topic that the engine means: Flink's metrics replace dots. Kafka
// does not have two topics that differ in dots and underscores only.
func trueName(all kadm.TopicDetails, name string) (string, bool) {
	if all.Has(name) {
		return name, true
	}
	for _, t := range all.Names() {
		if strings.ReplaceAll(t, ".", "_") == name {
			return t, true
		}
	}
	return "", false
}

func (l *look) rename(source, from, to string) {
	for i := range l.now.Splits {
		if sp := &l.now.Splits[i]; sp.Source == source && sp.Topic == from {
			sp.Topic = to
		}
	}
}

// addUnassigned adds the partitions that no subtask reads, if the engine tells what the
// others read.
func (l *look) addUnassigned() {
	for i := range l.e.Operators {
		o := &l.e.Operators[i]
		if o.Source == nil {
			continue
		}
		for _, topic := range o.Source.Topics {
			l.addUnassignedOf(o.ID, topic)
		}
	}
}

func (l *look) addUnassignedOf(source, topic string) {
	read := map[int32]bool{}
	for _, sp := range l.now.Splits {
		if sp.Source == source && sp.Topic == topic && sp.Subtask.OK {
			read[sp.Partition] = true
		}
	}
	if len(read) == 0 {
		return
	}
	for p := range int32(l.partitions[topic]) {
		if !read[p] {
			l.now.Splits = append(l.now.Splits, why.Split{Source: source, Topic: topic, Partition: p, Unassigned: true})
		}
	}
}

// offsets asks for the ends of partitions and reports whether it knows them.
func (l *look) offsets(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var err, startErr error
	l.ends, err = l.c.admin.ListEndOffsets(ctx, l.names...)
	l.starts, startErr = l.c.admin.ListStartOffsets(ctx, l.names...)
	if err := errors.Join(err, startErr); err != nil {
		l.cannot("offsets: %v", short(err))
	}
	return err == nil && startErr == nil
}

// foreign reports whether these cannot be the brokers that the job reads: it has read more
// than they have. What they have tells nothing of the job then. Ends are asked for after
// what the engine tells, so those of the job's brokers are not smaller.
func (l *look) foreign() bool {
	const hence = "so that these are not the brokers that the job reads, or the topic was created anew"
	for _, sp := range l.now.Splits {
		if n, ok := l.partitions[sp.Topic]; ok && int(sp.Partition) >= n {
			l.cannot("anything of Kafka: the job reads %s-%d, which is not here, %s", sp.Topic, sp.Partition, hence)
			return true
		}
		end, ok := l.ends.Lookup(sp.Topic, sp.Partition)
		seen := max(sp.PositionOffset.Or(0), sp.EndOffset.Or(0))
		if ok && end.Err == nil && seen > end.Offset {
			l.cannot("anything of Kafka: the job has seen %s-%d up to offset %d, and here it ends at %d, %s", sp.Topic, sp.Partition, seen, end.Offset, hence)
			return true
		}
	}
	return false
}

// describe tells splits their ends and when records were appended last.
func (l *look) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	l.e.Means.KafkaOffsets = true
	latest, err := l.c.admin.ListMaxTimestampOffsets(ctx, l.names...)
	if err != nil {
		l.cannot("when records were appended last: %v", short(err))
	}
	for i := range l.now.Splits {
		sp := &l.now.Splits[i]
		end, ok := l.ends.Lookup(sp.Topic, sp.Partition)
		start, okStart := l.starts.Lookup(sp.Topic, sp.Partition)
		if !ok || !okStart {
			continue
		}
		if err := errors.Join(end.Err, start.Err); err != nil {
			l.cannot("offsets of %s-%d: %v", sp.Topic, sp.Partition, short(err))
			continue
		}
		l.offsetsOf(sp, start.Offset, end.Offset)
		if t, ok := latest.Lookup(sp.Topic, sp.Partition); ok && t.Err == nil && t.Timestamp > 0 && end.Offset > start.Offset {
			sp.LastAppendMillis = why.Know(min(t.Timestamp, l.now.AtMillis))
		}
	}
}

// offsetsOf sets what the two ends of a partition tell. What the engine read lags behind
// what Kafka says now: its numbers are older.
func (l *look) offsetsOf(sp *why.Split, start, end int64) {
	sp.EndOffset = why.Know(end)
	if start == end && !sp.PositionOffset.OK {
		sp.PositionOffset = why.Know(end) // there is nothing to read
	}
	switch {
	case end == 0:
		sp.LastAppendMillis, sp.LastRecordMillis, sp.LastPayloadMillis = why.Know(why.Never), why.Know(why.MinTime), why.Know(why.MinTime)
	case start == end:
		sp.LastRecordMillis = why.Know(why.MinTime)
	}
}

// short is the first line of an error, without what a client wraps around it.
func short(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
