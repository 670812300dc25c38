package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

// lowwaterRoutes are the answers that Flink does not have.
func (s *Server) lowwaterRoutes(routes map[string]http.Handler) {
	of := s.ofJob
	routes["GET /lowwater/jobs/{jid}/graph"] = of(graphOf)
	routes["GET /lowwater/jobs/{jid}/splits"] = of(splitsOf)
	routes["GET /lowwater/jobs/{jid}/history"] = of(historyOf)
	routes["GET /lowwater/jobs/{jid}/late"] = of(lateOf)
	routes["GET /lowwater/jobs/{jid}/plan"] = of(planOf)
	routes["GET /lowwater/jobs/{jid}/why"] = of(whyOf)
	routes["POST /lowwater/jobs/{jid}/stop"] = of(stopGracefully)
}

type graphJSON struct {
	JID         string       `json:"jid"`
	Name        string       `json:"name"`
	State       status.State `json:"state"`
	Now         int64        `json:"now"`
	StartTime   int64        `json:"startTime"`
	Parallelism int          `json:"parallelism"`
	Restarts    int64        `json:"restarts"`
	Vertices    []vertexJSON `json:"vertices"`
	Holder      *holderJSON  `json:"holder"`
}

type vertexJSON struct {
	ID                  string         `json:"id"`
	Name                string         `json:"name"`
	Parallelism         int            `json:"parallelism"`
	Kind                observe.Kind   `json:"kind"`
	Operators           []operatorJSON `json:"operators"`
	Inputs              []inputJSON    `json:"inputs"`
	LowWatermark        watermark      `json:"lowWatermark"`
	WatermarkLagMs      *int64         `json:"watermarkLagMs"`
	Busy                float64        `json:"busy"`
	BackPressured       float64        `json:"backPressured"`
	Idle                float64        `json:"idle"`
	RecordsInPerSecond  float64        `json:"recordsInPerSecond"`
	RecordsOutPerSecond float64        `json:"recordsOutPerSecond"`
	LateDropped         int64          `json:"lateDropped"`
	State               *stateJSON     `json:"state"`
	Subtasks            []subtaskJSON  `json:"subtasks"`
}

type operatorJSON struct {
	Name      string       `json:"name"`
	UID       string       `json:"uid"`
	Kind      observe.Kind `json:"kind"`
	EventTime bool         `json:"eventTime"`
}

type inputJSON struct {
	ID           string `json:"id"`
	ShipStrategy string `json:"shipStrategy"`
	Input        int    `json:"input"`
}

type subtaskJSON struct {
	Subtask             int          `json:"subtask"`
	Status              status.State `json:"status"`
	InputWatermark      watermark    `json:"inputWatermark"`
	OutputWatermark     watermark    `json:"outputWatermark"`
	Idle                bool         `json:"idle"`
	Busy                float64      `json:"busy"`
	SoftBackPressured   float64      `json:"softBackPressured"`
	HardBackPressured   float64      `json:"hardBackPressured"`
	IdleTime            float64      `json:"idleTime"`
	RecordsIn           int64        `json:"recordsIn"`
	RecordsOut          int64        `json:"recordsOut"`
	RecordsInPerSecond  float64      `json:"recordsInPerSecond"`
	RecordsOutPerSecond float64      `json:"recordsOutPerSecond"`
	LateDropped         int64        `json:"lateDropped"`
	State               *stateJSON   `json:"state"`
}

// stateJSON is state with a memory budget.
type stateJSON struct {
	BudgetBytes          int64   `json:"budgetBytes"`
	MemoryBytes          int64   `json:"memoryBytes"`
	DiskBytes            int64   `json:"diskBytes"`
	SpilledEntries       int64   `json:"spilledEntries"`
	SpillReadsPerSecond  float64 `json:"spillReadsPerSecond"`
	SpillWritesPerSecond float64 `json:"spillWritesPerSecond"`
}

type holderJSON struct {
	Watermark watermark   `json:"watermark"`
	SinceMs   millis      `json:"sinceMs"`
	Text      string      `json:"text"`
	Path      []placeJSON `json:"path"`
	Split     *heldSplit  `json:"split"`
}

type placeJSON struct {
	Vertex   string `json:"vertex"`
	Subtask  int    `json:"subtask"`
	Operator string `json:"operator"`
}

