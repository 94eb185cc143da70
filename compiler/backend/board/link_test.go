package board

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// buildModule builds a module of a workload's plain schedule for a board.
func buildModule(t *testing.T, tc *toolchain.Toolchain, board string, w *expr.Workload) string {
	t.Helper()
	on, err := Backend{}.Target(board, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule.New(w)
	p, err := Backend{}.Print("k0", backend.Kernel{ID: schedule.Digest(s.Trace()), Schedule: s}, on)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Backend{}.Module(w, []backend.Printed{p}, on)
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "module")
	if err := tc.Build(t.Context(), b, module); err != nil {
		t.Fatal(err)
	}
	return module
}

// TestHarnessAndModulesCompile requires no board.
func TestHarnessAndModulesCompile(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	for _, board := range target.Boards() {
		buildModule(t, tc, board, kerneltest.Product(t, 8, 12, 16))
		on, err := Backend{}.Target(board, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.Build(t.Context(), Backend{}.Harness(on), filepath.Join(t.TempDir(), "harness")); err != nil {
			t.Fatal(err)
		}
	}
}
