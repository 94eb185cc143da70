package rewrite_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestExtentComputationsAreSharedAcrossLayers: places behind an open past, of two layers, are one kernel's; those of
// another step are another's.
func TestExtentComputationsAreSharedAcrossLayers(t *testing.T) {
	s := modeltest.New().Input("x", 8, 3).Input("p", 12, 3).Known("one", array.FromInt64([]int64{1}, 1)).
		Known("step", array.FromInt64([]int64{1})).Known("steps", array.FromInt64([]int64{2})).
		Node("past = Shape p", modeltest.Int("end", 1)).Node("rows = Shape x", modeltest.Int("end", 1)).Node("total = Add past rows").
		Node("m = Squeeze past").Node("t = Squeeze total").Node("far = Add t t").Node("near = Add m m")
	for _, layer := range []string{"a", "b"} {
		s = s.Node(layer+"0 = Range m t step").Node(layer+"1 = Cast "+layer+"0", modeltest.Int("to", 1)).Node(layer + "2 = Unsqueeze " + layer + "1 one")
	}
	m := s.Node("c0 = Range near far steps").Node("c1 = Cast c0", modeltest.Int("to", 1)).Node("c2 = Unsqueeze c1 one").
		Node("y = Mul x a2").Node("z = Add y b2").Node("w = Add z c2").Output("w")
	m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
	m.Graph.Inputs[1].Shape[0] = onnx.Dim{Value: -1, Param: "m"}
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 1, Max: 8}, "m": {Min: 1, Max: 12}}, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	kernels := 0
	for _, c := range p.Calls {
		if strings.Contains(c.Name, "0") { // those of the ranges
			kernels++
		}
	}
	if kernels != 2 {
		t.Errorf("%d kernels compute places, want one for two layers, and another", kernels)
	}
	outs, err := evaluate.Program(p, map[string]*array.Array{"x": modeltest.Wave(1, 0, 2, 3), "p": modeltest.Wave(0, 1, 5, 3)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{5 + 5 + 10, 6 + 6 + 12} {
		if got := outs["w"].Float(int64(3 * i)); got != want {
			t.Errorf("row %d is %g, want %g", i, got, want)
		}
	}
}
