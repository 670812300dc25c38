package rest

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// shownCheckpoints is how many checkpoints of the history are shown, Flink's
// web.checkpoints.history.
const shownCheckpoints = 10

// quantile is a number, or "NaN" where there is nothing to measure.
type quantile float64

// MarshalJSON implements json.Marshaler.
func (q quantile) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(q)) {
		return []byte(`"NaN"`), nil
	}
	return json.Marshal(float64(q))
}

type statistic struct {
	Min  int64    `json:"min"`
	Max  int64    `json:"max"`
	Avg  int64    `json:"avg"`
	P50  quantile `json:"p50"`
	P90  quantile `json:"p90"`
	P95  quantile `json:"p95"`
	P99  quantile `json:"p99"`
	P999 quantile `json:"p999"`
}

func statisticOf(values []int64) statistic {
	nan := quantile(math.NaN())
	if len(values) == 0 {
		return statistic{P50: nan, P90: nan, P95: nan, P99: nan, P999: nan}
	}
	values = slices.Clone(values)
	slices.Sort(values)
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	at := func(q float64) quantile {
		pos := q * float64(len(values)+1)
		i := int(pos)
		switch {
		case i < 1:
			return quantile(values[0])
		case i >= len(values):
			return quantile(values[len(values)-1])
		}
		low, high := float64(values[i-1]), float64(values[i])
		return quantile(low + (pos-float64(i))*(high-low))
	}
	return statistic{values[0], values[len(values)-1], sum / int64(len(values)), at(.5), at(.9), at(.95), at(.99), at(.999)}
}

// checkpointJSON is a checkpoint of a job.
type checkpointJSON struct {
	ClassName    string                    `json:"className"`
	ID           int64                     `json:"id"`
	Status       status.CheckpointState    `json:"status"`
	Savepoint    bool                      `json:"is_savepoint"`
	Format       *string                   `json:"savepointFormat"`
	Triggered    int64                     `json:"trigger_timestamp"`
	LastAck      int64                     `json:"latest_ack_timestamp"`
	Checkpointed int64                     `json:"checkpointed_size"`
	StateSize    int64                     `json:"state_size"`
	Duration     int64                     `json:"end_to_end_duration"`
	Buffered     int64                     `json:"alignment_buffered"`
	Processed    int64                     `json:"processed_data"`
	Persisted    int64                     `json:"persisted_data"`
	Subtasks     int                       `json:"num_subtasks"`
	Acknowledged int                       `json:"num_acknowledged_subtasks"`
	Type         string                    `json:"checkpoint_type"`
	Tasks        map[string]taskCheckpoint `json:"tasks"`
	// The rest depends on the status.
	Path      *string `json:"external_path,omitempty"`
	Discarded *bool   `json:"discarded,omitempty"`
	FailedAt  *int64  `json:"failure_timestamp,omitempty"`
	Failure   *string `json:"failure_message,omitempty"`
}

// taskCheckpoint is what a vertex did for a checkpoint.
type taskCheckpoint struct {
	ID           int64                  `json:"id"`
	Status       status.CheckpointState `json:"status"`
	LastAck      int64                  `json:"latest_ack_timestamp"`
	Checkpointed int64                  `json:"checkpointed_size"`
	StateSize    int64                  `json:"state_size"`
	Duration     int64                  `json:"end_to_end_duration"`
	Buffered     int64                  `json:"alignment_buffered"`
	Processed    int64                  `json:"processed_data"`
	Persisted    int64                  `json:"persisted_data"`
	Subtasks     int                    `json:"num_subtasks"`
	Acknowledged int                    `json:"num_acknowledged_subtasks"`
}

func unixMillis(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}
	return t.UnixMilli()
}

// took is from the trigger to the last acknowledgement so far, or to the failure.
func took(c *status.Checkpoint) int64 {
	end := c.LastAck
	if !c.FailedAt.IsZero() {
		end = c.FailedAt
	}
	if end.IsZero() {
		return max(0, time.Since(c.Triggered).Milliseconds())
	}
	return end.Sub(c.Triggered).Milliseconds()
}

