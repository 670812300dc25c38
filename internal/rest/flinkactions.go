package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lowwater/lowwater/internal/rest/observe"
)

// operationTimeout is how long a savepoint or a checkpoint that was asked for may take.
const operationTimeout = time.Hour

// maxOperations is how many operations are remembered, the latest.
const maxOperations = 100

// operation is something that was asked for and goes on behind its answer.
type operation struct {
	id   string
	job  string
	kind string
	// result is what it came to at the time done; a zero done is still to come.
	result any
	done   time.Time
	// told is closed when a client has heard of the result.
	told chan struct{}
	once sync.Once
}

// operations remembers what was asked for.
type operations struct {
	mu   sync.Mutex
	list []*operation
}

// start runs f, unless the client has already asked for the same under this id.
func (ops *operations) start(ctx context.Context, o *observe.Observed, kind string, trigger triggerID, f func(ctx context.Context) (any, error)) string {
	id := string(trigger)
	if id == "" {
		id = observe.NewID()
	}
	ops.mu.Lock()
	defer ops.mu.Unlock()
	if ops.find(o, kind, id) != nil {
		return id
	}
	op := &operation{id: id, job: o.ID, kind: kind, told: make(chan struct{})}
	ops.list = append(ops.list, op)
	if extra := len(ops.list) - maxOperations; extra > 0 {
		ops.list = slices.Delete(ops.list, 0, extra)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
	go func() {
		defer cancel()
		result, err := f(ctx)
		if err != nil {
			result = struct {
				Cause *failureCause `json:"failure-cause"`
			}{newFailureCause(err)}
		}
		ops.mu.Lock()
		defer ops.mu.Unlock()
		op.done, op.result = time.Now(), result
	}()
	return id
}

// linger waits until clients have heard of all results, at most for limit: who stops a job
// with a savepoint wants to know where it is, although the server ends with the job. Who
// has not asked for limit does not want to know.
func (ops *operations) linger(limit time.Duration) {
	ops.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(ops.list), func(op *operation) bool {
		return !op.done.IsZero() && time.Since(op.done) > limit
	})
	ops.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, op := range list {
		select {
		case <-op.told:
		case <-timer.C:
			return
		}
	}
}

func (ops *operations) find(o *observe.Observed, kind, id string) *operation {
	for _, op := range ops.list {
		if op.id == id && op.job == o.ID && op.kind == kind {
			return op
		}
	}
	return nil
}

// answer says how far an operation is.
func (ops *operations) answer(o *observe.Observed, kind string, r *http.Request) (any, error) {
	id, err := pathID(r, "rid", "triggerid")
	if err != nil {
		return nil, err
	}
	ops.mu.Lock()
	defer ops.mu.Unlock()
	op := ops.find(o, kind, id)
	if op == nil {
		return nil, notFound(handlerException, "There is no %s operation with triggerId=%s for job %s.", kind, id, o.ID)
	}
	out := struct {
		Status progressJSON `json:"status"`
		Result any          `json:"operation"`
	}{Status: progressJSON{"IN_PROGRESS"}}
	if !op.done.IsZero() {
		out.Status.ID, out.Result = "COMPLETED", op.result
		op.once.Do(func() { close(op.told) })
	}
	return out, nil
}

type requestID struct {
	ID string `json:"request-id"`
}

// readBody reads the JSON of a request; an empty body leaves the defaults.
func readBody(r *http.Request, into any, shape string) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return nil
	}
	if err := unmarshalStrictly(data, into); err != nil {
		return badRequest("%s: Request did not match expected format %s.\nCaused by: %v", handlerException, shape, err)
	}
	return nil
}

// unmarshalStrictly knows all fields or fails: the target of a savepoint is spelled in
// another way than that of a stop, and one that is overlooked goes elsewhere.
func unmarshalStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("there is more than one value")
	}
	return nil
}

// triggerID is the id under which a client wants to ask for the result.
type triggerID string

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *triggerID) UnmarshalText(text []byte) error {
	if !isID(string(text)) {
		return errors.New("triggerId: not 32 hexadecimal digits")
	}
	*t = triggerID(strings.ToLower(string(text)))
	return nil
}

// formatType is the format of a savepoint. There is one here, whatever it is called.
type formatType struct{}

// UnmarshalText implements encoding.TextUnmarshaler.
func (*formatType) UnmarshalText(text []byte) error {
	return oneOf(text, "formatType", "CANONICAL", "NATIVE")
}

// checkpointType is how much a checkpoint is to hold; here always all that is needed.
type checkpointType struct{}

// UnmarshalText implements encoding.TextUnmarshaler.
func (*checkpointType) UnmarshalText(text []byte) error {
	return oneOf(text, "checkpointType", "CONFIGURED", "FULL", "INCREMENTAL")
}

func oneOf(text []byte, field string, known ...string) error {
	if !slices.Contains(known, string(text)) {
		return fmt.Errorf("%s: not one of %s", field, strings.Join(known, ", "))
	}
	return nil
}

const cancelMode = "cancel"

