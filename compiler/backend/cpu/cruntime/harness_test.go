package cruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// runHarness compiles testdata/NAME.c, which includes the tested part of the harness, and runs it.
func runHarness(t *testing.T, name string, args ...string) {
	t.Helper()
	tc, machine := toolchaintest.Native(t, 0)
	text, err := os.ReadFile("testdata/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	build := Harness(machine)
	build.Sources = []toolchain.File{{Name: name + "_test.c", Text: string(text)}}
	program := filepath.Join(t.TempDir(), name)
	if err := tc.Build(t.Context(), build, program); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestRaceKeepsItsErrorRates draws samples from several distributions.
func TestRaceKeepsItsErrorRates(t *testing.T) { runHarness(t, "race") }

// TestBufferOverrunsAreDetected reads and writes beyond the end.
func TestBufferOverrunsAreDetected(t *testing.T) { runHarness(t, "buffer") }

// TestSandboxBesideADriver checks that the sandbox denies starting programs, signalling others and removing files, and
// permits what drivers do.
func TestSandboxBesideADriver(t *testing.T) { runHarness(t, "sandbox", t.TempDir()) }
