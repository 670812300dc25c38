package csv

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// column is a field of the struct as a column of the file.
type column struct {
	name     string
	field    string // for messages
	index    []int  // for reflect.Value.FieldByIndex
	optional bool
	pointer  bool
	text
}

// text is how values of one type are written and read.
type text struct {
	append func(dst []byte, v reflect.Value) ([]byte, error)
	// parse sets v, which is the zero value.
	parse func(v reflect.Value, s string) error
}

// columnsOf lists the columns of a struct in the order of their declaration.
func columnsOf(t reflect.Type) ([]column, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("csv: a record must be a struct, whose fields are the columns; %v is none", t)
	}
	var columns []column
	var errs []error
	fields := map[string]string{} // by column
	for _, f := range reflect.VisibleFields(t) {
		tag, tagged := f.Tag.Lookup("csv")
		name, options, _ := strings.Cut(tag, ",")
		embedded := f.Anonymous && f.Type.Kind() == reflect.Struct && name == "" && !implementsText(f.Type)
		if tag == "-" || !f.IsExported() && !f.Anonymous || embedded || within(t, f.Index) {
			continue
		}
		if !f.IsExported() {
			if tagged {
				errs = append(errs, fmt.Errorf("csv: field %s of %v has a tag but is not exported", f.Name, t))
			}
			continue
		}
		c, err := columnOf(t, f, name, options)
		if err == nil && fields[c.name] != "" {
			err = fmt.Errorf("csv: fields %s and %s of %v are both column %q", fields[c.name], f.Name, t, c.name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		fields[c.name] = f.Name
		columns = append(columns, c)
	}
	if len(columns) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("csv: %v has no field that could be a column", t))
	}
	return columns, errors.Join(errs...)
}

// within reports whether the field is inside a struct that is a column itself, or is left
// out.
func within(t reflect.Type, index []int) bool {
	for depth := 1; depth < len(index); depth++ {
		outer := t.FieldByIndex(index[:depth])
		name, _, _ := strings.Cut(outer.Tag.Get("csv"), ",")
		if name != "" || outer.Type.Kind() == reflect.Pointer || implementsText(outer.Type) {
			return true
		}
	}
	return false
}

func columnOf(t reflect.Type, f reflect.StructField, name, options string) (column, error) {
	c := column{name: name, field: f.Name, index: f.Index}
	if c.name == "" {
		c.name = f.Name
	}
	switch options {
	case "":
	case "optional":
		c.optional = true
	default:
		return c, fmt.Errorf("csv: field %s of %v: unknown option %q in its tag; there is only optional", f.Name, t, options)
	}
	typ := f.Type
	if typ.Kind() == reflect.Pointer && !implementsText(typ) {
		c.pointer, typ = true, typ.Elem()
	}
	var ok bool
	if c.text, ok = textOf(typ); !ok {
		return c, fmt.Errorf("csv: field %s of %v: type %v has no text; implement encoding.TextMarshaler and encoding.TextUnmarshaler on it, or leave it out with the tag `csv:\"-\"`",
			f.Name, t, f.Type)
	}
	return c, nil
}

var (
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textAppender    = reflect.TypeFor[encoding.TextAppender]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// implementsText reports whether values of type t, as fields, are text by their methods.
func implementsText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Pointer && p.Implements(textMarshaler) && p.Implements(textUnmarshaler)
}

func textOf(t reflect.Type) (text, bool) {
	if implementsText(t) {
		return methodText(reflect.PointerTo(t).Implements(textAppender)), true
	}
	bits := 0
	switch t.Kind() {
	case reflect.String:
		return text{
			func(dst []byte, v reflect.Value) ([]byte, error) { return append(dst, v.String()...), nil },
			func(v reflect.Value, s string) error { v.SetString(s); return nil },
		}, true
	case reflect.Bool:
		return text{
			func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Bool()), nil },
			func(v reflect.Value, s string) error {
				x, err := strconv.ParseBool(s)
				v.SetBool(x)
				return wrong(err)
			},
		}, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits = t.Bits()
		return text{
			func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(dst, v.Int(), 10), nil },
			func(v reflect.Value, s string) error {
				x, err := strconv.ParseInt(s, 10, bits)
				v.SetInt(x)
				return wrong(err)
			},
		}, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		bits = t.Bits()
		return text{
			func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint(), 10), nil },
			func(v reflect.Value, s string) error {
				x, err := strconv.ParseUint(s, 10, bits)
				v.SetUint(x)
				return wrong(err)
			},
		}, true
	case reflect.Float32, reflect.Float64:
		bits = t.Bits()
		return text{
			func(dst []byte, v reflect.Value) ([]byte, error) {
				return strconv.AppendFloat(dst, v.Float(), 'g', -1, bits), nil
			},
			func(v reflect.Value, s string) error {
				x, err := strconv.ParseFloat(s, bits)
				v.SetFloat(x)
				return wrong(err)
			},
		}, true
	}
	return text{}, false
}

// wrong says what is wrong with the text of a number, without the function that found it.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	var number *strconv.NumError
	if errors.As(err, &number) {
		return fmt.Errorf("%.64q: %w", number.Num, number.Err)
	}
	return err
}

// methodText is the text of types that have methods for it.
func methodText(appends bool) text {
	t := text{parse: func(v reflect.Value, s string) error {
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s))
	}}
	if appends {
		t.append = func(dst []byte, v reflect.Value) ([]byte, error) {
			return v.Addr().Interface().(encoding.TextAppender).AppendText(dst)
		}
		return t
	}
	t.append = func(dst []byte, v reflect.Value) ([]byte, error) {
		b, err := v.Addr().Interface().(encoding.TextMarshaler).MarshalText()
		return append(dst, b...), err
	}
	return t
}

// appendText appends the text of field v, or that of null.
func (c *column) appendText(dst []byte, v reflect.Value, null string) ([]byte, error) {
	if !c.pointer {
		return c.append(dst, v)
	}
	if v.IsNil() {
		return append(dst, null...), nil
	}
	dst, err := c.append(dst, v.Elem())
	if err == nil && string(dst) == null {
		return dst, fmt.Errorf("the value %q would be read as null: choose another text for that with csv.Null", null)
	}
	return dst, err
}

// set stores a text of the file in field v.
func (c *column) set(v reflect.Value, s, null string) error {
	switch {
	case c.pointer && s == null:
		return nil
	case c.pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return c.parse(v.Elem(), s)
	case null != "" && s == null:
		return errors.New("null, for which the field must be a pointer")
	default:
		return c.parse(v, s)
	}
}