type heldSplit struct {
	Vertex    string `json:"vertex"`
	Subtask   int    `json:"subtask"`
	ID        string `json:"id"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

func graphOf(o *observe.Observed, _ *http.Request) (any, error) {
	r := o.Read()
	g := graphJSON{
		JID: o.ID, Name: r.Status.Name, State: r.Status.Life.State, Now: r.At.UnixMilli(),
		StartTime: r.Status.Started.UnixMilli(), Parallelism: r.Plan.Parallelism,
		Restarts: r.Status.Restarts, Vertices: []vertexJSON{},
	}
	for v := range r.Plan.Vertices {
		g.Vertices = append(g.Vertices, vertexOf(r, v))
	}
	g.Holder = holderOf(r, o.Holder(r))
	return g, nil
}

func vertexOf(r *observe.Reading, vertex int) vertexJSON {
	p := &r.Plan.Vertices[vertex]
	low := r.LowWatermark(vertex)
	v := vertexJSON{
		ID: p.ID, Name: p.Name, Parallelism: p.Parallelism, Kind: p.Kind, Inputs: []inputJSON{},
		LowWatermark: watermark(low),
	}
	if low != eventtime.MinTimestamp && low != eventtime.MaxTimestamp {
		lag := r.At.UnixMilli() - low
		v.WatermarkLagMs = &lag
	}
	for i, o := range p.Operators {
		waits := o.EventTime || observe.HasTimers(&r.Status, observe.Place{Vertex: vertex, Operator: i})
		v.Operators = append(v.Operators, operatorJSON{o.Name, o.UID, o.Kind, waits})
	}
	for _, in := range p.Inputs {
		v.Inputs = append(v.Inputs, inputJSON{r.Plan.Vertices[in.Vertex].ID, in.Ship, in.Input})
	}
	for i := range r.Status.Vertices[vertex].Subtasks {
		s := r.Subtask(vertex, i)
		v.Busy = max(v.Busy, s.Busy)
		v.BackPressured = max(v.BackPressured, s.BackPressured())
		v.Idle = max(v.Idle, s.Idle)
		v.RecordsInPerSecond += s.RecordsInPerSecond
		v.RecordsOutPerSecond += s.RecordsOutPerSecond
		v.LateDropped += s.LateDropped
		state := stateOf(&s)
		v.State = v.State.plus(state)
		v.Subtasks = append(v.Subtasks, subtaskJSON{
			Subtask: i, Status: r.Status.Vertices[vertex].Subtasks[i].Life.State,
			InputWatermark: watermark(s.InputWatermark), OutputWatermark: watermark(s.OutputWatermark), Idle: s.OutputIdle,
			Busy: s.Busy, SoftBackPressured: s.SoftBackPressured, HardBackPressured: s.HardBackPressured, IdleTime: s.Idle,
			RecordsIn: s.RecordsIn, RecordsOut: s.RecordsOut,
			RecordsInPerSecond: s.RecordsInPerSecond, RecordsOutPerSecond: s.RecordsOutPerSecond, LateDropped: s.LateDropped,
			State: state,
		})
	}
	return v
}

// stateOf is nil without a budget.
func stateOf(s *observe.Subtask) *stateJSON {
	if s.State.BudgetBytes == 0 {
		return nil
	}
	return &stateJSON{
		BudgetBytes: s.State.BudgetBytes, MemoryBytes: s.State.MemoryBytes,
		DiskBytes: s.State.DiskBytes, SpilledEntries: s.State.SpilledEntries,
		SpillReadsPerSecond: s.SpillReadsPerSecond, SpillWritesPerSecond: s.SpillWritesPerSecond,
	}
}

// plus returns the sum; nil is none.
func (a *stateJSON) plus(b *stateJSON) *stateJSON {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return &stateJSON{
		BudgetBytes: a.BudgetBytes + b.BudgetBytes, MemoryBytes: a.MemoryBytes + b.MemoryBytes,
		DiskBytes: a.DiskBytes + b.DiskBytes, SpilledEntries: a.SpilledEntries + b.SpilledEntries,
		SpillReadsPerSecond: a.SpillReadsPerSecond + b.SpillReadsPerSecond, SpillWritesPerSecond: a.SpillWritesPerSecond + b.SpillWritesPerSecond,
	}
}

func holderOf(r *observe.Reading, h *observe.Holder) *holderJSON {
	if h == nil {
		return nil
	}
	out := &holderJSON{Watermark: watermark(h.Watermark), SinceMs: millis{h.Since}, Text: h.Text}
	for _, p := range h.Path {
		v := &r.Plan.Vertices[p.Vertex]
		out.Path = append(out.Path, placeJSON{v.ID, p.Subtask, v.Operators[p.Operator].Name})
	}
	if h.Split.ID != "" {
		first := out.Path[0]
		out.Split = &heldSplit{first.Vertex, first.Subtask, h.Split.ID, h.Split.Topic, h.Split.Partition}
	}
	return out
}

type splitsJSON struct {
	Now    int64       `json:"now"`
	Splits []splitJSON `json:"splits"`
}

type splitJSON struct {
	Vertex    string    `json:"vertex"`
	Source    string    `json:"source"`
	Subtask   int       `json:"subtask"`
	ID        string    `json:"id"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	State     string    `json:"state"`
	IdleBy    string    `json:"idleBy"`
	SinceMs   millis    `json:"sinceMs"`
	Offset    *int64    `json:"offset"`
	EndOffset *int64    `json:"endOffset"`
	Lag       *int64    `json:"lag"`
	Watermark watermark `json:"watermark"`
	// WatermarkSinceMs is null also if the watermark is newer than the last sample.
	WatermarkSinceMs millis    `json:"watermarkSinceMs"`
	LastEventTime    watermark `json:"lastEventTime"`
	LastRecordAt     millis    `json:"lastRecordAt"`
	Records          int64     `json:"records"`
	FutureRecords    int64     `json:"futureRecords"`
}

