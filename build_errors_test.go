package lowwater_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater"
	"github.com/lowwater/lowwater/connector"
	"github.com/lowwater/lowwater/datagen"
	"github.com/lowwater/lowwater/eventtime"
	"github.com/lowwater/lowwater/window"
)

// here returns file:line of its caller, as errors write it.
func here() string {
	_, file, line, _ := runtime.Caller(1)
	parts := strings.Split(file, "/")
	return fmt.Sprintf("%s:%d", strings.Join(parts[len(parts)-2:], "/"), line)
}

// placeOf returns a pattern for file:line of a function's only statement, which gofmt
// puts on the function's first line or on the next.
func placeOf(f func(*stream, *windows)) string {
	pc := reflect.ValueOf(f).Pointer()
	file, line := runtime.FuncForPC(pc).FileLine(pc)
	return fmt.Sprintf(`%s:(%d|%d)\b`, regexp.QuoteMeta(filepath.Base(file)), line, line+1)
}

type (
	stream  = lowwater.DataStream[event]
	windows = lowwater.WindowedStream[string, event]
)

// first is a function to reduce with.
func first(a, _ event) event { return a }

// TestBuildErrors makes one mistake in each case: the error must say where, what and what
// would be right.
func TestBuildErrors(t *testing.T) {
	second := window.Tumbling(time.Second)
	none := lowwater.OutputTag[event]{}
	negative := eventtime.ForBoundedOutOfOrderness[event](-time.Second)
	tests := []struct {
		name    string
		mistake func(s *stream, w *windows)
		want    []string
	}{
		{"map", func(s *stream, _ *windows) { s.Map[int](nil) }, []string{"Map: the function is nil"}},
		{"filter", func(s *stream, _ *windows) { s.Filter(nil) }, []string{"Filter: the function is nil"}},
		{"flat map", func(s *stream, _ *windows) { s.FlatMap[int](nil) }, []string{"FlatMap: the function is nil"}},
		{"process", func(s *stream, _ *windows) { s.Process[int](nil) }, []string{"Process: the function is nil"}},
		{"key by", func(s *stream, _ *windows) { s.KeyBy[int](nil) }, []string{"KeyBy: the function is nil"}},
		{"sink function", func(s *stream, _ *windows) { s.SinkFunc(nil) }, []string{"SinkFunc: the function is nil"}},
		{"sink", func(s *stream, _ *windows) { s.SinkTo(nil) }, []string{"SinkTo: the sink is nil"}},
		{"invalid sink", func(s *stream, _ *windows) { s.SinkTo(invalidSink{}) }, []string{"SinkTo: no topic"}},
		{"print", func(s *stream, _ *windows) { s.PrintTo(nil) }, []string{"PrintTo: the writer is nil"}},

		{"pointer key", func(s *stream, _ *windows) { s.KeyBy(func(e event) *event { return &e }) }, []string{"KeyBy", "*lowwater_test.event", "use the value it points to"}},
		{"interface key", func(s *stream, _ *windows) { s.KeyBy(func(e event) error { return nil }) }, []string{"KeyBy", "error cannot be a key type"}},
		{"partitioned before key by", func(s *stream, _ *windows) { s.Rebalance().KeyBy(keyOf) }, []string{"KeyBy: REBALANCE has no effect before KeyBy"}},
		{"partitioned before window all", func(s *stream, _ *windows) { s.Broadcast().WindowAll(second) }, []string{"WindowAll: BROADCAST has no effect before WindowAll"}},
		{"partitioned before union", func(s *stream, _ *windows) { s.Union(s.Forward()) }, []string{"Union: FORWARD has no effect before Union", "apply it to the union"}},
		{"nil in a union", func(s *stream, _ *windows) { s.Union(nil) }, []string{"Union: a stream is nil"}},
		{"strange stream in a union", func(s *stream, _ *windows) { s.Union(from(newEnv(), splitsOf[event](1), bounded(0))) }, []string{"Union: the streams belong to different environments"}},

		{"no assigner", func(s *stream, _ *windows) { s.KeyBy(keyOf).Window(nil).Reduce(first) }, []string{"Reduce: no assigner: the one given to Window or WindowBy is nil"}},
		{"no window size", func(s *stream, _ *windows) { s.WindowAll(window.Tumbling(0)).Reduce(first) }, []string{"Reduce: window.Tumbling: size 0s: must be at least 1ms"}},
		{"broken window size", func(s *stream, _ *windows) { s.WindowAll(window.Tumbling(1500 * time.Microsecond)).Reduce(first) }, []string{"size 1.5ms: must be a whole number of milliseconds"}},
		{"window offset", func(s *stream, _ *windows) { s.WindowAll(second.Offset(time.Second)).Reduce(first) }, []string{"offset 1s: must lie between -1s and 1s"}},
		{"no slide", func(s *stream, _ *windows) { s.WindowAll(window.Sliding(time.Second, 0)).Reduce(first) }, []string{"window.Sliding: slide 0s: must be at least 1ms"}},
		{"no gap", func(s *stream, _ *windows) { s.WindowAll(window.Session(-time.Second)).Reduce(first) }, []string{"window.Session: gap -1s: must be at least 1ms"}},
		{"negative lateness", func(_ *stream, w *windows) { w.AllowedLateness(-time.Second).Reduce(first) }, []string{"Reduce: AllowedLateness(-1s): must not be negative"}},
		{"broken lateness", func(_ *stream, w *windows) { w.AllowedLateness(1).Reduce(first) }, []string{"AllowedLateness(1ns): must be whole milliseconds"}},
		{"lateness of a join", func(s *stream, _ *windows) {
			s.KeyBy(keyOf).Join(s.KeyBy(keyOf)).Window(second).AllowedLateness(-time.Second).Apply(first)
		}, []string{"Join: AllowedLateness(-1s): must not be negative"}},
		{"windows of a join", func(s *stream, _ *windows) { s.KeyBy(keyOf).Join(s.KeyBy(keyOf)).Window(nil).Apply(first) }, []string{"Join: no assigner"}},
		{"late output without tag", func(_ *stream, w *windows) { w.SideOutputLate(none) }, []string{"SideOutputLate: the output tag has no id", "NewOutputTag"}},
		{"reduce", func(_ *stream, w *windows) { w.Reduce[event](nil) }, []string{"Reduce: the function is nil"}},
		{"reduce of another type", func(_ *stream, w *windows) { w.Reduce(func(a, b int) int { return a + b }) }, []string{"Reduce: the function combines int, but the stream's records are lowwater_test.event"}},
		{"aggregate", func(_ *stream, w *windows) { w.Aggregate[int, int](nil) }, []string{"Aggregate: the aggregator is nil"}},
		{"process windows", func(_ *stream, w *windows) { w.Process[int](nil) }, []string{"Process: the function is nil"}},
		{"aggregate and process", func(_ *stream, w *windows) { w.AggregateProcess[int64, int64, int](lowwater.Count[event](), nil) }, []string{"AggregateProcess: the aggregator or the function is nil"}},

		{"negative bound", func(s *stream, _ *windows) { s.AssignTimestampsAndWatermarks(negative) }, []string{"AssignTimestampsAndWatermarks: eventtime.ForBoundedOutOfOrderness(-1s): the bound must be 0 or more"}},
		{"no strategy", func(s *stream, _ *windows) { s.AssignTimestampsAndWatermarks(eventtime.WatermarkStrategy[event]{}) }, []string{"the zero value is not a strategy", "NoWatermarks"}},
		{"idleness of nothing", func(s *stream, _ *windows) { s.AssignTimestampsAndWatermarks(bounded(0).WithIdleness(0)) }, []string{"WithIdleness(0s): the timeout must be more than 0"}},

		{"side output without tag", func(s *stream, _ *windows) { s.SideOutput(none) }, []string{"SideOutput: the output tag has no id"}},
		{"side output of a union", func(s *stream, _ *windows) { s.Union(s).SideOutput(lowwater.DeadLetters) }, []string{"SideOutput: applies to an operator"}},
		{"name", func(s *stream, _ *windows) { s.Name("") }, []string{"Name: must not be empty"}},
		{"name of a union", func(s *stream, _ *windows) { s.Union(s).Name("x") }, []string{"Name: applies to an operator, but this stream is a union, a side output or a partitioning of others"}},
		{"uid", func(s *stream, _ *windows) { s.UID("") }, []string{"UID: must not be empty"}},
		{"uid of a partitioning", func(s *stream, _ *windows) { s.Rebalance().UID("x") }, []string{"UID: applies to an operator"}},
		{"parallelism of a partitioning", func(s *stream, _ *windows) { s.Rebalance().Parallelism(2) }, []string{"Parallelism: applies to an operator"}},
		{"chaining of a partitioning", func(s *stream, _ *windows) { s.Rebalance().DisableChaining() }, []string{"DisableChaining: applies to an operator"}},
		{"no parallelism", func(s *stream, _ *windows) { s.Filter(func(event) bool { return true }).Parallelism(0).Print() }, []string{`operator "Filter"`, "parallelism 0: must be from 1 to 32768"}},
		{"no parallelism of a sink", func(s *stream, _ *windows) { s.Print().Parallelism(-3) }, []string{`operator "Print"`, "parallelism -3: must be from 1 to 32768"}},
		{"parallel window over all", func(s *stream, _ *windows) {
			s.WindowAll(second).Aggregate(lowwater.Count[event]()).Parallelism(2).Print()
		}, []string{"parallelism 2: must be 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := newEnv()
			s := from(env, splitsOf[event](1), bounded(0))
			tt.mistake(s, s.KeyBy(keyOf).Window(second))
			err := wantBuildError(t, env, tt.want...)
			if _, rest, _ := strings.Cut(err.Error(), ": "); !regexp.MustCompile(placeOf(tt.mistake)).MatchString(rest) {
				t.Errorf("the error does not say %s:\n%v", placeOf(tt.mistake), err)
			}
		})
	}
}