func checkpointOf(c *status.Checkpoint) checkpointJSON {
	out := checkpointJSON{
		ID: c.ID, Status: c.State, Savepoint: c.Savepoint, Triggered: c.Triggered.UnixMilli(), LastAck: unixMillis(c.LastAck),
		Checkpointed: c.WrittenBytes, StateSize: c.StateBytes, Duration: took(c), Type: "CHECKPOINT", Tasks: map[string]taskCheckpoint{},
	}
	if c.Savepoint {
		format := "CANONICAL"
		out.Format, out.Type = &format, "SAVEPOINT"
	}
	for _, v := range c.Vertices {
		for _, s := range v.Subtasks {
			out.Subtasks++
			if !s.Ack.IsZero() {
				out.Acknowledged++
			}
		}
	}
	switch c.State {
	case status.CheckpointCompleted:
		out.ClassName, out.Path, out.Discarded = "completed", &c.Path, &c.Discarded
	case status.CheckpointFailed:
		at := unixMillis(c.FailedAt)
		out.ClassName, out.FailedAt, out.Failure = "failed", &at, &c.Failure
	default:
		out.ClassName = "in_progress"
	}
	return out
}

func taskCheckpointOf(c *status.Checkpoint, v *status.VertexCheckpoint) taskCheckpoint {
	out := taskCheckpoint{ID: c.ID, Status: c.State, Subtasks: len(v.Subtasks)}
	var last time.Time
	for _, s := range v.Subtasks {
		out.Checkpointed += s.WrittenBytes
		out.StateSize += s.StateBytes
		if !s.Ack.IsZero() {
			out.Acknowledged++
		}
		if s.Ack.After(last) {
			last = s.Ack
		}
	}
	out.LastAck = unixMillis(last)
	if !last.IsZero() {
		out.Duration = last.Sub(c.Triggered).Milliseconds()
	}
	if out.Acknowledged == out.Subtasks && c.State == status.CheckpointInProgress {
		out.Status = status.CheckpointCompleted
	}
	return out
}

type restoredJSON struct {
	ID        int64  `json:"id"`
	At        int64  `json:"restore_timestamp"`
	Savepoint bool   `json:"is_savepoint"`
	Path      string `json:"external_path"`
}

type checkpointCounts struct {
	Restored   int64 `json:"restored"`
	Total      int64 `json:"total"`
	InProgress int64 `json:"in_progress"`
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
}

type latestCheckpoints struct {
	Completed *checkpointJSON `json:"completed"`
	Savepoint *checkpointJSON `json:"savepoint"`
	Failed    *checkpointJSON `json:"failed"`
	Restored  *restoredJSON   `json:"restored"`
}

// checkpointStats returns the statistics of a job's checkpoints.
func checkpointStats(o *observe.Observed) (status.Checkpoints, error) {
	c := o.Checkpoints()
	if c == nil {
		return status.Checkpoints{}, notFound(handlerException, "Checkpointing has not been enabled.")
	}
	return c.CheckpointStats(), nil
}

func checkpoints(o *observe.Observed, _ *http.Request) (any, error) {
	stats, err := checkpointStats(o)
	if err != nil {
		return nil, err
	}
	out := struct {
		Counts  checkpointCounts     `json:"counts"`
		Summary map[string]statistic `json:"summary"`
		Latest  latestCheckpoints    `json:"latest"`
		History []checkpointJSON     `json:"history"`
	}{
		Counts:  checkpointCounts{stats.Restored, stats.Total, stats.InProgress, stats.Completed, stats.Failed},
		History: []checkpointJSON{},
	}
	var written, state, durations, none []int64
	for i := range stats.History {
		c := &stats.History[i]
		cp := checkpointOf(c)
		if c.State == status.CheckpointCompleted {
			written, state, durations = append(written, cp.Checkpointed), append(state, cp.StateSize), append(durations, cp.Duration)
			none = append(none, 0)
		}
		out.History = append(out.History, cp)
	}
	slices.Reverse(out.History)
	out.History = out.History[:min(len(out.History), shownCheckpoints)]
	out.Latest.Completed, out.Latest.Savepoint, out.Latest.Failed = latestOf(stats.LatestCompleted), latestOf(stats.LatestSavepoint), latestOf(stats.LatestFailed)
	if r := stats.RestoredFrom; r != nil {
		out.Latest.Restored = &restoredJSON{r.ID, r.At.UnixMilli(), r.Savepoint, r.Path}
	}
	out.Summary = map[string]statistic{
		"checkpointed_size": statisticOf(written), "state_size": statisticOf(state), "end_to_end_duration": statisticOf(durations),
		"alignment_buffered": statisticOf(none), "processed_data": statisticOf(none), "persisted_data": statisticOf(none),
	}
	return out, nil
}

