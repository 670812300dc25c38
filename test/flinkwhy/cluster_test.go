//go:build flink

package flinkwhy

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// env returns a variable that run.sh sets.
func env(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is empty: run test/flinkwhy/run.sh", name)
	}
	return value
}

// cluster is a Flink, a Kafka, and topics of this run.
type cluster struct {
	t       *testing.T
	rest    string
	gateway string // empty if there is none
	brokers string
	run     string
	jar     string
	client  *kgo.Client
	admin   *kadm.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, rest: "http://" + env(t, "LOWWATER_TEST_FLINK"), brokers: env(t, "LOWWATER_TEST_BROKERS"), run: strings.ToLower(rand.Text()[:6])}
	if g := os.Getenv("LOWWATER_TEST_GATEWAY"); g != "" {
		c.gateway = "http://" + g
	}
	var err error
	c.client, err = kgo.NewClient(kgo.SeedBrokers(c.brokers), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	c.admin = kadm.NewClient(c.client)
	c.jar = c.upload(c.compile(env(t, "LOWWATER_TEST_FLINK_LIB")))
	return c
}

// compile builds the jobs' jar with the cluster's own classes.
func (c *cluster) compile(lib string) string {
	c.t.Helper()
	dir := c.t.TempDir()
	jar := filepath.Join(dir, "whyjob.jar")
	for _, command := range [][]string{
		{"javac", "-nowarn", "-cp", lib + "/*", "-d", dir + "/classes", "job/WhyJob.java"},
		{"jar", "cfe", jar, "WhyJob", "-C", dir + "/classes", "."},
	} {
		if out, err := exec.CommandContext(c.t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			c.t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	return jar
}

// upload brings the jar to the cluster and returns its id there.
func (c *cluster) upload(jar string) string {
	c.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("jarfile", filepath.Base(jar))
	if err != nil {
		c.t.Fatal(err)
	}
	content, err := os.ReadFile(jar)
	if err != nil {
		c.t.Fatal(err)
	}
	_, _ = part.Write(content) // a Buffer takes everything
	if err := form.Close(); err != nil {
		c.t.Fatal(err)
	}
	var answer struct{ Filename string }
	c.call(http.MethodPost, c.rest+"/jars/upload", form.FormDataContentType(), &body, &answer)
	return filepath.Base(answer.Filename)
}

// submit starts the job with arguments, and has it cancelled at the end.
func (c *cluster) submit(name string, args map[string]string) {
	c.t.Helper()
	list := []string{"--name", name, "--brokers", c.brokers}
	for key, value := range args {
		list = append(list, "--"+key, value)
	}
	body, err := json.Marshal(map[string][]string{"programArgsList": list})
	if err != nil {
		c.t.Fatal(err)
	}
	var answer struct{ JobID string }
	c.call(http.MethodPost, c.rest+"/jars/"+c.jar+"/run", "application/json", bytes.NewReader(body), &answer)
	c.cancelAtEnd(answer.JobID)
}

func (c *cluster) cancelAtEnd(id string) {
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPatch, c.rest+"/jobs/"+id+"?mode=cancel", nil)
		if err == nil {
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				err = resp.Body.Close()
			}
		}
		if err != nil {
			c.t.Errorf("cancelling job %s: %v", id, err)
		}
	})
}

// call asks by HTTP and decodes the answer.
func (c *cluster) call(method, url, contentType string, body io.Reader, into any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		c.t.Fatalf("%s %s: %s, %v\n%.2000s", method, url, resp.Status, err, answer)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		c.t.Fatalf("%s %s: %v\n%.500s", method, url, err, answer)
	}
}

// topic is the name on the broker.
func (c *cluster) topic(name string) string { return "why." + c.run + "." + name }

func (c *cluster) createTopic(name string, partitions int32) {
	c.t.Helper()
	if _, err := c.admin.CreateTopic(c.t.Context(), partitions, 1, nil, c.topic(name)); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := c.admin.DeleteTopic(ctx, c.topic(name)); err != nil {
			c.t.Errorf("deleting topic %s: %v", c.topic(name), err)
		}
	})
}

// send writes a record, as WhyJob reads it. It does not wait.
func (c *cluster) send(topic string, partition int32, time int64, key string) {
	c.client.Produce(context.Background(), &kgo.Record{
		Topic: c.topic(topic), Partition: partition, Key: []byte(key), Value: fmt.Appendf(nil, `{"t":%d,"k":"%s"}`, time, key),
	}, nil)
}

// sql runs statements in a session of the SQL Gateway and returns the id of the job that
// the last one started.
func (c *cluster) sql(statements ...string) {
	c.t.Helper()
	var session struct{ SessionHandle string }
	c.call(http.MethodPost, c.gateway+"/v3/sessions", "application/json", strings.NewReader("{}"), &session)
	at := c.gateway + "/v3/sessions/" + session.SessionHandle
	for _, statement := range statements {
		body, err := json.Marshal(map[string]string{"statement": statement})
		if err != nil {
			c.t.Fatal(err)
		}
		var operation struct{ OperationHandle string }
		c.call(http.MethodPost, at+"/statements", "application/json", bytes.NewReader(body), &operation)
		if id := c.finish(at + "/operations/" + operation.OperationHandle); id != "" {
			c.cancelAtEnd(id)
		}
	}
}

// finish waits for an operation of the SQL Gateway.
func (c *cluster) finish(operation string) (job string) {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		var status struct{ Status string }
		c.call(http.MethodGet, operation+"/status", "", nil, &status)
		switch status.Status {
		case "FINISHED":
			var result struct{ JobID string }
			c.call(http.MethodGet, operation+"/result/0?rowFormat=JSON", "", nil, &result)
			return result.JobID
		case "ERROR", "CANCELED", "TIMEOUT":
			var result struct{}
			c.call(http.MethodGet, operation+"/result/0?rowFormat=JSON", "", nil, &result) // fails with the reason
		}
		<-time.After(200 * time.Millisecond)
	}
	c.t.Fatalf("%s does not finish", operation)
	return ""
}
