package codec

import (
	"fmt"
	"slices"
	"strings"
)

// tag is what a field's avro tag says.
type tag struct {
	name       string
	leaveOut   bool
	aliases    []string
	value      string
	hasDefault bool
}

// The options of github.com/twmb/avro that decide how a value looks to others. In
// state they change nothing: what Go has is stored.
var foreignOptions = []string{"inline", "omitzero", "uuid", "timestamp-millis", "timestamp-micros",
	"timestamp-nanos", "date", "time-millis", "time-micros"}

func parseTag(text string) (tag, error) {
	if text == "-" {
		return tag{leaveOut: true}, nil
	}
	name, options, _ := strings.Cut(text, ",")
	t := tag{name: name}
	for options != "" {
		if value, ok := strings.CutPrefix(options, "default="); ok {
			t.value, t.hasDefault = value, true
			return t, nil // a default may have commas
		}
		var option string
		option, options = cutOption(options)
		key, value, _ := strings.Cut(option, "=")
		switch {
		case key == "alias":
			value = strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
			t.aliases = append(t.aliases, strings.Split(value, ",")...)
		case key == "type-alias", strings.HasPrefix(key, "decimal("), slices.Contains(foreignOptions, option):
		default:
			return tag{}, fmt.Errorf("unknown option %q in the avro tag: there are -, alias=old and default=value", option)
		}
	}
	return t, nil
}

// cutOption returns the first of several options, between which are the commas
// outside of brackets.
func cutOption(options string) (first, rest string) {
	depth := 0
	for i := range len(options) {
		switch options[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				return options[:i], options[i+1:]
			}
		}
	}
	return options, ""
}
