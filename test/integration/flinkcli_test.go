//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// flinkCLI runs Flink's own command line, the class that bin/flink starts, against a server.
func flinkCLI(t *testing.T, home string, args ...string) string {
	t.Helper()
	conf := t.TempDir()
	if err := os.WriteFile(filepath.Join(conf, "config.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(opContext(t), "java", append([]string{"-cp", filepath.Join(home, "lib", "*"), "org.apache.flink.client.cli.CliFrontend"}, args...)...)
	cmd.Env = append(os.Environ(), "FLINK_CONF_DIR="+conf)
	out, err := cmd.CombinedOutput() // its exit code is part of what it says
	if err != nil {
		t.Logf("flink %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// TestFlinkCommandLine: Flink's command line, which nobody here wrote, lists, stops and
// cancels a job of ours. It needs the distribution that test/cluster/flink.sh fetches.
func TestFlinkCommandLine(t *testing.T) {
	home := os.Getenv("LOWWATER_TEST_FLINK_HOME")
	if home == "" {
		t.Skip("NOT CHECKED: LOWWATER_TEST_FLINK_HOME is empty: set it to what `test/cluster/flink.sh fetch` has fetched")
	}
	p := start(t, build(t, "cmd/lowwater"), "demo", "--act-time=1s", "--hold", "--rest=127.0.0.1:0", "--brokers", strings.Join(brokers(t), ","))
	p.await(t, "last act", func(stdout []string) bool {
		return strings.Contains(strings.Join(stdout, "\n"), "goes on until you interrupt it")
	})
	var url string
	p.await(t, "address", func(stdout []string) bool {
		url = regexp.MustCompile(`http://[^\s]+`).FindString(strings.Join(stdout, "\n"))
		return url != ""
	})
	addr := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	list := flinkCLI(t, home, "list", "-m", addr)
	running := regexp.MustCompile(`([0-9a-f]{32}) : quiet-partition \(RUNNING\)`).FindStringSubmatch(list)
	if running == nil {
		t.Fatalf("flink list: no running job in\n%s", list)
	}
	if all := flinkCLI(t, home, "list", "-a", "-m", addr); !strings.Contains(all, "quiet-partition (FINISHED)") {
		t.Errorf("flink list -a: the first job is not there:\n%s", all)
	}
	if stop := flinkCLI(t, home, "stop", "-m", addr, "-p", t.TempDir(), running[1]); !strings.Contains(stop, "Checkpointing is not enabled for this job") {
		t.Errorf("flink stop does not say why not:\n%s", stop)
	}
	if cancel := flinkCLI(t, home, "cancel", "-m", addr, running[1]); !strings.Contains(cancel, "Cancelled job "+running[1]) {
		t.Errorf("flink cancel:\n%s", cancel)
	}
	// The demo ends with the job that it holds.
	if code, stdout, stderr := p.end(t); code != 0 || len(stderr) > 0 {
		t.Errorf("the demo: exit code %d, stderr %q\n%s", code, stderr, strings.Join(stdout, "\n"))
	}
}
