package layout_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestOutputsOfEveryKind checks outputs that are inputs, constants, views and repeated, against numpy's rules.
func TestOutputsOfEveryKind(t *testing.T) {
	m := modeltest.New().Input("x", 2, 3).Known("k", array.FromFloat32([]float32{5}, 1)).
		Node("t = Transpose x").Node("i = Identity x").Node("s = Identity t").Output("x", "t", "i", "s", "k")
	outs := modeltest.Run(t, modeltest.Import(t, m))
	x := modeltest.Wave(0, 1, 2, 3)
	for name, want := range map[string]*array.Array{
		"x": x, "i": x, "t": (*op.Budget)(nil).Arrange(x, []int{1, 0}), "s": (*op.Budget)(nil).Arrange(x, []int{1, 0}), "k": array.FromFloat32([]float32{5}, 1),
	} {
		if outs[name] == nil {
			t.Errorf("output %q is missing", name)
		} else if err := modeltest.Compare(outs[name], want); err != nil {
			t.Errorf("output %q: %v", name, err)
		}
	}
}