// wantBuildError runs a job that must be refused for one reason.
func wantBuildError(t *testing.T, env *lowwater.Environment, parts ...string) error {
	t.Helper()
	err := env.Execute(t.Context(), "wrong")
	if err == nil {
		t.Fatalf("the job ran, want an error with %q", parts)
	}
	for _, part := range append(parts, `job "wrong"`) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q:\n%v", part, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one error for one mistake:\n%v", err)
	}
	return err
}

type invalidSink struct{ connector.Sink[event] }

func (invalidSink) Validate() error { return errors.New("no topic") }

// TestEnvironmentErrors: mistakes that come before the first operator.
func TestEnvironmentErrors(t *testing.T) {
	tests := []struct {
		option lowwater.Option
		want   string
	}{
		{lowwater.WithParallelism(0), "WithParallelism(0): must be from 1 to 32768"},
		{lowwater.WithParallelism(32769), "WithParallelism(32769): must be from 1 to 32768"},
		{lowwater.WithMaxParallelism(-1), "WithMaxParallelism(-1): must be from 1 to 32768"},
		{lowwater.WithAutoWatermarkInterval(-time.Second), "WithAutoWatermarkInterval(-1s): must be 0 or whole milliseconds"},
		{lowwater.WithAutoWatermarkInterval(time.Microsecond), "WithAutoWatermarkInterval(1µs): must be 0 or whole milliseconds"},
		{lowwater.WithAlignmentSamples(-1), "WithAlignmentSamples(-1): must be 0 or more"},
		{lowwater.WithStopTimeout(0), "WithStopTimeout(0s): must be positive"},
		{lowwater.WithLogger(nil), "WithLogger: the logger is nil"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			env, where := lowwater.NewEnvironment(tt.option), here()
			lowwater.FromSlice(env, upTo(3)).PrintTo(io.Discard)
			wantBuildError(t, env, tt.want, where)
		})
	}
}

