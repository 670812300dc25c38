package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/connector"
)

// fetcher fetches the partitions of one reader and hands their records over,
// undecoded. It knows no types.
//
// Several goroutines share it. The subtask's takes records, adds and pauses
// splits. fetchLoop polls the client, one answer ahead of the subtask: it asks
// for the next answer only when the last one was taken, so that a slow job
// stops the fetching. watchLoop asks brokers about the ends of quiet splits, and
// a committer makes positions visible.
type fetcher struct {
	cfg    *sourceConfig
	log    *slog.Logger
	client *kgo.Client
	stop   context.CancelFunc
	loops  sync.WaitGroup

	fetches   chan kgo.Fetches // holds one
	space     chan struct{}    // holds a token if fetches has room
	available chan struct{}    // holds one
	seldom    occasionally
	// starving is set while the subtask waits for records.
	starving atomic.Bool
	// fresh is set once the ends of splits were asked for by someone who relies on
	// them, not only shows them.
	fresh atomic.Bool
	// doubtful is set when a broker has failed to answer: it may have no news any more.
	doubtful atomic.Bool

	committer committer

	mu     sync.Mutex // guards what follows
	splits []*split
	byPart map[partition]*split
	gaps   []gap
	err    error

	// What follows belongs to the subtask's goroutine.
	byID     map[string]*split
	ready    []*split // have records, but may be paused
	turn     int      // index into ready of the next to be served
	open     int      // splits that are not finished
	noMore   bool
	ended    []*split           // ended, but not yet reported
	toIgnore map[string][]int32 // finished, but not yet paused at the client
}

// split is a Split being read.
type split struct {
	Split
	id string

	// next is the offset after the last record handed to the engine, end the
	// partition's end as last heard, -1 if it is not known or brokers did not answer
	// when they were asked last. paused and finished are written by the subtask's
	// goroutine, end by others: it is to be known while the subtask is blocked.
	next, end atomic.Int64
	// committed is the offset last committed to the group, -1 if none was.
	committed        atomic.Int64
	paused, finished atomic.Bool

	tail  tail      // guarded by fetcher.mu
	heard time.Time // when the end was heard of, guarded by fetcher.mu

	// pending belongs to the subtask's goroutine: runs of records to hand
	// over, pos records of the first being done.
	pending [][]*kgo.Record
	pos     int
	queued  bool // is in fetcher.ready
}

// gap says that a split has no records from one offset to another.
type gap struct {
	split    *split
	from, to int64
}

