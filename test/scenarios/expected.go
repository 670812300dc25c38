package scenarios

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
)

// Expected is what must come out, of a diagnosis and of the job.
type Expected struct {
	// DiagnoseAtMillis is when the diagnosis is made.
	DiagnoseAtMillis int64   `json:"diagnose_at_ms"`
	Verdict          Verdict `json:"verdict"`
	// Accept lists causes that are less exact but not wrong, Reject those that must
	// not be named, RejectFix fixes that do not help.
	Accept    []string `json:"accept"`
	Reject    []string `json:"reject"`
	RejectFix []string `json:"reject_fix"`
	// Then is what must be found further, or once the cause is out of the way.
	Then        []Verdict `json:"then"`
	MustMention []string  `json:"must_mention"`
	// Results is nil in Evidence files.
	Results  *Results  `json:"results"`
	AfterFix *AfterFix `json:"after_fix"`
}

// Verdict is a cause, how bad it is, who is to blame, and what to do, best first.
type Verdict struct {
	Cause    string   `json:"cause"`
	Severity string   `json:"severity"`
	Culprit  Culprit  `json:"culprit"`
	Fix      []string `json:"fix"`
}

// Culprit places a cause. What does not matter is empty.
type Culprit struct {
	Source     string   `json:"source"`
	Topic      string   `json:"topic"`
	Partitions []int32  `json:"partitions"`
	Subtasks   []int    `json:"subtasks"`
	Operator   string   `json:"operator"`
	Key        string   `json:"key"`
	Paused     []string `json:"paused"`
	// Facts are the others, mostly numbers, such as "gap_ms". Which there are depends
	// on the cause.
	Facts map[string]jsontext.Value `json:",embed"`
}

// AfterFix is a change of the scenario and what the job then produces.
type AfterFix struct {
	Patch   []Change `json:"patch"`
	Note    string   `json:"note"`
	Results *Results `json:"results"`
}

// Change sets the value at a JSON pointer (RFC 6901).
type Change struct {
	Path  string         `json:"path"`
	Value jsontext.Value `json:"value"`
}

// Results is what a job did by the end of the scenario.
type Results struct {
	Windows   []FiredWindow
	LateTotal int64
	// LateByPartition counts late records by topic and partition.
	LateByPartition map[string]map[int32]int64
	// OpenWindows counts the windows of each operator that have contents and have not
	// fired, each key's for itself; Watermark is what the operator's input had.
	OpenWindows map[string]int64
	Watermark   map[string]Instant
}

// FiredWindow is one result of a window operator.
type FiredWindow struct {
	Operator string
	Key      string
	Start    int64
	End      int64
	Count    int64
	// FiredAtMillis is since the start of the job.
	FiredAtMillis int64
}

func (w FiredWindow) String() string {
	return fmt.Sprintf("%s %s [%d, %d) count %d at %d", w.Operator, w.Key, w.Start, w.End, w.Count, w.FiredAtMillis)
}

// UnmarshalJSONFrom reads the windows by the names of their columns.
func (r *Results) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var in struct {
		Columns         []string                   `json:"windows_columns"`
		Windows         [][]jsontext.Value         `json:"windows"`
		LateTotal       int64                      `json:"late_total"`
		LateByPartition map[string]map[int32]int64 `json:"late_by_partition"`
		OpenWindows     map[string]int64           `json:"open_windows_at_end"`
		Watermark       map[string]Instant         `json:"watermark_at_end"`
	}
	if err := json.UnmarshalDecode(dec, &in); err != nil {
		return err
	}
	*r = Results{
		Windows:         make([]FiredWindow, len(in.Windows)),
		LateTotal:       in.LateTotal,
		LateByPartition: in.LateByPartition,
		OpenWindows:     in.OpenWindows,
		Watermark:       in.Watermark,
	}
	for i, row := range in.Windows {
		w := &r.Windows[i]
		err := readRow(in.Columns, row, map[string]any{
			"operator": &w.Operator, "key": &w.Key, "start": &w.Start, "end": &w.End,
			"count": &w.Count, "fired_at_ms": &w.FiredAtMillis,
		})
		if err != nil {
			return fmt.Errorf("row %d of windows: %w", i, err)
		}
	}
	return nil
}

// readRow decodes the cells of a row into what fields has for their columns.
func readRow(columns []string, row []jsontext.Value, fields map[string]any) error {
	if len(row) != len(columns) {
		return fmt.Errorf("%d cells in %d columns", len(row), len(columns))
	}
	for i, column := range columns {
		into, ok := fields[column]
		if !ok {
			return fmt.Errorf("unknown column %q", column)
		}
		if err := json.Unmarshal(row[i], into); err != nil {
			return fmt.Errorf("column %q: %w", column, err)
		}
	}
	return nil
}
