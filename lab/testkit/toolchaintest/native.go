package toolchaintest

import (
	"os"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Native returns the default compiler, and this machine as a target with at most the given number of threads; 0
// means all.
func Native(t testing.TB, threads int) (*toolchain.Toolchain, *target.Target) {
	t.Helper()
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Native(min(threads, target.Processors()))
	if err != nil {
		t.Fatal(err)
	}
	return tc, machine
}