// TestSourceErrors: mistakes in sources name the source as well.
func TestSourceErrors(t *testing.T) {
	good := bounded(0)
	tests := []struct {
		name    string
		mistake func(*lowwater.Environment) (*stream, string)
		want    []string
	}{
		{"nil", func(env *lowwater.Environment) (*stream, string) {
			return lowwater.FromSource[event](env, nil, good, "orders"), here()
		}, []string{`source "orders": the source is nil`}},
		{"no name", func(env *lowwater.Environment) (*stream, string) {
			return lowwater.FromSource(env, splitsOf[event](1), good, ""), here()
		}, []string{"FromSource: the name must not be empty"}},
		{"negative bound", func(env *lowwater.Environment) (*stream, string) {
			return lowwater.FromSource(env, splitsOf[event](1), eventtime.ForBoundedOutOfOrderness[event](-1), "orders"), here()
		}, []string{`source "orders": eventtime.ForBoundedOutOfOrderness(-1ns): the bound must be 0 or more`}},
		{"option of the source", func(env *lowwater.Environment) (*stream, string) {
			return lowwater.FromSource(env, datagen.NewSource(func(int64) event { return event{} }, datagen.Splits(0)), good, "orders"), here()
		}, []string{`source "orders": datagen.Splits(0): must be from 1 to`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := newEnv()
			s, where := tt.mistake(env)
			s.PrintTo(io.Discard)
			wantBuildError(t, env, append(tt.want, where)...)
		})
	}
}

