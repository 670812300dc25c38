package codec

import (
	"fmt"
	"reflect"
)

// Dynamic is a Codec of a type that is known at run time only. It is safe for concurrent
// use.
type Dynamic struct {
	typ reflect.Type
	// codec is one of typ, whatever its type parameter says.
	codec Codec[struct{}]
}

// Of returns the codec of t, or the error that For would return.
func Of(t reflect.Type) (*Dynamic, error) {
	s, err := shapeOf(t)
	if err != nil {
		return nil, fmt.Errorf("codec: state of type %v cannot be stored: %w", t, err)
	}
	return &Dynamic{t, Codec[struct{}]{shape: s, schema: schemaOf(s), encode: encoderOf(s)}}, nil
}

// Schema is Codec.Schema.
func (d *Dynamic) Schema() string { return d.codec.Schema() }

// Append is Codec.Append. v is a pointer to a value of the type.
func (d *Dynamic) Append(dst []byte, v reflect.Value) ([]byte, error) {
	p, err := d.pointer(v)
	if err != nil {
		return nil, err
	}
	return d.codec.Append(dst, p)
}

// Decoder is Codec.Decoder. What the function is given is a pointer to a value of the
// type.
func (d *Dynamic) Decoder(writerSchema string) (func(data []byte, v reflect.Value) (rest []byte, err error), error) {
	decode, err := d.codec.Decoder(writerSchema)
	if err != nil {
		return nil, err
	}
	return func(data []byte, v reflect.Value) ([]byte, error) {
		p, err := d.pointer(v)
		if err != nil {
			return nil, err
		}
		return decode(data, p)
	}, nil
}

// pointer returns v as the codec takes it.
func (d *Dynamic) pointer(v reflect.Value) (*struct{}, error) {
	if v.Type() != reflect.PointerTo(d.typ) {
		return nil, fmt.Errorf("codec: a %v where a pointer to %v belongs", v.Type(), d.typ)
	}
	return (*struct{})(v.UnsafePointer()), nil
}
