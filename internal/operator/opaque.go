package operator

import (
	"bytes"
	"encoding/json"
)

// opaque is a connector's bytes within a JSON entry of a snapshot: as they are if they are
// a JSON object, so that people can read the entry, otherwise in base64.
type opaque []byte

func (o opaque) MarshalJSON() ([]byte, error) {
	if len(o) > 0 && o[0] == '{' {
		// What marshalling would change, such as white space, must come back as it was.
		if same, err := json.Marshal(json.RawMessage(o)); err == nil && bytes.Equal(same, o) {
			return o, nil
		}
	}
	return json.Marshal([]byte(o))
}

func (o *opaque) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		*o = bytes.Clone(data)
		return nil
	}
	return json.Unmarshal(data, (*[]byte)(o))
}
