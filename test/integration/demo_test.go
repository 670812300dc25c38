//go:build integration

package integration

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// demoTopics returns the topics of demos that are on the broker.
func demoTopics(t *testing.T) []string {
	t.Helper()
	topics, err := kadm.NewClient(newClient(t)).ListTopics(opContext(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, "lowwater-demo-") {
			names = append(names, name)
		}
	}
	return names
}

// wantNoDemoTopics waits until the broker has forgotten the topics that demos have
// removed.
func wantNoDemoTopics(t *testing.T, before int) {
	t.Helper()
	poll(t, "removal of the demo's topics", func() bool { return len(demoTopics(t)) == before })
}

// TestDemo: every scenario keeps its promises on a real Kafka, and leaves nothing there.
func TestDemo(t *testing.T) {
	before := len(demoTopics(t))
	binary := build(t, "cmd/lowwater")
	t.Run("scenarios", func(t *testing.T) {
		for _, scenario := range []string{"quiet-partition", "over-parallel", "union", "strategy-after-source", "processing-time"} {
			t.Run(scenario, func(t *testing.T) {
				t.Parallel()
				// Acts play in real time: a machine that is busy for seconds may miss a promise
				// once.
				for attempt := 1; ; attempt++ {
					p := start(t, binary, "demo", scenario, "--act-time=1s", "--brokers", strings.Join(brokers(t), ","))
					code, stdout, stderr := p.end(t)
					if code == 0 && len(stderr) == 0 && strings.HasSuffix(stdout[len(stdout)-1], "acts, all as promised.") {
						return
					}
					if attempt == 2 {
						t.Fatalf("exit code %d, stderr %q", code, stderr)
					}
					t.Logf("attempt %d: exit code %d, stderr %q", attempt, code, stderr)
				}
			})
		}
	})
	wantNoDemoTopics(t, before)
}

// TestDemoInterrupted: Ctrl-C in the middle is an error, and removes the topics too.
func TestDemoInterrupted(t *testing.T) {
	before := len(demoTopics(t))
	p := start(t, build(t, "cmd/lowwater"), "demo", "--brokers", strings.Join(brokers(t), ","))
	p.await(t, "second act", func(stdout []string) bool {
		return slices.ContainsFunc(stdout, func(line string) bool { return strings.HasPrefix(line, "Act 2.") })
	})
	code, _, stderr := p.stop(t, os.Interrupt)
	if code != 1 || len(stderr) != 1 || !strings.Contains(stderr[0], "interrupt") {
		t.Errorf("exit code %d, stderr %q, want 1 and a line that says interrupt", code, stderr)
	}
	wantNoDemoTopics(t, before)
}