// known is nil for an offset that is not known.
func known(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

func splitsOf(o *observe.Observed, _ *http.Request) (any, error) {
	r := o.Read()
	out := splitsJSON{Now: r.At.UnixMilli(), Splits: []splitJSON{}}
	for v := range r.Plan.Vertices {
		for i, s := range r.Status.Vertices[v].Subtasks {
			for _, split := range s.Operators[0].Splits {
				line := splitJSON{
					Vertex: r.Plan.Vertices[v].ID, Source: s.Operators[0].Name, Subtask: i, ID: split.ID,
					Topic: split.Topic, Partition: split.Partition,
					State: split.State.String(), IdleBy: split.IdleBy.String(), SinceMs: millis{split.StateSince},
					Offset: known(split.CurrentOffset), EndOffset: known(split.EndOffset),
					Watermark: watermark(split.CurrentWatermark), WatermarkSinceMs: millis{o.WatermarkSince(v, i, &split)}, LastEventTime: watermark(split.LastEventTime),
					LastRecordAt: millis{split.LastRecordAt}, Records: split.Records, FutureRecords: split.Future.Count,
				}
				if line.Offset != nil && line.EndOffset != nil {
					line.Lag = known(max(0, *line.EndOffset-*line.Offset))
				}
				out.Splits = append(out.Splits, line)
			}
		}
	}
	return out, nil
}

type historyJSON struct {
	IntervalMs int64        `json:"intervalMs"`
	Now        int64        `json:"now"`
	Series     []seriesJSON `json:"series"`
}

type seriesJSON struct {
	Kind    string         `json:"kind"`
	Vertex  string         `json:"vertex"`
	Subtask int            `json:"subtask"`
	Split   string         `json:"split,omitempty"`
	Name    string         `json:"name"`
	Points  [][2]watermark `json:"points"`
}

func historyOf(o *observe.Observed, r *http.Request) (any, error) {
	var since time.Time
	if text := r.FormValue("since"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, badRequest("since=%s: must be a time in milliseconds since the epoch", text)
		}
		since = time.UnixMilli(n)
	}
	h := o.History(since)
	out := historyJSON{IntervalMs: h.Interval.Milliseconds(), Now: time.Now().UnixMilli(), Series: []seriesJSON{}}
	for _, s := range h.Series {
		line := seriesJSON{Kind: "subtask", Vertex: s.Vertex, Subtask: s.Subtask, Split: s.Split, Name: s.Name}
		if s.Split != "" {
			line.Kind = "split"
		}
		for _, p := range s.Points {
			line.Points = append(line.Points, [2]watermark{watermark(p.At.UnixMilli()), watermark(p.Watermark)})
		}
		out.Series = append(out.Series, line)
	}
	return out, nil
}

