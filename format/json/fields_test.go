package json

import (
	"reflect"
	"testing"
	"time"
)

type unexportedBase struct {
	Promoted int
	hidden   int
}

type Deep struct{ A, B int }

type Middle struct {
	Deep
	B int
}

type Twin1 struct{ Same, One int }

type Twin2 struct{ Same, Two int }

type Tagged struct {
	Other int `json:"Same"`
}

type Note string

type note string

type Cycle struct {
	*Cycle
	N int
}

// fieldTypes are structs whose members take the rules on names to work out.
var fieldTypes = []any{
	struct{ unexportedBase }{},
	struct{ Middle }{},
	struct {
		Middle
		A int
	}{},
	struct {
		Twin1
		Twin2
	}{},
	struct {
		Twin1
		Tagged
	}{},
	struct {
		Twin1
		Twin2
		Tagged
	}{},
	struct {
		*Twin1
		Twin2 `json:"Twin"`
	}{},
	struct {
		Note
		note
	}{},
	struct{ *Note }{},
	struct {
		Deep
		Middle
	}{},
	struct{ *Cycle }{},
	struct {
		A int `json:"B"`
		B int
	}{},
	struct {
		A int `json:"a\"b"`
		B int `json:"'quoted'"`
		C int `json:"c,unknown"`
		D int `json:"d,omitempty,"`
		E int `json:",omitempty"`
		F int `json:"B:c/d=e;f"`
	}{},
	struct {
		A int `json:"a,case:ignore"`
		B int `json:"b,case:strict"`
	}{},
	struct {
		Rest map[string]any `json:",embed"`
		A    int
	}{},
	struct {
		unexportedBase `json:"tagged"`
	}{},
	struct {
		time.Time
		A int
	}{},
	struct{ upper }{},
	struct {
		A int `json:"-"`
		B int `json:"-,"`
		C int `json:""`
	}{},
	struct{}{},
}

func TestFields(t *testing.T) {
	docs := []string{
		`{"A":1,"B":2,"Same":3,"One":4,"Two":5,"Promoted":6,"N":7,"Note":"8","note":"9","x":10,"y":11}`,
		`{"a":1,"b":2,"same":3,"one":4,"two":5,"PROMOTED":6,"n":7,"note":"8","X":10,"hidden":11}`,
		`{"Twin":{"Same":1,"Two":2},"Twin1":{"Same":3},"tagged":{"Promoted":1},"unexportedBase":{"Promoted":2},"Deep":{"A":1}}`,
		`{"a\"b":1,"quoted":2,"'quoted'":3,"c":4,"d":5,"E":6,"B:c/d=e;f":7,"F":8,"e":9}`,
		`{"-":1,"A":2,"B":3,"C":4,"Rest":{"q":1},"unknown":[1]}`,
		`{"Time":"2024-05-06T07:08:09Z"}`, `"2024-05-06T07:08:09Z"`, `{}`, `null`,
	}
	for _, v := range fieldTypes {
		typ := reflect.TypeOf(v)
		for _, doc := range docs {
			checkDecode(t, typ, []byte(doc))
		}
		checkEncode(t, reflect.New(typ))
	}
}
