//go:build lowwater_s3 && lowwater_gcs && lowwater_azure

package objectstores

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const tags = "lowwater_s3,lowwater_gcs,lowwater_azure"

// TestStorage runs the tests of internal/checkpoint that are for any storage on all
// servers.
func TestStorage(t *testing.T) {
	tests := []string{"TestStorage", "TestStoreAndRestore", "TestRetain", "TestAbortWhileFinishing", "TestTakeOver", "TestRestartsAtOnce", "TestComeTogether"}
	var stores []string
	for name, s := range servers {
		stores = append(stores, name+"="+s.address("storage"))
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-tags", tags, "-run", "^("+strings.Join(tests, "|")+")$", "./internal/checkpoint")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "LOWWATER_TEST_OBJECTSTORES="+strings.Join(stores, " "))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, test := range tests {
		for name := range servers {
			if !strings.Contains(string(out), "--- PASS: "+test+"/"+name+" ") {
				t.Errorf("%s did not pass on %s", test, name)
			}
		}
	}
}
