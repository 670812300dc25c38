//go:build lowwater_s3 && lowwater_gcs && lowwater_azure

package objectstores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// numbers is how many numbers the last run of a job sums up, more than the runs before get to.
const numbers, keys = 200_000, 64

// job sums numbers up by key; it says the sums when its input ends.
type job struct {
	*lowwater.Job
	log lockedBuffer
	// fail has it fail at the next number.
	fail atomic.Bool

	mu   sync.Mutex
	sums map[int64]int64
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var (
	endless = []datagen.Option{datagen.Splits(4), datagen.RatePerSecond(2000)}
	bounded = []datagen.Option{datagen.Splits(4), datagen.Count(numbers)}
)

func start(t *testing.T, address string, input []datagen.Option, options ...lowwater.CheckpointOption) (*job, error) {
	t.Helper()
	j := &job{sums: map[int64]int64{}}
	env := lowwater.NewEnvironment(
		lowwater.WithParallelism(4),
		lowwater.WithLogger(slog.New(slog.NewTextHandler(&j.log, nil))),
		lowwater.WithCheckpoints(address, 50*time.Millisecond, options...),
		lowwater.WithRestart(lowwater.FixedDelay{Attempts: 5, Delay: 10 * time.Millisecond}),
	)
	source := datagen.NewSource(func(n int64) int64 { return n }, input...)
	lowwater.FromSource(env, source, eventtime.NoWatermarks[int64](), "numbers").UID("numbers").
		Process(func(_ *lowwater.ProcessContext, n int64, out *lowwater.Collector[int64]) error {
			if j.fail.CompareAndSwap(true, false) {
				return errors.New("made to fail")
			}
			out.Emit(n)
			return nil
		}).
		KeyBy(func(n int64) int64 { return n % keys }).
		Window(window.GlobalEndOfStream()).
		Aggregate(window.Sum(func(n int64) int64 { return n })).UID("sums").
		SinkFunc(func(_ context.Context, p window.Pane[int64, int64]) error {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.sums[p.Key] += p.Value
			return nil
		})
	var err error
	j.Job, err = env.Start(context.Background(), "sums")
	if err == nil {
		t.Cleanup(func() {
			j.Cancel()
			_ = j.Wait() // what a test wants of it, it has looked at
		})
	}
	return j, err
}

func mustStart(t *testing.T, address string, input []datagen.Option, options ...lowwater.CheckpointOption) *job {
	t.Helper()
	j, err := start(t, address, input, options...)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// checkSums waits for the end of a bounded job.
func (j *job) checkSums(t *testing.T) {
	t.Helper()
	if err := j.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &j.log)
	}
	want := map[int64]int64{}
	for n := range int64(numbers) {
		want[n%keys] += n
	}
	for key, sum := range want {
		if j.sums[key] != sum {
			t.Errorf("key %d has the sum %d instead of %d", key, j.sums[key], sum)
		}
	}
}

// completed returns how many checkpoints have been.
func (j *job) completed() int64 {
	c, _ := j.Checkpoints()
	return int64(c.Completed)
}

// waitFor waits until a condition is true, for a minute at most.
func waitFor(t *testing.T, j *job, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("in vain for %s\n%s", what, &j.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (j *job) waitForMore(t *testing.T) {
	t.Helper()
	before := j.completed()
	waitFor(t, j, "checkpoints", func() bool { return j.completed() > before+1 })
}

func directory(t *testing.T) string {
	return fmt.Sprintf("%s-%x", strings.ReplaceAll(t.Name(), "/", "-"), rand.Uint64())
}

// TestJob: a job fails and is restarted, is stopped with a savepoint elsewhere, goes on
// from there, is cancelled, goes on from its latest checkpoint, and has counted every
// number once. What it has stored is whole.
func TestJob(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		dir := directory(t)
		j := mustStart(t, s.address(dir), endless)
		j.waitForMore(t)
		j.fail.Store(true)
		waitFor(t, j, "the restart", func() bool { return strings.Contains(j.log.String(), "msg=restoring") })
		j.waitForMore(t)
		path, err := j.StopWithSavepoint(t.Context(), s.address(dir+"-elsewhere"), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(path, s.bucket+"/"+dir+"-elsewhere/savepoint-") {
			t.Errorf("the savepoint is %s", path)
		}
		inspect(t, path+s.options)

		j = mustStart(t, s.address(dir+"-2"), endless, lowwater.ResumeFrom(path+s.options))
		j.waitForMore(t)
		j.Cancel()
		if err := j.Wait(); err != nil {
			t.Error(err)
		}
		if _, err := start(t, s.address(dir+"-2"), endless); err == nil || !strings.Contains(err.Error(), s.bucket+"/"+dir+"-2 holds those of an earlier run") {
			t.Errorf("without a decision: %v", err)
		}
		damageNewest(t, s, dir+"-2")
		j = mustStart(t, s.address(dir+"-2"), bounded, lowwater.ResumeLatest())
		j.checkSums(t)
		if text := j.log.String(); !strings.Contains(text, "a checkpoint is damaged, the one before is used") || !strings.Contains(text, "the checksum is wrong") {
			t.Errorf("the damage is not told:\n%s", text)
		}
		list(t, s.address(dir+"-2"))
	})
}

func openBucket(t *testing.T, s *server, dir string) *blob.Bucket {
	t.Helper()
	b, err := blob.OpenBucket(t.Context(), s.bucket+s.options)
	if err != nil {
		t.Fatal(err)
	}
	b = blob.PrefixedBucket(b, dir+"/")
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// damageNewest flips a bit in a segment of the newest checkpoint.
func damageNewest(t *testing.T, s *server, dir string) {
	t.Helper()
	b := openBucket(t, s, dir)
	newest, name := 0, ""
	objects := b.List(nil)
	for {
		o, err := objects.Next(t.Context())
		if err != nil {
			break
		}
		var id int
		if _, err := fmt.Sscanf(o.Key, "chk-%d/", &id); err == nil && id >= newest && strings.HasSuffix(o.Key, ".seg") {
			newest, name = id, o.Key
		}
	}
	data, err := b.ReadAll(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	data[20] ^= 4
	if err := b.WriteAll(t.Context(), name, data, nil); err != nil {
		t.Fatal(err)
	}
}

// command is bin/lowwater with all object stores.
var command = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "lowwater")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "lowwater")
	build := exec.Command("go", "build", "-tags", tags, "-o", program, "./cmd/lowwater")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
})

