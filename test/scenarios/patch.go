package scenarios

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strconv"
	"strings"
)

// set returns the document with the value at a JSON pointer replaced, or added to
// its object.
func set(document jsontext.Value, change Change) (jsontext.Value, error) {
	path, ok := strings.CutPrefix(change.Path, "/")
	if !ok {
		return nil, fmt.Errorf(`path %q: a JSON pointer begins with "/"`, change.Path)
	}
	tokens := strings.Split(path, "/")
	for i, t := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	changed, err := setAt(document, tokens, change.Value)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", change.Path, err)
	}
	return changed, nil
}

func setAt(in jsontext.Value, tokens []string, value jsontext.Value) (jsontext.Value, error) {
	if len(tokens) == 0 {
		return value, nil
	}
	name := tokens[0]
	switch in.Kind() {
	case jsontext.KindBeginObject:
		var members map[string]jsontext.Value
		if err := json.Unmarshal(in, &members); err != nil {
			return nil, err
		}
		member, ok := members[name]
		if !ok && len(tokens) > 1 {
			return nil, fmt.Errorf("no member %q", name)
		}
		var err error
		if members[name], err = setAt(member, tokens[1:], value); err != nil {
			return nil, err
		}
		return json.Marshal(members)
	case jsontext.KindBeginArray:
		var elements []jsontext.Value
		if err := json.Unmarshal(in, &elements); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(elements) {
			return nil, fmt.Errorf("no element %q of %d", name, len(elements))
		}
		if elements[i], err = setAt(elements[i], tokens[1:], value); err != nil {
			return nil, err
		}
		return json.Marshal(elements)
	default:
		return nil, fmt.Errorf("no member %q: %s has none", name, in.Kind())
	}
}
