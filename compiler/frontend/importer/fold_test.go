package importer_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestReductionsOfConstantsAreFolded: Import crashed on these, since a reduction's operand was read before it had a
// place.
func TestReductionsOfConstantsAreFolded(t *testing.T) {
	for _, name := range []string{"ReduceSum", "ReduceMax", "ReduceL2", "ReduceLogSumExp"} {
		m := modeltest.New().Input("x", 2).Known("k", array.FromFloat32([]float32{3}, 1, 1)).
			Node("r = "+name+" k", modeltest.Int("keepdims", 0)).Node("y = Add x r").Output("y")
		p, err := frontend.Import(m, frontend.Options{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Calls) != 1 {
			t.Errorf("%s: %d calls where one addition is due", name, len(p.Calls))
		}
	}
}
