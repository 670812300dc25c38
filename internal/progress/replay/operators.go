package replay

import (
	"encoding/json"

	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/internal/progress"
)

// timestampsUnit is the subject timestamps_operator.
type timestampsUnit struct {
	noState
	out      *log
	operator *progress.TimestampsOperator[event]
	assign   func(event, eventtime.RecordTime) int64
	now      int64
	// hard and soft back pressure.
	hard, soft bool
}

func newTimestampsOperator(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		generatorSetup
		IntervalMs  int64   `json:"intervalMs"`
		Extract     *string `json:"extract"`
		Progressive *bool   `json:"progressive"`
		StartMs     int64   `json:"startMs"`
	}](setup)
	if err != nil {
		return nil, err
	}
	strategy, err := s.strategy()
	if err != nil {
		return nil, err
	}
	if s.Extract != nil {
		if *s.Extract != "value" {
			return nil, malformed("no such extract", *s.Extract)
		}
		strategy = strategy.WithTimestampAssigner(func(e event, _ int64) int64 { return e.value })
	}
	batch := s.Progressive != nil && !*s.Progressive
	u := &timestampsUnit{out: out, assign: strategy.TimestampAssigner(), now: s.StartMs}
	u.operator, err = progress.NewTimestampsOperator(strategy, s.IntervalMs, batch, u.now, out)
	return u, err
}

func (u *timestampsUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Record           *int64 `json:"record"`
		Timestamp        *int64 `json:"timestamp"`
		Marker           bool   `json:"marker"`
		ProcessingTime   *int64 `json:"processingTime"`
		BackPressure     *bool  `json:"backpressure"`
		SoftBackPressure *bool  `json:"softBackpressure"`
		Finish           bool   `json:"finish"`
		signal
	}](in)
	if err != nil {
		return err
	}
	switch {
	case e.Record != nil:
		return u.record(event{*e.Record, e.Marker}, e.Timestamp)
	case e.ProcessingTime != nil:
		u.now = *e.ProcessingTime
		if at, ok := u.operator.NextPeriodic(); ok && at <= u.now {
			return u.operator.Periodic(u.now)
		}
		return nil
	case e.BackPressure != nil:
		u.hard = *e.BackPressure
		u.operator.BackPressure(u.now, u.hard, u.soft)
		return nil
	case e.SoftBackPressure != nil:
		u.soft = *e.SoftBackPressure
		u.operator.BackPressure(u.now, u.hard, u.soft)
		return nil
	case e.Finish:
		return u.operator.Finish(u.now)
	}
	return e.send(u.operator)
}

func (u *timestampsUnit) record(value event, previous *int64) error {
	t := eventtime.MinTimestamp
	if previous != nil {
		t = *previous
	}
	if u.assign != nil {
		t = u.assign(value, eventtime.RecordTime{Millis: t})
	}
	u.out.record(t)
	return u.operator.OnEvent(value, t)
}

// sqlUnit is the subject sql_watermark_assigner.
type sqlUnit struct {
	noState
	out      *log
	assigner *progress.SQLWatermarkAssigner
	now      int64
}

func newSQLAssigner(setup json.RawMessage, _ progress.Rules, out *log) (unit, error) {
	s, err := decode[struct {
		IntervalMs    int64 `json:"intervalMs"`
		IdleTimeoutMs int64 `json:"idleTimeoutMs"`
		StartMs       int64 `json:"startMs"`
	}](setup)
	if err != nil {
		return nil, err
	}
	return &sqlUnit{
		out:      out,
		assigner: progress.NewSQLWatermarkAssigner(s.IntervalMs, s.IdleTimeoutMs, s.StartMs, out),
		now:      s.StartMs,
	}, nil
}

func (u *sqlUnit) step(in json.RawMessage) error {
	e, err := decode[struct {
		Record         *int64 `json:"record"`
		RowWatermark   *int64 `json:"rowWatermark"`
		ProcessingTime *int64 `json:"processingTime"`
		Finish         bool   `json:"finish"`
		signal
	}](in)
	if err != nil {
		return err
	}
	switch {
	case e.Record != nil:
		if err := u.assigner.BeforeRow(); err != nil {
			return err
		}
		u.out.record(*e.Record)
		if e.RowWatermark == nil {
			return u.assigner.AfterRow(0, false)
		}
		return u.assigner.AfterRow(*e.RowWatermark, true)
	case e.ProcessingTime != nil:
		u.now = *e.ProcessingTime
		if at, ok := u.assigner.NextTimer(); ok && at <= u.now {
			return u.assigner.Timer(u.now)
		}
		return nil
	case e.Finish:
		return u.assigner.Finish()
	}
	return e.send(u.assigner)
}
