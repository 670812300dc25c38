// Package csv is the format of files of comma-separated values, one struct per line, as
// package encoding/csv reads them (RFC 4180).
//
// A field of the struct is a column, by the name of the field or of its tag:
//
//	type Order struct {
//		ID     string    `csv:"order_id"`
//		At     time.Time `csv:"at"`             // RFC 3339
//		Amount float64   `csv:"amount"`
//		Coupon *string   `csv:"coupon"`         // nil if there is none
//		Note   string    `csv:"note,optional"`  // the column may be missing
//		Seen   bool      `csv:"-"`              // not in the file
//	}
//
// Fields are strings, booleans, numbers, types that are both an encoding.TextMarshaler and
// an encoding.TextUnmarshaler, such as time.Time, or pointers to those. The fields of an
// embedded struct without a tag are columns like the others. The first line of a file names
// the columns, in any order; columns that the struct does not have are skipped.
//
// Null is told from a value by a text that stands for it (Null), the empty one unless set
// otherwise, and only in columns whose field is a pointer. A value behind a pointer that
// would be written as that text is an error rather than a null. In other columns an empty
// text is an empty string, and an error for a number. A null text that is not empty is an
// error in columns that have no pointer.
//
// As encoding/csv says, empty lines are skipped, and a carriage return before a newline is
// lost also inside quotes.
//
// Package csv does not read other layouts, guess types or separators, or know files,
// positions in streams or compression: package files does.
package csv
