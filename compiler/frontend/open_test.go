package frontend_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func numbers(v ...int64) *array.Array {
	a := array.New(array.Int64, int64(len(v)))
	for k, e := range v {
		a.SetInt(int64(k), e)
	}
	return a
}

// TestModelsWithUnsupportedOpenExtents checks that errors name the remedy.
func TestModelsWithUnsupportedOpenExtents(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *onnx.Model
		says  string
	}{
		{"a shape that has the number in it", modeltest.New().Input("x", 8, 4).Known("to", numbers(8, 2, 2)).Node("y = Reshape x to").Output("y"), "y"},
		{"a slice up to a constant", modeltest.New().Input("x", 8, 4).Known("from", numbers(0)).Known("to", numbers(5)).Known("axes", numbers(0)).
			Node("y = Slice x from to axes").Output("y"), "not in proportion"},
		{"an element that small inputs lack", modeltest.New().Input("x", 8, 4).Known("at", numbers(3)).Node("y = Gather x at", modeltest.Int("axis", 0)).Output("y"), "index 3 is outside of -1..0"},
		{"a number that is bounded", modeltest.New().Input("x", 8, 4).Known("five", numbers(5)).Node("shape = Shape x", modeltest.Int("end", 1)).
			Node("n = Min shape five").Node("f = Cast n", modeltest.Int("to", 1)).Node("y = Mul x f").Output("y"), "not in proportion"},
		{"a remainder", modeltest.New().Input("x", 64, 4).Known("eight", numbers(8)).Node("shape = Shape x", modeltest.Int("end", 1)).
			Node("n = Mod shape eight").Node("f = Cast n", modeltest.Int("to", 1)).Node("y = Mul x f").Output("y"), "not in proportion"},
		{"a comparison", modeltest.New().Input("x", 64, 4).Known("limit", numbers(10)).Node("shape = Shape x", modeltest.Int("end", 1)).
			Node("less = Less shape limit").Node("minus = Neg x").Node("y = Where less minus x").Output("y"), "constant"},
		{"elements of something else", modeltest.New().Input("x", 64, 4).Known("t", array.New(array.Float32, 64, 2)).Known("twenty", numbers(20)).
			Known("step", numbers(-1)).Known("axes", numbers(0)).Known("more", numbers(22)).Node("shape = Shape x", modeltest.Int("end", 1)).
			Node("from = Sub shape twenty").Node("to = Sub shape more").Node("y = Slice t from to axes step").Output("y"), "n"},
		{"axes that are joined", modeltest.New().Input("x", 3, 8, 4).Known("to", numbers(-1, 4)).Node("y = Reshape x to").Output("y"), "fix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := c.model.Graph.Inputs[0]
			axis := len(in.Shape) - 2
			limit := in.Shape[axis].Value
			in.Shape[axis] = onnx.Dim{Value: -1, Param: "n"}
			_, err := frontend.Import(c.model, frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 1, Max: limit}}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want an error that says %q", err, c.says)
			}
		})
	}
}

// TestUnsupportedPairsOfOpenExtents: a property at the maximum of one extent may fail for smaller values.
func TestUnsupportedPairsOfOpenExtents(t *testing.T) {
	m := modeltest.New().Input("x", 8, 2).Input("t", 512, 2).Known("zero", numbers(0)).Node("length = Shape t", modeltest.Int("end", 1)).
		Node("y = Slice x zero length zero").Output("y")
	m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
	m.Graph.Inputs[1].Shape[0] = onnx.Dim{Value: -1, Param: "m"}
	_, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 1, Max: 8}, "m": {Min: 1, Max: 512}}})
	if err == nil || !strings.Contains(err.Error(), "not in proportion") {
		t.Errorf("%v, want an error that says that it is not in proportion", err)
	}
}

func TestInvalidBoundsAreRefused(t *testing.T) {
	for _, c := range []struct {
		bounds frontend.Bounds
		says   string
	}{
		{frontend.Bounds{Min: 1, Max: 1 << 40}, "laid out for the most"},
		{frontend.Bounds{Min: -1, Max: 8}, "must be >= 0"},
		{frontend.Bounds{Min: 0, Max: 8, Caps: []int64{0}}, "not within 1..8"},
		{frontend.Bounds{Min: 8, Max: 8}, "the second one larger"},
		{frontend.Bounds{Min: 1, Max: 8, Caps: []int64{9}}, "not within 1..8"},
		{frontend.Bounds{Min: 1, Max: 8, Frequencies: map[int64]float64{9: 1}}, "not within 1..8"},
	} {
		m := modeltest.New().Input("x", 8, 2).Node("y = Relu x").Output("y")
		m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
		_, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"n": c.bounds}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want an error that says %q", c.bounds, err, c.says)
		}
	}
}

// behind has n rows x, preceded by m rows p, where m may be zero.
func behind() modeltest.Model {
	m := modeltest.New().Opset(14).Input("x", 40, 2).Input("p", 12, 2).Known("zero", numbers(0)).Known("one", numbers(1)).Known("end", numbers(1<<40)).
		Node("past = Shape p", modeltest.Int("end", 1))
	m.Graph.Inputs[0].Shape[0] = onnx.Dim{Value: -1, Param: "n"}
	m.Graph.Inputs[1].Shape[0] = onnx.Dim{Value: -1, Param: "m"}
	return m
}

func importBehind(m *onnx.Model, floor int64) error {
	_, err := frontend.Import(m, frontend.Options{Verify: true, Open: map[string]frontend.Bounds{"n": {Min: floor, Max: 40}, "m": {Min: 0, Max: 12}}})
	return err
}

// TestValuesThatDifferAtExtentZeroAreRefused: a number with a form from one on may have another value at zero.
func TestValuesThatDifferAtExtentZeroAreRefused(t *testing.T) {
	for name, m := range map[string]modeltest.Model{
		"a number from 1 on":     behind().Node("s = Max past one").Node("f = Cast s", modeltest.Int("to", 1)).Node("y = Mul x f"),
		"a comparison with none": behind().Node("s = Equal past zero").Node("minus = Neg x").Node("y = Where s x minus"),
	} {
		err := importBehind(m.Node("z = Concat p y", modeltest.Int("axis", 0)).Output("z"), 1)
		if err == nil || !strings.Contains(err.Error(), `value "s" is`) {
			t.Errorf("%s: %v, want an error that names s", name, err)
		}
	}
}

// TestAxesThatShrinkWithAnExtentAreRefused checks that they are rejected: memory is laid out for the maximum of each
// extent.
func TestAxesThatShrinkWithAnExtentAreRefused(t *testing.T) {
	m := behind().Node("s = Slice x past end zero").Node("y = ReduceSum s zero").Output("y")
	if err := importBehind(m, 13); err == nil || !strings.Contains(err.Error(), "more with less of an extent") {
		t.Errorf("%v, want an error that says that there are more with less", err)
	}
}

// TestBothExtentsMayBeZero checks an output that depends on both.
func TestBothExtentsMayBeZero(t *testing.T) {
	if err := importBehind(behind().Node("y = Relu x").Node("z = Concat p y", modeltest.Int("axis", 0)).Output("z"), 0); err != nil {
		t.Error(err)
	}
}
