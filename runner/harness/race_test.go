package harness_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/runner/harness"
)

// TestRaceKeepsItsErrorRates runs testdata/race.c, which draws samples from several distributions.
func TestRaceKeepsItsErrorRates(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), os.Getenv(toolchain.Variable))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := target.Native(0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/race.c")
	if err != nil {
		t.Fatal(err)
	}
	build := harness.Build(machine)
	build.Sources = []toolchain.File{{Name: "race_test.c", Text: string(text)}}
	program := filepath.Join(t.TempDir(), "race")
	if err := tc.Build(t.Context(), build, program); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
