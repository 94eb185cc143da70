package pipeline_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/pipeline"
	"github.com/tilth-dev/tilth/compiler/pass/threads"
	"github.com/tilth-dev/tilth/compiler/pass/wide"
)

// TestCopiesOfAStepAreBegunTogether, and waited for once.
func TestCopiesOfAStepAreBegunTogether(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.Product, irtest.Tiles))
	if err != nil {
		t.Fatal(err)
	}
	f = pipeline.Begin(wide.Run(f))
	irtest.Golden(t, "begun", f)
	if text := f.Text(); strings.Count(text, "wait for") != 1 {
		t.Errorf("copies are not waited for once:\n%s", text)
	}
}
