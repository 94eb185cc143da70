package board_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLibraryComputesWhatThatOfTheMachineDoes compares every function with the host's C library, with both compilers.
func TestLibraryComputesWhatThatOfTheMachineDoes(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang-19"} {
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "libc_test")
			out, err := exec.CommandContext(t.Context(), compiler, "-std=gnu11", "-O2", "-Wall", "-Werror", "-ffp-contract=off", "-fno-builtin", "-Isrc",
				"-o", program, "testdata/libc_test.c", "-lm").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := exec.CommandContext(t.Context(), program).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
