// Package enum names constants that are numbered from 0, for their String methods. Values that
// come from outside, and parsing, are not its business.
package enum

import "fmt"

// Name returns names[v]. A value without a name, of another version or made up, tells its
// number.
func Name[E ~int | ~int32 | ~uint8](v E, names ...string) string {
	if i := int(v); i >= 0 && i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown (%d)", int(v))
}
