package json

import (
	"fmt"
	"reflect"
	"strings"
)

// trail collects what is wrong with the types of a struct's fields while a
// compiler walks through them.
type trail struct {
	path []string // fields on the way to the type at hand
	errs []error
}

func (t *trail) enter(field string) { t.path = append(t.path, field) }

func (t *trail) leave() { t.path = t.path[:len(t.path)-1] }

// wrong notes what is wrong with the field at hand.
func (t *trail) wrong(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if len(t.path) > 0 {
		err = fmt.Errorf("field %s: %w", strings.Join(t.path, "."), err)
	}
	t.errs = append(t.errs, err)
}

// unsupported notes that JSON has no value for typ.
func (t *trail) unsupported(typ reflect.Type) {
	if len(t.path) == 0 {
		t.wrong("JSON has no value for it")
		return
	}
	t.wrong(`JSON has no value for %v; tag the field json:"-" to leave it out`, typ)
}

// quotedWrap returns struct{F T `json:"f,string"`}. T is at offset 0 of it, so a
// pointer to a T is a pointer to it.
func quotedWrap(t reflect.Type) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "F", Type: t, Tag: `json:"f,string"`}})
}