func newFetcher(cfg *sourceConfig, log *slog.Logger, checkpointing bool) (*fetcher, error) {
	base, fixed := cfg.readerOptions()
	ctx, cancel := context.WithCancel(context.Background())
	f := &fetcher{
		cfg: cfg, log: log, stop: cancel,
		fetches:   make(chan kgo.Fetches, 1),
		space:     make(chan struct{}, 1),
		available: make(chan struct{}, 1),
		byPart:    map[partition]*split{},
		byID:      map[string]*split{},
		toIgnore:  map[string][]int32{},
		committer: newCommitter(),
	}
	var err error
	if f.client, err = kgo.NewClient(append(cfg.client.options(log, base, fixed), kgo.WithHooks((*answers)(f)))...); err != nil {
		cancel()
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	f.space <- struct{}{}
	f.loops.Go(func() { f.fetchLoop(ctx) })
	f.loops.Go(func() { f.watchLoop(ctx) })
	switch {
	case cfg.group == "":
	case checkpointing:
		f.loops.Go(f.commitCheckpoints)
	default:
		f.loops.Go(func() { f.commitLoop(ctx) })
	}
	return f, nil
}

func (f *fetcher) close() {
	f.stop()
	f.committer.close()
	f.loops.Wait()
	f.committer.cancel()
	f.client.Close()
}

// signal makes Available deliver.
func (f *fetcher) signal() {
	select {
	case f.available <- struct{}{}:
	default:
	}
}

// fail ends the reading with an error, which the next Poll returns.
func (f *fetcher) fail(err error) {
	f.mu.Lock()
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
	f.signal()
}

func (f *fetcher) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fetcher) add(splits []connector.Split) error {
	offsets := map[string]map[int32]kgo.Offset{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cs := range splits {
		ks, ok := cs.(Split)
		if !ok {
			return fmt.Errorf("kafka source: split %q is a %T, not a kafka.Split", cs.ID(), cs)
		}
		s := &split{Split: ks, id: ks.ID(), tail: tail{at: ks.Start}}
		s.committed.Store(-1)
		if s.Start < 0 {
			return fmt.Errorf("kafka source: split %s starts at offset %d; want 0 or more", s.id, s.Start)
		}
		if f.byID[s.id] != nil {
			return fmt.Errorf("kafka source: split %s is added twice", s.id)
		}
		s.next.Store(s.Start)
		s.end.Store(-1)
		f.byID[s.id] = s
		f.byPart[partition{s.Topic, s.Partition}] = s
		f.splits = append(f.splits, s)
		f.open++
		if s.reached(s.Start) {
			f.ended = append(f.ended, s)
			continue
		}
		if offsets[s.Topic] == nil {
			offsets[s.Topic] = map[int32]kgo.Offset{}
		}
		offsets[s.Topic][s.Partition] = kgo.NewOffset().At(s.Start)
	}
	f.client.AddConsumePartitions(offsets)
	f.signal()
	return nil
}

func (f *fetcher) setNoMore() {
	f.noMore = true
	f.signal()
}

// fetchLoop polls the client until ctx ends or reading fails.
func (f *fetcher) fetchLoop(ctx context.Context) {
	for {
		select {
		case <-f.space:
		case <-ctx.Done():
			return
		}
		fetches := f.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		transient, err := f.checkErrors(fetches)
		if err != nil {
			f.fail(err)
			return
		}
		f.hear(fetches)
		f.fetches <- fetches
		f.signal()
		if transient && !wait(ctx, retryInterval) {
			return
		}
	}
}

// checkErrors returns the first error that retrying does not heal, and whether
// there are others. The client hides most of those.
func (f *fetcher) checkErrors(fetches kgo.Fetches) (transient bool, fatal error) {
	var passing trouble
	fetches.EachError(func(topic string, num int32, err error) {
		p := partition{topic, num}
		switch {
		case isTransient(err):
			passing.add(p, err)
		case fatal == nil:
			fatal = f.explain(p, err)
		}
	})
	passing.report(f, "fetching failed and is retried")
	return passing.count > 0, fatal
}

// trouble adds up what will be retried, for one line in the log.
type trouble struct {
	count int
	first partition
	err   error
}

func (t *trouble) add(p partition, err error) {
	if t.count == 0 {
		t.first, t.err = p, err
	}
	t.count++
}

func (t *trouble) report(f *fetcher, message string) {
	if t.count > 0 && f.seldom.allow(message) {
		f.log.Warn(message, "partitions", t.count, "first", t.first.String(), "offset", f.position(t.first), "error", t.err)
	}
}

// isTransient reports whether an error of a fetch may pass. The client reports
// an unknown topic only after it stayed unknown for a while.
func isTransient(err error) bool {
	return !isUnknownTopic(err) && (kerr.IsRetriable(err) || errors.Is(err, kerr.UnknownServerError))
}

func (f *fetcher) position(p partition) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.byPart[p]; s != nil {
		return s.next.Load()
	}
	return -1
}

// explain says what went wrong for good, where, and what to do.
func (f *fetcher) explain(p partition, err error) error {
	at := fmt.Sprintf("kafka source: reading %s at offset %d", p, f.position(p))
	if p.num < 0 { // the client could not tell which
		at = "kafka source: reading " + f.cfg.subject()
	}
	var loss *kgo.ErrDataLoss
	switch {
	case errors.Is(err, kerr.OffsetOutOfRange):
		return fmt.Errorf("%s: %w: records were deleted before they were read, or the topic was recreated; "+
			"lengthen the topic's retention, then start from Earliest or from offsets that it has", at, err)
	case isUnknownTopic(err):
		return fmt.Errorf("%s: %w: the topic was deleted or recreated; start the job anew", at, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return fmt.Errorf("%s: %w: grant the job's user READ and DESCRIBE on the topic", at, err)
	case errors.As(err, &loss):
		return fmt.Errorf("%s: the brokers lost records that were read before (they go back to offset %d): %w", at, loss.ResetTo, err)
	default:
		return fmt.Errorf("%s: %w", at, err)
	}
}
