package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// TestCopiesOfAStepAreBegunTogether, and waited for once.
func TestCopiesOfAStepAreBegunTogether(t *testing.T) {
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.TileProduct, kerneltest.Tiles))
	if err != nil {
		t.Fatal(err)
	}
	f = pass.PipelineBegin(pass.Wide(f))
	kerneltest.Golden(t, "pipeline/begun", f)
	if text := f.Text(); strings.Count(text, "copy.wait") != 1 {
		t.Errorf("copies are not waited for once:\n%s", text)
	}
}
