package graph

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowwater/lowwater/internal/exchange"
)

var rewrite = flag.Bool("rewrite", false, "write the plans as they are now into testdata")

// TestPlans builds the graphs in testdata and compares their plans and warnings,
// or the error, with what the files say. A file is a list of cases:
//
//	== name of the case
//	environment parallelism=4 [max=128]
//	source <name> splits=3 [bounded] [watermarks=none|idle] [<setting> ...]
//	operator <name> from=<name>[.<side output>][:<partitioning>][,...] [event-time] [<setting> ...]
//	sink <name> from=... [<setting> ...]
//	--
//	the result, which -rewrite writes
//
// Settings are parallelism=, max=, uid=, where=, single and unchained.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			header, rest, _ := strings.Cut(string(data), "== ")
			out := header
			for _, text := range strings.Split(rest, "\n== ") {
				name, text, _ := strings.Cut(text, "\n")
				input, want, ok := strings.Cut(text, "--\n")
				if !ok {
					t.Fatalf("case %q has no line --", name)
				}
				got := planOf(t, input)
				out += "== " + name + "\n" + input + "--\n" + got + "\n"
				if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" && !*rewrite {
					t.Errorf("%s (-want +got; go test -rewrite accepts it):\n%s", name, diff)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(strings.TrimSuffix(out, "\n")), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// planOf builds one graph and describes what becomes of it.
func planOf(t *testing.T, input string) string {
	t.Helper()
	g := &Graph{Name: "test"}
	nodes := map[string]*Node{}
	for line := range strings.Lines(input) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if fields[0] == "environment" {
			s := parseSettings(t, fields[1:])
			g.Parallelism, g.MaxParallelism = s.number("parallelism", 1), s.number("max", 0)
			continue
		}
		name := fields[1]
		n := parseNode(t, fields[0], name, parseSettings(t, fields[2:]), g, nodes)
		nodes[name] = n
	}
	plan, err := g.Plan()
	if err != nil {
		return "error: " + strings.ReplaceAll(err.Error(), "\n", "\nerror: ") + "\n"
	}
	return describe(plan, g.Check())
}

type settings struct {
	t      *testing.T
	values map[string]string
}

func parseSettings(t *testing.T, fields []string) settings {
	s := settings{t, map[string]string{}}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		s.values[key] = value
	}
	return s
}

func (s settings) has(key string) bool { _, ok := s.values[key]; return ok }

func (s settings) number(key string, missing int) int {
	text, ok := s.values[key]
	if !ok {
		return missing
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func parseNode(t *testing.T, kind, name string, s settings, g *Graph, nodes map[string]*Node) *Node {
	t.Helper()
	n := &Node{
		// The same operator may be there twice, as map#1 and map#2.
		Name:            strings.SplitN(name, "#", 2)[0],
		UID:             s.values["uid"],
		Where:           s.values["where"],
		DisableChaining: s.has("unchained"),
		EventTime:       s.has("event-time"),
		MaxParallelism:  s.number("max", 0),
		Single:          s.has("single"),
		WantsConsumer:   kind != "sink",
	}
	if s.has("parallelism") {
		n.SetParallelism(s.number("parallelism", 0))
	}
	if kind == "source" {
		n.Source = &SourceInfo{Bounded: s.has("bounded"), Splits: s.number("splits", -1)}
	}
	if kind == "source" || s.has("watermarks") {
		n.Watermarks = &WatermarkInfo{None: s.values["watermarks"] == "none", Idleness: s.values["watermarks"] == "idle"}
	}
	g.Add(n)
	if kind == "source" {
		return n
	}
	for _, from := range strings.Split(s.values["from"], ",") {
		from, partitioning, _ := strings.Cut(from, ":")
		from, side, _ := strings.Cut(from, ".")
		if nodes[from] == nil {
			t.Fatalf("%s comes from %q, which is not there", name, from)
		}
		g.Connect(&Edge{
			From: nodes[from], Output: side, To: n, Partitioning: parsePartitioning(t, partitioning),
			NewWriter: func(Partitioning, int) exchange.WriterFactory { return nil },
		})
	}
	return n
}

func parsePartitioning(t *testing.T, name string) Partitioning {
	for p := Auto; p <= Hash; p++ {
		if name == "" || strings.EqualFold(name, p.String()) {
			return p
		}
	}
	t.Fatalf("unknown partitioning %q", name)
	return Auto
}

// describe writes a plan as text: a line for each vertex, behind it what leaves it.
func describe(p *Plan, warnings []Warning) string {
	var out strings.Builder
	for _, v := range p.Vertices {
		_, _ = fmt.Fprintf(&out, "%d: %s, parallelism %d of %d\n", v.ID, v.Name, v.Parallelism, v.Head().MaxParallelism)
		for _, e := range v.Outputs {
			from := e.From.Name
			if e.Output != "" {
				from += "." + e.Output
			}
			_, _ = fmt.Fprintf(&out, "   %s %v to %d\n", from, e.Partitioning, e.ToVertex.ID)
		}
	}
	for _, w := range warnings {
		_, _ = fmt.Fprintf(&out, "warning: %v\n", w)
	}
	return out.String()
}

// TestTargets checks which subtasks each partitioning connects.
func TestTargets(t *testing.T) {
	to := &Vertex{Parallelism: 3}
	tests := []struct {
		partitioning    Partitioning
		sender          int
		wantFirst, want int
	}{
		{Forward, 0, 0, 1},
		{Forward, 2, 2, 1},
		{Rebalance, 2, 0, 3},
		{Broadcast, 1, 0, 3},
		{Hash, 0, 0, 3},
	}
	for _, tt := range tests {
		e := &NetworkEdge{Edge: &Edge{Partitioning: tt.partitioning}, ToVertex: to}
		if first, n := e.Targets(tt.sender); first != tt.wantFirst || n != tt.want {
			t.Errorf("%v from %d: %d subtasks from %d on, want %d from %d on", tt.partitioning, tt.sender, n, first, tt.want, tt.wantFirst)
		}
	}
}
