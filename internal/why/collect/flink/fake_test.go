package flink

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeCluster answers as a JobManager did when it was recorded: metrics are fetched
// lazily, long request lines are refused, unknown metrics left out.
type fakeCluster struct {
	Answers map[string]json.RawMessage
	Metrics map[string]map[string]string

	mu      sync.Mutex
	asked   map[string]int
	token   string
	longest int
	// empty is how often a list of metrics is empty at first.
	empty int
	// busy is a path that there is no time to answer for.
	busy string
}

func loadCluster(t *testing.T, name string) *fakeCluster {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeCluster{asked: map[string]int{}, empty: 1}
	if err := json.Unmarshal(data, f); err != nil {
		t.Fatal(err)
	}
	return f
}

// job is the id of the cluster's job.
func (f *fakeCluster) job() string {
	for path := range f.Answers {
		if id, ok := strings.CutPrefix(path, "/jobs/"); ok && id != "overview" && !strings.Contains(id, "/") {
			return id
		}
	}
	return ""
}

func (f *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := r.Method + " " + r.URL.RequestURI() + " HTTP/1.1"
	f.longest = max(f.longest, len(line))
	fail := func(code int, message string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string][]string{"errors": {message}})
	}
	switch {
	case f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token:
		fail(http.StatusUnauthorized, "who are you?")
	case f.busy != "" && r.URL.Path == f.busy:
		fail(http.StatusServiceUnavailable, "try again")
	case r.Method != http.MethodGet:
		fail(http.StatusNotFound, "Not found: "+r.URL.Path)
	case len(line) > 4096:
		fail(http.StatusNotFound, "Unable to load requested file /bad-request.")
	case f.Metrics[r.URL.Path] != nil:
		f.metrics(w, r)
	case f.Answers[r.URL.Path] != nil:
		_, _ = w.Write(f.Answers[r.URL.Path])
	default:
		fail(http.StatusNotFound, "org.apache.flink.runtime.rest.NotFoundException: Unable to load requested file "+r.URL.Path+".\n\tat somewhere")
	}
}

func (f *fakeCluster) metrics(w http.ResponseWriter, r *http.Request) {
	all := f.Metrics[r.URL.Path]
	f.asked[r.URL.Path]++
	var out []metric
	switch get := r.URL.Query().Get("get"); {
	case get != "":
		for _, id := range strings.Split(get, ",") {
			if v, ok := all[id]; ok {
				out = append(out, metric{id, v})
			}
		}
	case f.asked[r.URL.Path] > f.empty:
		for id := range all {
			out = append(out, metric{ID: id})
		}
		slices.SortFunc(out, func(a, b metric) int { return strings.Compare(a.ID, b.ID) })
	}
	if out == nil {
		out = []metric{}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// serve starts the cluster and returns a client of it.
func (f *fakeCluster) serve(t *testing.T, o Options) *Client {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	o.URL = server.URL
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	c.primeWait = time.Millisecond
	t.Cleanup(c.Close)
	return c
}
