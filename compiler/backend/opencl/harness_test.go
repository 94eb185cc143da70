package opencl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// TestHarnessCompiles requires no device.
func TestHarnessCompiles(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := tc.Build(t.Context(), Harness(on), filepath.Join(t.TempDir(), "harness")); err != nil {
		t.Error(err)
	}
}
