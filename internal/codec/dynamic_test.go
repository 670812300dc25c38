package codec

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDynamic(t *testing.T) {
	type pair struct {
		Name  string
		Count int32
	}
	c, err := Of(reflect.TypeFor[pair]())
	if err != nil {
		t.Fatal(err)
	}
	static, err := For[pair]()
	if err != nil {
		t.Fatal(err)
	}
	if c.Schema() != static.Schema() {
		t.Errorf("schema %s, want %s", c.Schema(), static.Schema())
	}
	want := pair{"a", 7}
	data, err := c.Append([]byte{9}, reflect.ValueOf(&want))
	if err != nil {
		t.Fatal(err)
	}
	decode, err := c.Decoder(c.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var got pair
	rest, err := decode(data[1:], reflect.ValueOf(&got))
	if err != nil || len(rest) > 0 {
		t.Fatal(rest, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	if _, err := c.Append(nil, reflect.ValueOf(&got.Count)); err == nil {
		t.Error("encoded a value of another type")
	}
	if _, err := decode(data[1:], reflect.ValueOf(&got.Count)); err == nil {
		t.Error("decoded into a value of another type")
	}
	if _, err := Of(reflect.TypeFor[chan int]()); err == nil {
		t.Error("a codec of a channel")
	}
}
