package rest_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/lowwater/lowwater/internal/graph"
	"github.com/lowwater/lowwater/internal/rest"
	"github.com/lowwater/lowwater/internal/rest/observe"
	"github.com/lowwater/lowwater/status"
)

func description(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestOpenAPIIsComplete: what is described is served, and the other way round.
func TestOpenAPIIsComplete(t *testing.T) {
	server, _ := listen(t, rest.Config{})
	var described, served []string
	for path, item := range description(t)["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, p := range server.Patterns() {
		served = append(served, strings.ReplaceAll(p, "...}", "}"))
	}
	slices.Sort(described)
	slices.Sort(served)
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("(-served +described):\n%s", diff)
	}
	got, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, base := listen(t, rest.Config{})
	if a := request(t, "GET", base+"/lowwater/openapi.yaml", ""); a.text != string(got) || a.header.Get("Content-Type") != "application/yaml" {
		t.Error("/lowwater/openapi.yaml is not docs/openapi.yaml")
	}
}

// schema checks a value against a schema; it knows what openapi.yaml uses.
type schema struct{ components map[string]any }

func (s schema) check(path string, rule map[string]any, v any) (problems []string) {
	fail := func(format string, args ...any) {
		problems = append(problems, path+": "+fmt.Sprintf(format, args...))
	}
	for key, want := range rule {
		switch key {
		case "$ref":
			name := strings.TrimPrefix(want.(string), "#/components/schemas/")
			referred, ok := s.components[name].(map[string]any)
			if !ok {
				fail("no schema %s", name)
				continue
			}
			problems = append(problems, s.check(path, referred, v)...)
		case "oneOf":
			matches := 0
			for _, one := range want.([]any) {
				if len(s.check(path, one.(map[string]any), v)) == 0 {
					matches++
				}
			}
			if matches != 1 {
				fail("%v matches %d of the alternatives", v, matches)
			}
		case "type":
			kinds, ok := want.([]any)
			if !ok {
				kinds = []any{want}
			}
			if !slices.ContainsFunc(kinds, func(kind any) bool { return isKind(kind.(string), v) }) {
				fail("%v is not of type %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				fail("%v is none of %v", v, want)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(want.(string)).MatchString(text) {
				fail("%q does not match %s", text, want)
			}
		case "minimum":
			if n, ok := v.(float64); ok && n < float64(want.(int)) {
				fail("%v is less than %v", n, want)
			}
		case "maximum":
			if n, ok := v.(float64); ok && n > float64(want.(int)) {
				fail("%v is more than %v", n, want)
			}
		case "required":
			if m, ok := v.(map[string]any); ok {
				for _, name := range want.([]any) {
					if _, ok := m[name.(string)]; !ok {
						fail("%v is missing", name)
					}
				}
			}
		case "properties":
			if m, ok := v.(map[string]any); ok {
				for name, below := range want.(map[string]any) {
					if field, ok := m[name]; ok {
						problems = append(problems, s.check(path+"."+name, below.(map[string]any), field)...)
					}
				}
			}
		case "additionalProperties":
			known, _ := rule["properties"].(map[string]any)
			if m, ok := v.(map[string]any); ok && want == false {
				for _, name := range slices.Sorted(maps.Keys(m)) {
					if _, ok := known[name]; !ok {
						fail("%s is not described", name)
					}
				}
			}
		case "items":
			if list, ok := v.([]any); ok {
				for i, element := range list {
					problems = append(problems, s.check(fmt.Sprintf("%s[%d]", path, i), want.(map[string]any), element)...)
				}
			}
		case "description":
		default:
			fail("the schema uses %q, which this test does not know", key)
		}
	}
	return problems
}

func isKind(kind string, v any) bool {
	switch v := v.(type) {
	case nil:
		return kind == "null"
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	default:
		return kind == "object"
	}
}

// TestAnswersMatchOpenAPI asks for everything that can be read, of a job that runs and of
// others with all there can be, and compares with the description.
func TestAnswersMatchOpenAPI(t *testing.T) {
	doc := description(t)
	check := schema{doc["components"].(map[string]any)["schemas"].(map[string]any)}
	base, job := countingJob(t)
	await(t, "second sample", func() bool {
		h := request(t, "GET", base+"/lowwater/jobs/"+firstJob(t, base)+"/history", "")
		return len(field(t, h.body, "series", 0, "points").([]any)) >= 2
	})
	withCheckpoints, failed := newFakeJob(status.Running), newFakeJob(status.Failed)
	withCheckpoints.checkpoints = fakeCheckpoints{}
	withCheckpoints.plan.Warnings = []graph.Warning{{Code: "result-unused", Operator: "count", Where: "main.go:7", Message: "Nothing reads it.", Fixes: []string{"read it"}}}
	fakeBase, ids := serveFake(t, withCheckpoints, failed)
	tm := field(t, request(t, "GET", base+"/taskmanagers", "").body, "taskmanagers", 0, "id").(string)
	places := map[string]string{"vid": observe.OperatorID("orders"), "subtask": "0", "attempt": "0", "tm": tm, "cid": "1", "what": "overview"}
	checked := 0
	for path, item := range doc["paths"].(map[string]any) {
		get, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok || strings.Contains(path, "{rid}") {
			continue // operations are in TestContract
		}
		for _, asked := range []struct{ base, jid string }{{base, firstJob(t, base)}, {fakeBase, ids[0]}, {fakeBase, ids[1]}} {
			if strings.Contains(path, "{tm}") && asked.base != base || strings.Contains(path, "checkpoints") && asked.jid != ids[0] ||
				strings.HasSuffix(path, "/why") && asked.jid == ids[0] { // its graph is not known
				continue
			}
			places["jid"] = asked.jid
			for code, response := range get["responses"].(map[string]any) {
				content, ok := response.(map[string]any)["content"].(map[string]any)
				if !ok {
					continue
				}
				answer, ok := content["application/json"].(map[string]any)
				if !ok {
					continue
				}
				got := request(t, "GET", asked.base+fill(path, places), "")
				if fmt.Sprint(got.status) != code {
					t.Errorf("%s: status %d, want %s: %s", path, got.status, code, got.text)
					continue
				}
				checked++
				if problems := check.check("", answer["schema"].(map[string]any), got.body); len(problems) > 0 {
					t.Errorf("%s:\n%s", path, strings.Join(problems, "\n"))
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d answers were checked", checked)
	}
	job.Stop()
	if err := job.Wait(); err != nil {
		t.Fatal(err)
	}
	await(t, "end", func() bool {
		g := request(t, "GET", base+"/lowwater/jobs/"+firstJob(t, base)+"/graph", "").body
		return field(t, g, "state") == "FINISHED" && field(t, g, "holder") == nil
	})
}

func firstJob(t *testing.T, base string) string {
	t.Helper()
	return field(t, request(t, "GET", base+"/jobs", "").body, "jobs", 0, "id").(string)
}
