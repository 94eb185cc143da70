package toolchaintest

import (
	"os"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// Native is the compiler that a user would get, and this machine with so many threads, or what it has of them; 0 = all
// it has.
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
