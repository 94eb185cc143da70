package macros

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestFibersSwitchOnRISCV runs the architecture-specific part of the simulator.
func TestFibersSwitchOnRISCV(t *testing.T) {
	const library = `#include <stddef.h>
#include <stdint.h>
#define SIM_STATIC static __attribute__((unused))
void *memset(void *p, int c, size_t n) {
  for (volatile char *q = p; n > 0; n--) *q++ = (char)c;
  return p;
}
`
	fibers, err := files.ReadFile("simulated/fibers.h")
	if err != nil {
		t.Fatal(err)
	}
	source, program := filepath.Join(t.TempDir(), "fibers.c"), filepath.Join(t.TempDir(), "fibers")
	if err := os.WriteFile(source, []byte(library+string(fibers)+read(t, "riscv.c")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"-O0", "-O2"} {
		cmd := exec.CommandContext(t.Context(), "clang-19", "--target=riscv64-linux-gnu", "-march=rv64gc", "-mabi=lp64d", "-ffreestanding", "-nostdlib", "-static",
			"--ld-path=/usr/bin/ld.lld-19", level, source, "-o", program)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := exec.CommandContext(t.Context(), "qemu-riscv64", program).CombinedOutput(); err != nil {
			t.Errorf("at %s: %v\n%s", level, err, out)
		}
	}
}
