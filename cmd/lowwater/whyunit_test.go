package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lowwater/lowwater/internal/gaps"
	"github.com/lowwater/lowwater/internal/why"
)

// unitEvidence is what a job tells that has read all of topic "ticks" up to a minute ago
// and once more now, with those event times.
func unitEvidence(records, newest int64) *why.Evidence {
	e := &why.Evidence{
		Engine: why.Engine{Name: why.Flink}, Job: "ticks", StartedMillis: why.Know(time.Now().UnixMilli() - 600_000),
		Operators: []why.Operator{
			{ID: "ticks", Kind: why.KindSource, Parallelism: 1, Source: &why.Source{Topics: []string{"ticks"}}},
			{
				ID: "count", Kind: why.KindWindow, Parallelism: 1, Window: &why.Window{Kind: why.Tumbling, SizeMillis: 1000},
				Inputs: []why.Input{{Edges: []why.Edge{{From: "ticks", Ship: why.ShipHash}}}},
			},
		},
		Means: why.Means{Engine: true, SplitGauges: true},
	}
	for _, ago := range []int64{60_000, 0} {
		at, w := time.Now().UnixMilli()-ago, newest-ago-1
		e.AtMillis = at
		e.History = append(e.History, why.Snapshot{
			AtMillis: at,
			Subtasks: []why.Subtask{
				{Operator: "ticks", OutputWatermark: why.Know(w), RecordsOut: why.Know(records - ago/1000)},
				{Operator: "count", InputWatermark: why.Know(w), RecordsIn: why.Know(records - ago/1000), LateDropped: why.Know[int64](0)},
			},
			Splits: []why.Split{{
				Source: "ticks", Topic: "ticks", Subtask: why.Know(0), Watermark: why.Know(w), State: why.Know(why.SplitActive),
				PositionOffset: why.Know(records - ago/1000),
			}},
		})
	}
	return e
}

// TestWhyUnit: numbers in a payload are taken for what --unit says, as the job does. With the
// wrong unit the job's watermark tells that it converts them.
func TestWhyUnit(t *testing.T) {
	for _, unit := range []gaps.Unit{gaps.Seconds, gaps.Milliseconds, gaps.Microseconds, gaps.Nanoseconds} {
		t.Run(string(unit), func(t *testing.T) {
			addr, newest := ticks(t, unit)
			for _, given := range []gaps.Unit{unit, gaps.Milliseconds} {
				e, d := lookAtTicks(t, addr, given, newest)
				if a := d.Answer(); a.Code != why.None {
					t.Errorf("--unit %s: %s: %s", given, a.Code, a.Answer)
				}
				hint := strings.Contains(strings.Join(d.Blind, " "), "--unit "+string(unit))
				if hint != (given != unit) {
					t.Errorf("--unit %s: could not see %q", given, d.Blind)
				}
				if sp := e.History[1].Splits[0]; given == unit && (sp.LastPayloadMillis != why.Know(newest) || sp.Profile.MaxAheadMillis > 1000) {
					t.Errorf("--unit %s: the last record is of %v, want %d; %+v", given, sp.LastPayloadMillis, newest, sp.Profile)
				}
			}
		})
	}
}

// ticks is a Kafka whose topic "ticks" has a record a second up to now, and the time of the
// last one in milliseconds.
func ticks(t *testing.T, unit gaps.Unit) (addr string, newest int64) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "ticks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	newest = time.Now().UnixMilli() / 1000 * 1000
	var records []*kgo.Record
	for i := range int64(300) {
		at := time.UnixMilli(newest - (299-i)*1000)
		n := map[gaps.Unit]int64{gaps.Seconds: at.Unix(), gaps.Milliseconds: at.UnixMilli(), gaps.Microseconds: at.UnixMicro(), gaps.Nanoseconds: at.UnixNano()}[unit]
		records = append(records, &kgo.Record{Topic: "ticks", Timestamp: at, Value: fmt.Appendf(nil, `{"t":%d}`, n)})
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return cluster.ListenAddrs()[0], newest
}

func lookAtTicks(t *testing.T, addr string, unit gaps.Unit, newest int64) (*why.Evidence, *why.Diagnosis) {
	t.Helper()
	c := &whyCommand{kafkaFlags: kafkaFlags{Brokers: []string{addr}}, TimestampField: "t", Unit: unit, Records: 200}
	k, err := c.kafkaCollector()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	e := unitEvidence(300, newest)
	if unseen := k.Look(t.Context(), e); unseen != nil {
		t.Errorf("could not see %q", unseen)
	}
	return e, why.Diagnose(e)
}