func run(t *testing.T, arguments ...string) string {
	t.Helper()
	program, err := command()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		t.Errorf("lowwater %v: %v\n%s", arguments, err, out)
	}
	if strings.Contains(string(out), secret) {
		t.Errorf("a secret is shown:\n%s", out)
	}
	return string(out)
}

func inspect(t *testing.T, address string) {
	t.Helper()
	if out := run(t, "checkpoint", "inspect", "--verify", address); !strings.Contains(out, "uid sums") || !strings.Contains(out, "every byte") {
		t.Errorf("inspect says\n%s", out)
	}
}

func list(t *testing.T, address string) {
	t.Helper()
	if out := run(t, "checkpoint", "list", address); strings.Count(out, "chk-") < 3 {
		t.Errorf("list says\n%s", out)
	}
}

// TestTwoJobs: the job that comes second has the directory, the first one ends and says so.
func TestTwoJobs(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		address := s.address(directory(t))
		first := mustStart(t, address, endless)
		first.waitForMore(t)
		second := mustStart(t, address, bounded, lowwater.ResumeLatest())
		err := first.Wait()
		if err == nil || !strings.Contains(err.Error(), "another run has taken over the checkpoint directory "+s.bucket+"/") || !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", os.Getpid())) {
			t.Errorf("the first one ended with %v", err)
		}
		if text := first.log.String(); strings.Contains(text, "will be restarted") {
			t.Errorf("it was restarted:\n%s", text)
		}
		second.checkSums(t)
	})
}

// TestZombie: a job that is cut off while another takes over publishes nothing when its
// connection comes back.
func TestZombie(t *testing.T) {
	s := servers["s3"]
	address := s.address(directory(t))
	first := mustStart(t, address, endless, lowwater.TolerableCheckpointFailures(1000))
	first.waitForMore(t)
	// It has written everything but its manifest.
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	end := s.disturbed(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/manifest") {
			once.Do(func() { close(held) })
			<-release
		}
		return true
	})
	<-held
	end()
	second := mustStart(t, address, bounded, lowwater.ResumeLatest())
	close(release)
	if err := first.Wait(); err == nil || !strings.Contains(err.Error(), "another run has taken over") {
		t.Errorf("the first one ended with %v", err)
	}
	second.checkSums(t)
}

// TestSlow has a server 20 ms away.
func TestSlow(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		address := s.address(directory(t))
		s.disturbed(t, late(20*time.Millisecond))
		j := mustStart(t, address, endless)
		j.waitForMore(t)
		c, _ := j.Checkpoints()
		for _, h := range c.History[:2] {
			t.Log(h.ID, h.State, "all acknowledged after", h.LastAck.Sub(h.Triggered).Round(time.Millisecond))
		}
	})
}

// TestGone: while the server is gone checkpoints fail and say where, and the job goes on
// when it is back.
func TestGone(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		dir := directory(t)
		j := mustStart(t, s.address(dir), endless, lowwater.TolerableCheckpointFailures(1000), lowwater.CheckpointTimeout(2*time.Second))
		j.waitForMore(t)
		end := s.disturbed(t, gone)
		waitFor(t, j, "a failure", func() bool { return strings.Contains(j.log.String(), "a checkpoint has failed") })
		end()
		j.waitForMore(t)
		text := j.log.String()
		if strings.Contains(text, secret) || strings.Contains(text, azureKey) {
			t.Errorf("the log has secrets:\n%s", text)
		}
		t.Log(text)
	})
}

// TestSilent: a checkpoint whose writes get no answer times out, and the job goes on.
func TestSilent(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		j := mustStart(t, s.address(directory(t)), endless, lowwater.TolerableCheckpointFailures(1000), lowwater.CheckpointTimeout(500*time.Millisecond))
		j.waitForMore(t)
		end := s.disturbed(t, silentWrites)
		waitFor(t, j, "a timeout", func() bool { return strings.Contains(j.log.String(), "not complete after 500ms") })
		end()
		j.waitForMore(t)
	})
}

// TestRefused: a bucket that is not there and credentials that are wrong are found out when
// the job starts.
func TestRefused(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		missing := strings.Replace(s.address("dir"), bucketName, "missing", 1)
		_, err := start(t, missing, endless)
		if err == nil || !strings.Contains(err.Error(), "/missing/dir") && !strings.Contains(err.Error(), "//missing/dir") {
			t.Errorf("a bucket that is not there: %v", err)
		}
		t.Log(err)
		s.disturbed(t, func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`) // as far as it gets
			return false
		})
		_, err = start(t, s.address("dir"), endless)
		if err == nil || !strings.Contains(err.Error(), s.bucket+"/dir") || !strings.Contains(err.Error(), "403") {
			t.Errorf("refused credentials: %v", err)
		}
		t.Log(err)
	})
}
