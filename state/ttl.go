package state

import (
	"fmt"
	"time"
)

// TTL says when values expire (spec windows 5.3). It counts processing time: a
// value is gone exactly After its last access, and some time later its memory is
// free, whether it is read or not. Snapshots keep the times of last
// access, so the time during which a job is down counts.
//
// A value, a reduced and an aggregated value expire as a whole, the elements of
// a list and the entries of a map each on their own. The zero TTL is none.
type TTL struct {
	// After is at least a millisecond, and a whole number of them.
	After time.Duration
	// Update says what counts as an access; the default is OnCreateAndWrite.
	Update TTLUpdate
	// Visibility says what can be read after the time; the default is
	// NeverReturnExpired.
	Visibility TTLVisibility
}

// TTLUpdate says what counts as an access.
type TTLUpdate uint8

const (
	// OnCreateAndWrite: only writing.
	OnCreateAndWrite TTLUpdate = iota
	// OnReadAndWrite: reading, too. Reading what has expired does not.
	OnReadAndWrite
)

// String returns the name in words, such as "on create and write".
func (u TTLUpdate) String() string {
	switch u {
	case OnCreateAndWrite:
		return "on create and write"
	case OnReadAndWrite:
		return "on read and write"
	default:
		return fmt.Sprintf("TTLUpdate(%d)", uint8(u))
	}
}

// TTLVisibility says whether a value that has expired can still be read.
type TTLVisibility uint8

const (
	// NeverReturnExpired: no.
	NeverReturnExpired TTLVisibility = iota
	// ReturnExpiredIfNotCleanedUp: once, if it is still there; reading it
	// removes it. Of a list all elements are returned until a read finds that
	// all have expired; that read removes them.
	ReturnExpiredIfNotCleanedUp
)

// String returns the name in words, such as "never return expired".
func (v TTLVisibility) String() string {
	switch v {
	case NeverReturnExpired:
		return "never return expired"
	case ReturnExpiredIfNotCleanedUp:
		return "return expired if not cleaned up"
	default:
		return fmt.Sprintf("TTLVisibility(%d)", uint8(v))
	}
}

func (t TTL) validate() error {
	switch {
	case t == TTL{}:
		return nil
	case t.After < time.Millisecond:
		return fmt.Errorf("TTL.After is %v: it must be at least 1ms", t.After)
	case t.After%time.Millisecond != 0:
		return fmt.Errorf("TTL.After is %v: it must be a whole number of milliseconds", t.After)
	case t.Update > OnReadAndWrite:
		return fmt.Errorf("TTL.Update is %v: it must be OnCreateAndWrite or OnReadAndWrite", t.Update)
	case t.Visibility > ReturnExpiredIfNotCleanedUp:
		return fmt.Errorf("TTL.Visibility is %v: it must be NeverReturnExpired or ReturnExpiredIfNotCleanedUp", t.Visibility)
	default:
		return nil
	}
}
