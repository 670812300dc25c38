//go:build lowwater_s3 && lowwater_gcs && lowwater_azure

package objectstores

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestWrongKey has Azurite, which checks signatures, refuse a key; and a signature that is
// an option of a request does not get into the error when the server is gone. The command
// is asked, because the driver reads the environment once in a process.
func TestWrongKey(t *testing.T) {
	s := servers["azure"]
	if s == nil {
		_, err := azurite()
		t.Skip(err)
	}
	if text := refused(t, s, "AZURE_STORAGE_KEY=d3Jvbmc="); !strings.Contains(text, "AuthorizationFailure") {
		t.Errorf("a wrong key: %s", text)
	}
	s.disturbed(t, gone)
	if text := refused(t, s, "AZURE_STORAGE_KEY=", "AZURE_STORAGE_SAS_TOKEN=sv=2021&sig="+secret); strings.Contains(text, secret) {
		t.Errorf("a server that is gone: %s", text)
	}
}

// refused returns what the command says of a directory in an environment in which it fails.
func refused(t *testing.T, s *server, env ...string) string {
	t.Helper()
	program, err := command()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "checkpoint", "list", s.address("dir"))
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), s.bucket+"/dir") {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}
