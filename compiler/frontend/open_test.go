package frontend_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/testkit/sketch"
)

func numbers(v ...int64) *array.Array {
	a := array.New(array.Int64, int64(len(v)))
	for k, e := range v {
		a.SetInt(int64(k), e)
	}
	return a
}

// TestModelsThatCannotBeOpen are refused by name, with the remedy.
func TestModelsThatCannotBeOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *onnx.Model
		says  string
	}{
		{"a shape that has the number in it", sketch.New().Input("x", 8, 4).Known("to", numbers(8, 2, 2)).Node("y = Reshape x to").Output("y"), "y"},
		{"a slice up to a constant", sketch.New().Input("x", 8, 4).Known("from", numbers(0)).Known("to", numbers(5)).Known("axes", numbers(0)).
			Node("y = Slice x from to axes").Output("y"), "in another way than by a factor"},
		{"an element that small inputs lack", sketch.New().Input("x", 8, 4).Known("at", numbers(3)).Node("y = Gather x at", sketch.Int("axis", 0)).Output("y"), "give that other bounds"},
		{"axes that are joined", sketch.New().Input("x", 3, 8, 4).Known("to", numbers(-1, 4)).Node("y = Reshape x to").Output("y"), "fix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := c.model.Graph.Inputs[0]
			axis := len(in.Shape) - 2
			in.Shape[axis] = onnx.Dim{Value: -1, Param: "n"}
			_, err := frontend.Import(c.model, frontend.Options{Open: map[string]frontend.Bounds{"n": {Least: 1, Most: 8}}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want an error that says %q", err, c.says)
			}
		})
	}
}
