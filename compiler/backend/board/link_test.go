package board

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/expr/exprtest"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// build builds what is measured of a workload on a board: the harness, and a module of the plain schedule.
func build(t *testing.T, tc *toolchain.Toolchain, board string, w *expr.Workload) (harness, module string) {
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
	dir := t.TempDir()
	harness, module = filepath.Join(dir, "harness"), filepath.Join(dir, "module")
	for path, what := range map[string]toolchain.Build{harness: Backend{}.Harness(on), module: b} {
		if err := tc.Build(t.Context(), what, path); err != nil {
			t.Fatal(err)
		}
	}
	return harness, module
}

// TestTheHarnessAndModulesCompile needs no board.
func TestTheHarnessAndModulesCompile(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	for _, board := range (Backend{}).Targets() {
		build(t, tc, board, exprtest.Product(t, 8, 12, 16))
	}
}
