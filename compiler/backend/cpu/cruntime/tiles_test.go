package cruntime

import (
	"os"
	"os/exec"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
)

// TestThreadsHaveWholeTilesWhereTheKernelAllowsThem uses a model of the instructions instead of a processor with
// tiles.
func TestThreadsHaveWholeTilesWhereTheKernelAllowsThem(t *testing.T) {
	model, err := os.ReadFile("../codegen/testdata/tiles.h")
	if err != nil {
		t.Fatal(err)
	}
	headers := append(PoolHeaders(), Read("tiles.c")...)
	headers = append(headers, toolchain.File{Name: "tiles_model.h", Text: string(model)})
	file := program(t, Read("pool.c", "spread.c"), headers, "tiles_test")
	if out, err := exec.Command(file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
