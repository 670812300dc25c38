package state

import (
	"strings"
	"testing"
	"time"

	"github.com/lowwater/lowwater/window"
)

func TestValidate(t *testing.T) {
	hour := TTL{After: time.Hour}
	sum := func(a, b int) int { return a + b }
	tests := []struct {
		name string
		d    interface{ Validate() error }
		want string // "" for valid
	}{
		{"value", Value[int]("v"), ""},
		{"list with TTL", List[string]("l", WithTTL(hour)), ""},
		{"map", Map[string, int]("m"), ""},
		{"reducing", Reducing("r", sum), ""},
		{"aggregating", Aggregating("a", window.Count[string]()), ""},
		{"all of TTL", Value[int]("v", WithTTL(TTL{time.Millisecond, OnReadAndWrite, ReturnExpiredIfNotCleanedUp})), ""},
		{"no name", Value[int](""), "no name"},
		{"no name of a reducing state", Reducing("", sum), "no name"},
		{"no function", Reducing[int]("r", nil), `"r" has no function`},
		{"no aggregator", Aggregating[int, int, int]("a", nil), `"a" has no aggregator`},
		{"too short", Value[int]("v", WithTTL(TTL{After: time.Microsecond})), `"v": TTL.After is 1µs: it must be at least 1ms`},
		{"too fine", Value[int]("v", WithTTL(TTL{After: 1500 * time.Microsecond})), `"v": TTL.After is 1.5ms: it must be a whole number of milliseconds`},
		{"update without time", Value[int]("v", WithTTL(TTL{Update: OnReadAndWrite})), "TTL.After is 0s"},
		{"negative", List[int]("l", WithTTL(TTL{After: -time.Hour})), "TTL.After"},
		{"update", Value[int]("v", WithTTL(TTL{After: time.Hour, Update: 2})), "TTL.Update is TTLUpdate(2)"},
		{"visibility", Value[int]("v", WithTTL(TTL{After: time.Hour, Visibility: 9})), "TTLVisibility(9)"},
	}
	for _, tt := range tests {
		err := tt.d.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want one that contains %q", tt.name, err, tt.want)
		}
	}
}

func TestDeclaration(t *testing.T) {
	ttl := TTL{After: time.Minute, Update: OnReadAndWrite}
	d := Map[string, int]("seen", WithTTL(ttl))
	if d.Name() != "seen" || d.TTL() != ttl {
		t.Errorf("name %q, TTL %v", d.Name(), d.TTL())
	}
	if got := List[int]("l").TTL(); got != (TTL{}) {
		t.Errorf("TTL %v of a state without", got)
	}
	if OnReadAndWrite.String() != "on read and write" || NeverReturnExpired.String() != "never return expired" {
		t.Errorf("named %v and %v", OnReadAndWrite, NeverReturnExpired)
	}
}
