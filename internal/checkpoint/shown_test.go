package checkpoint

import (
	"strings"
	"testing"
)

// TestShown: messages do not repeat what may be a secret, and say which address they mean.
func TestShown(t *testing.T) {
	for address, want := range map[string]string{
		"/var/lib/job":                   "/var/lib/job",
		"file:///var/lib/job":            "file:///var/lib/job",
		"s3://bucket/a@b/c":              "s3://bucket/a@b/c",
		"s3://bucket/a?region=eu&key=x":  "s3://bucket/a",
		"s3://key:canary@bucket/a":       "s3://bucket/a",
		"s3://key:can/ary@bucket/a?x=%z": "s3://bucket/a",
		"s3://canary@bucket":             "s3://bucket",
	} {
		if got := shown(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
	for _, address := range []string{"s3://key:canary@bucket/a?x=canary", "file://key:canary@host/a?x=canary", "file://key:canary%zz@/a", "ftp://key:canary@host/a"} {
		_, err := openStorage(t.Context(), address, false)
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
