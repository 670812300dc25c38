//go:build !race

package windowed

const raceEnabled = false