type lateJSON struct {
	Late     int64            `json:"late"`
	Dropped  int64            `json:"dropped"`
	ByReason []lateReasonJSON `json:"byReason"`
	BySplit  []lateSplitJSON  `json:"bySplit"`
	Samples  []lateSampleJSON `json:"samples"`
}

type lateReasonJSON struct {
	Operator string `json:"operator"`
	Reason   string `json:"reason"`
	Count    int64  `json:"count"`
}

type lateSplitJSON struct {
	Operator string `json:"operator"`
	Source   string `json:"source"`
	Split    string `json:"split"`
	Count    int64  `json:"count"`
}

type lateSampleJSON struct {
	Operator  string    `json:"operator"`
	Subtask   int       `json:"subtask"`
	Timestamp watermark `json:"timestamp"`
	Watermark watermark `json:"watermark"`
	BehindMs  int64     `json:"behindMs"`
	Key       string    `json:"key"`
	Source    string    `json:"source"`
	Split     string    `json:"split"`
	Offset    int64     `json:"offset"`
}

func lateOf(o *observe.Observed, _ *http.Request) (any, error) {
	r := o.Read()
	out := lateJSON{ByReason: []lateReasonJSON{}, BySplit: []lateSplitJSON{}, Samples: []lateSampleJSON{}}
	reasons := map[[2]string]int64{}
	splits := map[[3]string]int64{}
	for v := range r.Plan.Vertices {
		for subtask, s := range r.Status.Vertices[v].Subtasks {
			for i, op := range s.Operators {
				name := r.Plan.Vertices[v].Operators[i].Name
				out.Late += op.LateRecords
				out.Dropped += op.LateRecordsDropped
				if op.LateRecordsDropped > 0 {
					reasons[[2]string{name, "late"}] += op.LateRecordsDropped
				}
				if n := op.LateRecords - op.LateRecordsDropped; n > 0 {
					reasons[[2]string{name, "late output"}] += n
				}
				for reason, sample := range op.Drops {
					reasons[[2]string{name, reason}] += sample.Count
				}
				for _, c := range op.LateBySplit {
					splits[[3]string{name, c.Source, c.Split}] += c.Count
				}
				for _, l := range op.LateSamples {
					out.Samples = append(out.Samples, lateSampleJSON{
						Operator: name, Subtask: subtask, Timestamp: watermark(l.Timestamp), Watermark: watermark(l.Watermark),
						BehindMs: l.BehindMillis(), Key: l.Key, Source: l.Source, Split: l.Split, Offset: l.Offset,
					})
				}
			}
		}
	}
	for _, key := range sortedKeys(reasons, func(k [2]string) string { return k[0] + "\x00" + k[1] }) {
		out.ByReason = append(out.ByReason, lateReasonJSON{key[0], key[1], reasons[key]})
	}
	for _, key := range sortedKeys(splits, func(k [3]string) string { return k[0] + "\x00" + k[1] + "\x00" + k[2] }) {
		out.BySplit = append(out.BySplit, lateSplitJSON{key[0], key[1], key[2], splits[key]})
	}
	return out, nil
}

// sortedKeys returns the keys of m in the order of their texts.
func sortedKeys[K comparable, V any](m map[K]V, text func(K) string) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b K) int {
		if text(a) < text(b) {
			return -1
		}
		return 1
	})
	return keys
}

// warningJSON is a graph.Warning.
type warningJSON struct {
	Code     string   `json:"code"`
	Severity string   `json:"severity"`
	Operator string   `json:"operator"`
	Where    string   `json:"where"`
	Message  string   `json:"message"`
	Fixes    []string `json:"fixes"`
}

func planOf(o *observe.Observed, _ *http.Request) (any, error) {
	out := struct {
		Plan     planJSON      `json:"plan"`
		Warnings []warningJSON `json:"warnings"`
	}{flinkPlan(o), []warningJSON{}}
	for _, w := range o.Plan().Warnings {
		out.Warnings = append(out.Warnings, warningJSON{w.Code, "warning", w.Operator, w.Where, w.Message, append([]string{}, w.Fixes...)})
	}
	return out, nil
}

func whyOf(o *observe.Observed, _ *http.Request) (any, error) {
	report, ok := o.Diagnose()
	if !ok {
		return nil, &failure{http.StatusNotImplemented, []string{"The graph of this job is not known, so it cannot be diagnosed."}}
	}
	return report, nil
}
