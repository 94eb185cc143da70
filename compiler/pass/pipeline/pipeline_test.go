package pipeline_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/pipeline"
	"github.com/tilth-dev/tilth/compiler/pass/threads"
)

// TestOperandsAreFetchedAhead: a product in three steps, whose copies of one operand are begun two steps before.
func TestOperandsAreFetchedAhead(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.Product, irtest.TilesOf(2)+"pipeline 2 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	irtest.Golden(t, "before", f)
	irtest.Golden(t, "after", pipeline.Run(f))
}

// TestRingsAreNoLongerThanTheirLoop: of two steps both are under way at once.
func TestRingsAreNoLongerThanTheirLoop(t *testing.T) {
	f, err := threads.Run(irtest.Replayed(t, irtest.Product, irtest.TilesOf(3)+"pipeline 2 8\n"))
	if err != nil {
		t.Fatal(err)
	}
	ir.Visit(pipeline.Run(f).Body, func(st ir.Stmt) {
		if a, ok := st.(*ir.Alloc); ok && a.Buffer.Space == ir.Shared && a.Buffer.Elements() != 2*12 {
			t.Errorf("the ring has %d elements", a.Buffer.Elements())
		}
	})
}
