package json_test

import (
	"errors"
	"fmt"

	"github.com/lowwater/lowwater/format/json"
)

type order struct {
	ID    int64   `json:"id"`
	Price float64 `json:"price"`
}

// Members that the type has no field for are checked and left out.
func ExampleValue() {
	decoder := json.Value[order]()
	var o order
	if err := decoder.Decode([]byte(`{"id": 7, "price": 12.5, "comment": "thanks"}`), &o); err != nil {
		fmt.Println(err)
	}
	fmt.Println(o)

	err := decoder.Decode([]byte(`{"id": 8, "price": "none"}`), new(order))
	if e, ok := errors.AsType[*json.DecodeError](err); ok {
		fmt.Println("at", e.Path, "found", e.Found)
	}
	// Output:
	// {7 12.5}
	// at price found string "none"
}

func ExampleEncode() {
	data, err := json.Encode[order]().Encode(nil, order{ID: 7, Price: 12.5})
	fmt.Println(string(data), err)
	// Output:
	// {"id":7,"price":12.5} <nil>
}
