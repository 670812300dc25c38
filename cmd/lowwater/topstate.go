package main

import (
	"fmt"

	"github.com/lowwater/lowwater/internal/why"
)

// Entries on disk are cells of functions and runs of windows (docs/state.md).
var stateHead = []string{"STATE", "IN MEMORY", "BUDGET", "ENTRIES ON DISK", "DISK", "READS/S", "WRITES/S"}

// stateRows are the operators whose state has a memory budget.
func stateRows(e *why.Evidence) [][]string {
	var rows [][]string
	for i := range e.Operators {
		o := &e.Operators[i]
		var sum why.KeyedState
		for _, s := range e.History[len(e.History)-1].Subtasks {
			if s.Operator == o.ID {
				sum.BudgetBytes += s.State.BudgetBytes
				sum.MemoryBytes += s.State.MemoryBytes
				sum.SpilledEntries += s.State.SpilledEntries
				sum.DiskBytes += s.State.DiskBytes
			}
		}
		if sum.BudgetBytes == 0 {
			continue
		}
		reads := rate(e, o.ID, func(s *why.Subtask) why.Known[int64] { return why.Know(s.State.SpillReads) })
		writes := rate(e, o.ID, func(s *why.Subtask) why.Known[int64] { return why.Know(s.State.SpillWrites) })
		rows = append(rows, []string{o.Name, size(sum.MemoryBytes), size(sum.BudgetBytes), fmt.Sprint(sum.SpilledEntries), size(sum.DiskBytes), reads, writes})
	}
	return rows
}

// size is a number of bytes in binary units, as the Web UI has it.
func size(bytes int64) string {
	n, unit := float64(bytes), 0
	for n >= 1024 && unit < len(sizeUnits)-1 {
		n, unit = n/1024, unit+1
	}
	if unit == 0 || n >= 100 {
		return fmt.Sprintf("%.0f %s", n, sizeUnits[unit])
	}
	return fmt.Sprintf("%.1f %s", n, sizeUnits[unit])
}

var sizeUnits = []string{"B", "KiB", "MiB", "GiB", "TiB"}