func latestOf(c *status.Checkpoint) *checkpointJSON {
	if c == nil {
		return nil
	}
	cp := checkpointOf(c)
	return &cp
}

type externalization struct {
	Enabled bool `json:"enabled"`
	Delete  bool `json:"delete_on_cancellation"`
}

func checkpointsConfig(o *observe.Observed, _ *http.Request) (any, error) {
	c, err := checkpointing(o)
	if err != nil {
		return nil, err
	}
	cfg := c.CheckpointConfig()
	mode := "at_least_once"
	if cfg.ExactlyOnce {
		mode = "exactly_once"
	}
	return struct {
		Mode            string          `json:"mode"`
		Interval        int64           `json:"interval"`
		Timeout         int64           `json:"timeout"`
		MinPause        int64           `json:"min_pause"`
		MaxConcurrent   int             `json:"max_concurrent"`
		Externalization externalization `json:"externalization"`
		Backend         string          `json:"state_backend"`
		Storage         string          `json:"checkpoint_storage"`
		Unaligned       bool            `json:"unaligned_checkpoints"`
		Tolerable       int             `json:"tolerable_failed_checkpoints"`
		AlignedTimeout  int64           `json:"aligned_checkpoint_timeout"`
		AfterFinish     bool            `json:"checkpoints_after_tasks_finish"`
		Changelog       bool            `json:"state_changelog_enabled"`
		Materialization int64           `json:"changelog_periodic_materialization_interval"`
		ChangelogStore  string          `json:"changelog_storage"`
	}{
		mode, cfg.Interval.Milliseconds(), cfg.Timeout.Milliseconds(), cfg.MinPause.Milliseconds(), cfg.MaxConcurrent,
		externalization{cfg.Retain, !cfg.Retain}, cfg.Backend, cfg.Storage, false, cfg.TolerableFailures, 0, true, false, 0, "none",
	}, nil
}

// checkpointOfRequest finds a checkpoint by its id.
func checkpointOfRequest(o *observe.Observed, r *http.Request) (*status.Checkpoint, error) {
	id, err := strconv.ParseInt(r.PathValue("cid"), 10, 64)
	if err != nil {
		return nil, badPath("checkpointid", r.PathValue("cid"))
	}
	stats, err := checkpointStats(o)
	if err != nil {
		return nil, err
	}
	for i := range stats.History {
		if stats.History[i].ID == id {
			return &stats.History[i], nil
		}
	}
	for _, c := range []*status.Checkpoint{stats.LatestCompleted, stats.LatestSavepoint, stats.LatestFailed} {
		if c != nil && c.ID == id {
			return c, nil
		}
	}
	return nil, notFound(handlerException, "Could not find checkpointing statistics for checkpoint %d.", id)
}

func checkpointDetails(o *observe.Observed, r *http.Request) (any, error) {
	c, err := checkpointOfRequest(o, r)
	if err != nil {
		return nil, err
	}
	out := checkpointOf(c)
	for i := range c.Vertices {
		out.Tasks[o.Plan().Vertices[i].ID] = taskCheckpointOf(c, &c.Vertices[i])
	}
	return out, nil
}

type alignmentJSON struct {
	Buffered  int64 `json:"buffered"`
	Processed int64 `json:"processed"`
	Persisted int64 `json:"persisted"`
	Duration  int64 `json:"duration"`
}

type checkpointTimes struct {
	Sync  int64 `json:"sync"`
	Async int64 `json:"async"`
}

