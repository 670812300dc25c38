package lowwater

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Plan returns the job as JSON, before it starts: operators, how they are chained and
// connected, watermark strategies, windows, and what the plan checks say. The command
// lowwater explain reads it. It does not connect, so the splits of sources are not known
// (-1), and with them what depends on their number. It returns the build errors, if
// there are any. The environment can be started afterwards.
func (e *Environment) Plan(name string) ([]byte, error) {
	if err := errors.Join(e.errs...); err != nil {
		return nil, fmt.Errorf("%s: job %q: %w", callSite(), name, err)
	}
	d, err := e.graph.Describe()
	if err != nil {
		return nil, fmt.Errorf("%s: job %q: %w", callSite(), name, err)
	}
	d.Job = name
	d.WatermarkIntervalMillis = e.options.WatermarkInterval.Milliseconds()
	return json.MarshalIndent(d, "", "  ")
}
