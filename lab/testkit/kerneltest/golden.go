package kerneltest

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Update is set if tests are to write the programs in testdata anew.
var Update = flag.Bool("update", false, "write the programs in testdata anew")

// All tests of kernels verify each program after each pass.
func init() { pass.Verify = true }

// Golden verifies a program and compares its text with testdata/NAME.txt.
func Golden(t *testing.T, name string, f *ir.Func) {
	t.Helper()
	if err := f.Verify(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	path := filepath.Join("testdata", name+".txt")
	got := f.Text()
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the program is not that of %s (-update writes it anew):\n%s", path, got)
	}
}

// Lower returns the program of a schedule.
func Lower(t *testing.T, s *schedule.Schedule) *ir.Func {
	t.Helper()
	f, err := lower.Schedule(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