type subtaskCheckpoint struct {
	ClassName string `json:"className"`
	Index     int    `json:"index"`
	Status    string `json:"status"`
	// The rest is there only if the subtask is done.
	*ackedCheckpoint
}

type ackedCheckpoint struct {
	Ack          int64           `json:"ack_timestamp"`
	Duration     int64           `json:"end_to_end_duration"`
	Checkpointed int64           `json:"checkpointed_size"`
	StateSize    int64           `json:"state_size"`
	Checkpoint   checkpointTimes `json:"checkpoint"`
	Alignment    alignmentJSON   `json:"alignment"`
	StartDelay   int64           `json:"start_delay"`
	Unaligned    bool            `json:"unaligned_checkpoint"`
	Aborted      bool            `json:"aborted"`
}

type checkpointSummary struct {
	Checkpointed statistic            `json:"checkpointed_size"`
	StateSize    statistic            `json:"state_size"`
	Duration     statistic            `json:"end_to_end_duration"`
	Checkpoint   map[string]statistic `json:"checkpoint_duration"`
	Alignment    map[string]statistic `json:"alignment"`
	StartDelay   statistic            `json:"start_delay"`
}

func checkpointSubtasks(o *observe.Observed, r *http.Request) (any, error) {
	c, err := checkpointOfRequest(o, r)
	if err != nil {
		return nil, err
	}
	a, err := vertexOfRequest(o, r)
	if err != nil {
		return nil, err
	}
	if a.vertex >= len(c.Vertices) {
		return nil, notFound(handlerException, "There is no checkpoint statistics for task %s.", a.plan().ID)
	}
	v := &c.Vertices[a.vertex]
	out := struct {
		taskCheckpoint
		Summary  checkpointSummary   `json:"summary"`
		Subtasks []subtaskCheckpoint `json:"subtasks"`
	}{taskCheckpoint: taskCheckpointOf(c, v), Subtasks: []subtaskCheckpoint{}}
	var acked []*ackedCheckpoint
	for i, s := range v.Subtasks {
		line := subtaskCheckpoint{ClassName: "pending_or_failed", Index: i, Status: "pending_or_failed"}
		if !s.Ack.IsZero() {
			line.ClassName, line.Status = "completed", "completed"
			line.ackedCheckpoint = &ackedCheckpoint{
				Ack: s.Ack.UnixMilli(), Duration: s.Ack.Sub(c.Triggered).Milliseconds(), Checkpointed: s.WrittenBytes, StateSize: s.StateBytes,
				Checkpoint: checkpointTimes{s.Sync.Milliseconds(), s.Async.Milliseconds()},
				Alignment:  alignmentJSON{Duration: s.Alignment.Milliseconds()}, StartDelay: s.StartDelay.Milliseconds(),
			}
			acked = append(acked, line.ackedCheckpoint)
		}
		out.Subtasks = append(out.Subtasks, line)
	}
	over := func(f func(*ackedCheckpoint) int64) statistic {
		var values []int64
		for _, s := range acked {
			values = append(values, f(s))
		}
		return statisticOf(values)
	}
	out.Summary = checkpointSummary{
		Checkpointed: over(func(s *ackedCheckpoint) int64 { return s.Checkpointed }),
		StateSize:    over(func(s *ackedCheckpoint) int64 { return s.StateSize }),
		Duration:     over(func(s *ackedCheckpoint) int64 { return s.Duration }),
		Checkpoint: map[string]statistic{
			"sync":  over(func(s *ackedCheckpoint) int64 { return s.Checkpoint.Sync }),
			"async": over(func(s *ackedCheckpoint) int64 { return s.Checkpoint.Async }),
		},
		Alignment: map[string]statistic{
			"buffered":  over(func(s *ackedCheckpoint) int64 { return 0 }),
			"processed": over(func(s *ackedCheckpoint) int64 { return 0 }),
			"persisted": over(func(s *ackedCheckpoint) int64 { return 0 }),
			"duration":  over(func(s *ackedCheckpoint) int64 { return s.Alignment.Duration }),
		},
		StartDelay: over(func(s *ackedCheckpoint) int64 { return s.StartDelay }),
	}
	return out, nil
}
