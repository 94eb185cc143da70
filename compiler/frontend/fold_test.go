package frontend

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Import crashed on these: the operand of a reduction was read before it had a place.
func TestReductionsOfConstantsAreFolded(t *testing.T) {
	for _, name := range []string{"ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"} {
		m := newSketch().input("x", 2).known("k", array.FromFloat32([]float32{3}, 1, 1)).
			node("r = "+name+" k", intAttr("keepdims", 0)).node("y = Add x r").output("y")
		p, err := Import(m, Options{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Calls) != 1 {
			t.Errorf("%s: %d calls where one addition is due", name, len(p.Calls))
		}
	}
}
