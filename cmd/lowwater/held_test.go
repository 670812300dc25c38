//go:build synctests

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/why"
)

// heldActs is what why may say of the acts of all scenarios, in their order, when they are
// held. Where late records go to an output, nothing is lost, and a stranger does not see them.
var heldActs = map[string][][]why.Code{
	"quiet-partition":       {{why.None}, {why.QuietPartition}, {why.None}, {why.None}},
	"over-parallel":         {{why.OverParallelSource}, {why.None}, {why.None}},
	"union":                 {{why.None}, {why.QuietInput}, {why.None}},
	"strategy-after-source": {{why.StrategyAfterSource}, {why.StrategyAfterSource, why.None}, {why.None}},
	"processing-time":       {{why.QuietPartition}, {why.None}},
}

// TestWhyOfHeldActs asks over REST why nothing comes out of the job of every act that is
// held: by the server's own diagnosis, and by that of a stranger who sees what a Flink
// cluster would show, and what operators wait for event time. Both say what the act shows.
func TestWhyOfHeldActs(t *testing.T) {
	for _, s := range scenarios {
		if len(heldActs[s.name]) != s.acts {
			t.Errorf("%s has %d acts, and the test knows %d", s.name, s.acts, len(heldActs[s.name]))
			continue
		}
		for i, want := range heldActs[s.name] {
			t.Run(fmt.Sprintf("%s act %d", s.name, i+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { askHeldAct(t, s, i+1, want) })
			})
		}
	}
}

func askHeldAct(t *testing.T, s scenario, act int, want []why.Code) {
	ctx, interrupt := context.WithCancel(t.Context())
	network := &kfake.VirtualNetwork{}
	demo := &demoCommand{
		ActTime: 3 * time.Second, REST: "127.0.0.1:8081", Act: act, Hold: true,
		restOptions: []lowwater.RESTOption{func(c *rest.Config) { c.Listen = network.Listen }},
	}
	var shown safeBuffer
	ended := make(chan error, 1)
	go func() { ended <- demo.play(ctx, s, &shown) }()
	defer func() {
		interrupt()
		if err := <-ended; err != nil {
			t.Errorf("%v\n%s", err, &shown)
		}
	}()
	<-time.After(time.Minute)

	c := &whyCommand{clusterFlags: clusterFlags{URL: "http://localhost:8081", Timeout: 10 * time.Second, dial: network.DialContext}, For: 12 * time.Second, JSON: true}
	var out bytes.Buffer
	err := c.run(ctx, &out)
	var report why.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	var exit *exitError
	if found := errors.As(err, &exit) && exit.code == exitFindings; !slices.Contains(want, report.Cause) || found != (report.Severity != why.Fine) {
		t.Errorf("the server says %s, want %s (%v):\n%s", report.Cause, want, err, &out)
	}

	o, err := c.observer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	for range 4 {
		if err := o.job.Look(ctx); err != nil {
			t.Fatal(err)
		}
		<-time.After(c.For)
	}
	if d := o.diagnose(); !slices.Contains(want, d.Answer().Code) {
		t.Errorf("a stranger says %s, want %s:\n%s", d.Answer().Code, want, d)
	}
}
