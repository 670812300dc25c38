//go:build race

package windowed

// raceEnabled: pools drop batches at random, so allocations say nothing.
const raceEnabled = true
