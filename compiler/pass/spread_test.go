package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func inPlaces(t *testing.T, trace string) (before, after *ir.Func, err error) {
	t.Helper()
	before, err = pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, trace))
	if err != nil {
		t.Fatal(err)
	}
	after, err = pass.Spread(before)
	return before, after, err
}

// TestRegistersOfOtherThreadsAreNotRead checks results stored by other threads than those that sum them, and an
// operand in registers that all threads read.
func TestRegistersOfOtherThreadsAreNotRead(t *testing.T) {
	others := strings.Replace(kerneltest.Tiles, "split 0 7 4 0", "split 0 7 2 0", 1)
	if _, _, err := inPlaces(t, others); err == nil || !strings.Contains(err.Error(), "another thread than the one that wrote it") {
		t.Errorf("results of other threads: %v", err)
	}
	operand := strings.Replace(kerneltest.Tiles, "scope 2 1", "scope 2 2", 1)
	if _, _, err := inPlaces(t, operand); err == nil || !strings.Contains(err.Error(), "in registers") {
		t.Errorf("an operand of all: %v", err)
	}
}
