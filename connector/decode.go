package connector

import "fmt"

// DecodeErrorPolicy says what a source does with a record that cannot be decoded.
type DecodeErrorPolicy uint8

const (
	// FailJob ends the job with an error that says where the record is. It is the default.
	FailJob DecodeErrorPolicy = iota
	// SkipRecord counts the record as dropped, under "malformed" with a sample, and goes
	// on. Each subtask logs its first one.
	SkipRecord
	// ToDeadLetters sends the record to the source's dead-letter output, the side output
	// lowwater.DeadLetters, and goes on.
	ToDeadLetters
)

// String returns the name of the constant.
func (p DecodeErrorPolicy) String() string {
	switch p {
	case FailJob:
		return "FailJob"
	case SkipRecord:
		return "SkipRecord"
	case ToDeadLetters:
		return "ToDeadLetters"
	default:
		return fmt.Sprintf("DecodeErrorPolicy(%d)", uint8(p))
	}
}