// TestEveryMistakeIsReported: all of them at once, in the order of the calls.
func TestEveryMistakeIsReported(t *testing.T) {
	env := newEnv(lowwater.WithStopTimeout(-1))
	s := lowwater.FromSlice(env, upTo(3)).Filter(nil).UID("same")
	s.Map(func(v int) int { return v }).UID("same").WindowAll(window.Tumbling(0)).Aggregate(lowwater.Count[int]()).Print()
	err := env.Execute(t.Context(), "wrong")
	if err == nil {
		t.Fatal("the job ran")
	}
	rest := err.Error()
	for _, part := range []string{"WithStopTimeout", "Filter: the function is nil", "size 0s", `uid "same"`} {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("the error does not say %q, or not in this order:\n%v", part, err)
		}
		rest = after
	}
}

func TestDuplicateUIDNamesBothCalls(t *testing.T) {
	env := newEnv()
	s := lowwater.FromSlice(env, upTo(3))
	s.Map(func(v int) int { return v }).UID("totals").PrintTo(io.Discard)
	first := here()
	s.Filter(func(int) bool { return true }).PrintTo(io.Discard).UID("totals")
	second := here()
	line := func(where string, back int) string {
		file, line, _ := strings.Cut(where, ":")
		var n int
		if _, err := fmt.Sscan(line, &n); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s:%d", file, n-back)
	}
	wantBuildError(t, env, `uid "totals" is already used by operator "Map"`, line(first, 1), `operator "Print"`, line(second, 1), "must be unique within a job")
}

func TestForwardMismatchIsAnErrorOfThePlan(t *testing.T) {
	env := newEnv()
	lowwater.FromSlice(env, upTo(3)).Forward().Map(func(v int) int { return v }).Parallelism(2).PrintTo(io.Discard)
	where := strings.Split(here(), ":")[0]
	wantBuildError(t, env, where, `operator "Map"`, `forward from "Collection": its parallelism is 1, this operator's 2`, "use Rebalance, or set one of them")
}

func TestEmptyJob(t *testing.T) {
	where := here()
	wantBuildError(t, newEnv(), strings.Split(where, ":")[0], "the job has no operators: add a source and a sink before Execute")
}

func TestEnvironmentRunsOnce(t *testing.T) {
	env := newEnv()
	lowwater.FromSlice(env, upTo(3)).PrintTo(io.Discard)
	execute(t, env)
	err, where := env.Execute(t.Context(), "again"), here()
	if err == nil {
		t.Fatal("the environment ran twice")
	}
	for _, part := range []string{where, `job "again"`, "has run already", "NewEnvironment"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
}

// TestRefusedEnvironmentStaysRefused: a second try with the same mistakes gets the same
// answer, not that the environment has run.
func TestRefusedEnvironmentStaysRefused(t *testing.T) {
	env := newEnv()
	lowwater.FromSlice(env, upTo(3)).Filter(nil).PrintTo(io.Discard)
	wantBuildError(t, env, "Filter: the function is nil")
	wantBuildError(t, env, "Filter: the function is nil")
}