func (s *Server) cancelJob(r *http.Request) (any, error) {
	switch mode := r.FormValue("mode"); mode {
	case "", cancelMode:
	case "stop":
		return nil, &failure{http.StatusPermanentRedirect, []string{handlerException + ": The termination mode \"stop\" has been removed. " +
			"For an ungraceful shutdown, please use \"cancel\" instead. For a graceful shutdown, please use \"jobs/:jobId/stop\" instead."}}
	default:
		return nil, badQuery("mode", mode)
	}
	id, err := pathID(r, "jid", "jobid")
	if err != nil {
		return nil, err
	}
	o := s.jobs.Job(id)
	if o == nil {
		return nil, notFound(handlerException, "Job could not be found.")
	}
	o.Cancel()
	return accepted{struct{}{}}, nil
}

// checkpointing returns the checkpoints of a job, or Flink's error if it takes none.
func checkpointing(o *observe.Observed) (observe.Checkpoints, error) {
	if c := o.Checkpoints(); c != nil {
		return c, nil
	}
	return nil, notFound(handlerException, "Checkpointing is not enabled for this job (%s).", o.ID)
}

type located struct {
	Location string `json:"location"`
}

// directory returns where a savepoint is to go.
func directory(asked string, c observe.Checkpoints, property string) (string, error) {
	if asked == "" && c.CheckpointConfig().SavepointDir == "" {
		return "", badRequest("%s: Config key [execution.checkpointing.savepoint-dir] is not set. Property [%s] must be provided.", handlerException, property)
	}
	return asked, nil
}

func (s *Server) triggerSavepoint(o *observe.Observed, r *http.Request) (any, error) {
	var body struct {
		Directory string     `json:"target-directory"`
		Cancel    bool       `json:"cancel-job"`
		Format    formatType `json:"formatType"`
		Trigger   triggerID  `json:"triggerId"`
	}
	if err := readBody(r, &body, "SavepointTriggerRequestBody"); err != nil {
		return nil, err
	}
	c, err := checkpointing(o)
	if err != nil {
		return nil, err
	}
	dir, err := directory(body.Directory, c, "target-directory")
	if err != nil {
		return nil, err
	}
	id := s.operations.start(r.Context(), o, "savepoint", body.Trigger, func(ctx context.Context) (any, error) {
		path, err := c.TriggerSavepoint(ctx, dir)
		if err == nil && body.Cancel {
			o.Cancel()
		}
		return located{path}, err
	})
	return accepted{requestID{id}}, nil
}

func (s *Server) stopJob(o *observe.Observed, r *http.Request) (any, error) {
	var body struct {
		Directory string     `json:"targetDirectory"`
		Drain     bool       `json:"drain"`
		Format    formatType `json:"formatType"`
		Trigger   triggerID  `json:"triggerId"`
	}
	if err := readBody(r, &body, "StopWithSavepointRequestBody"); err != nil {
		return nil, err
	}
	c, err := checkpointing(o)
	if err != nil {
		return nil, err
	}
	dir, err := directory(body.Directory, c, "targetDirectory")
	if err != nil {
		return nil, err
	}
	id := s.operations.start(r.Context(), o, "savepoint", body.Trigger, func(ctx context.Context) (any, error) {
		path, err := c.StopWithSavepoint(ctx, dir, body.Drain)
		return located{path}, err
	})
	return accepted{requestID{id}}, nil
}

func (s *Server) savepointStatus(o *observe.Observed, r *http.Request) (any, error) {
	return s.operations.answer(o, "savepoint", r)
}

func (s *Server) triggerCheckpoint(o *observe.Observed, r *http.Request) (any, error) {
	var body struct {
		Type    checkpointType `json:"checkpointType"`
		Trigger triggerID      `json:"triggerId"`
	}
	if err := readBody(r, &body, "CheckpointTriggerRequestBody"); err != nil {
		return nil, err
	}
	c, err := checkpointing(o)
	if err != nil {
		return nil, err
	}
	id := s.operations.start(r.Context(), o, "checkpoint", body.Trigger, func(ctx context.Context) (any, error) {
		id, err := c.TriggerCheckpoint(ctx)
		return struct {
			ID int64 `json:"checkpointId"`
		}{id}, err
	})
	return accepted{requestID{id}}, nil
}

func (s *Server) checkpointStatus(o *observe.Observed, r *http.Request) (any, error) {
	return s.operations.answer(o, "checkpoint", r)
}

// stopGracefully is lowwater's own: it ends a job without a savepoint, as its author would.
func stopGracefully(o *observe.Observed, _ *http.Request) (any, error) {
	o.Stop()
	return accepted{struct{}{}}, nil
}

// rescales answers that there are none, as Flink does without the adaptive scheduler.
func rescales(o *observe.Observed, _ *http.Request) (any, error) {
	return nil, &failure{http.StatusNotFound, []string{fmt.Sprintf("org.apache.flink.runtime.rest.handler.job.rescales.RescalesUnavailableException: "+
		"The job `%s` has not enabled the `Adaptive` scheduler.", o.ID)}}
}
