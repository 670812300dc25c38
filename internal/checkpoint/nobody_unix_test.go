//go:build unix

package checkpoint

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asNobody runs the test that calls it again, as the user nobody, with the name of a directory
// of that user's in an environment variable.
func asNobody(t *testing.T, variable string) {
	t.Helper()
	const nobody = 65534
	base, err := os.MkdirTemp("", "lowwater-nobody-") // t.TempDir is below what is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(base); err != nil {
			t.Error(err)
		}
	})
	// Nor may nobody run what go test has built, where that is.
	program := filepath.Join(base, "test")
	if err := copyProgram(program); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "checkpoints")
	for _, err := range []error{os.Mkdir(dir, 0o755), os.Chown(dir, nobody, nobody), os.Chmod(base, 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), variable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func copyProgram(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close() // only read from
	program, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(program, from); err != nil {
		return err
	}
	return program.Close()
}
