package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// TestCopiesOfAStepAreBegunTogether, and waited for once.
func TestCopiesOfAStepAreBegunTogether(t *testing.T) {
	f, err := pass.Threads(irtest.Replayed(t, irtest.Product, irtest.Tiles))
	if err != nil {
		t.Fatal(err)
	}
	f = pass.PipelineBegin(pass.Wide(f))
	irtest.Golden(t, "pipeline/begun", f)
	if text := f.Text(); strings.Count(text, "wait for") != 1 {
		t.Errorf("copies are not waited for once:\n%s", text)
	}
}
