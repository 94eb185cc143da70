package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestProgramsStartUnderAnEmulator starts programs without execveat, which the emulator does not support. A runner on
// an emulated board also starts programs of this machine, such as the emulator itself.
func TestProgramsStartUnderAnEmulator(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: it compiles the standard library for another processor")
	}
	qemu, err := exec.LookPath("qemu-riscv64")
	if err != nil {
		t.Skipf("there is no emulator: %v: run scripts/packages.sh test", err)
	}
	program := filepath.Join(t.TempDir(), "started")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/started")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=riscv64", "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), qemu, program, "/bin/echo", "/usr/bin/env").CombinedOutput()
	if want := "by descriptor\nby name\nunder a launcher\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
