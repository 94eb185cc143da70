package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestKernelsInIntegersMeanTheirRoundedFloats: those of all convolutions, in 8 bits whatever is asked for.
func TestKernelsInIntegersMeanTheirRoundedFloats(t *testing.T) {
	image := func(channels int64) modeltest.Model { return modeltest.New().Input("x", 2, channels, 9, 8) }
	for _, c := range []struct {
		name  string
		model modeltest.Model
		w     *array.Array
	}{
		{"3x3", image(32).Node("y = Conv x w", modeltest.Same3x3), signed(64, 32, 3, 3)},
		{"3x3 with a bias and a residual", image(48).Constant("b", 48).Node("c = Conv x w b", modeltest.Same3x3).Node("s = Add c x").Node("y = Relu s"), signed(48, 48, 3, 3)},
		{"3x3 with stride 2", image(16).Node("y = Conv x w", modeltest.Same3x3, modeltest.Ints("strides", 2, 2)), signed(120, 16, 3, 3)},
		{"7x7 with stride 2", image(3).Constant("b", 115).Node("y = Conv x w b", modeltest.Ints("strides", 2, 2), modeltest.Ints("pads", 3, 3, 3, 3)), signed(115, 3, 7, 7)},
		{"dilated", image(16).Node("y = Conv x w", modeltest.Ints("dilations", 2, 2), modeltest.Ints("pads", 2, 2, 2, 2)), signed(116, 16, 3, 3)},
		{"grouped", image(64).Node("y = Conv x w", modeltest.Same3x3, modeltest.Int("group", 4)), signed(128, 16, 3, 3)},
		{"in groups of four", image(64).Node("y = Conv x w", modeltest.Same3x3, modeltest.Int("group", 16)), signed(464, 4, 3, 3)},
		{"single elements in groups", image(128).Node("y = Conv x w", modeltest.Int("group", 2)), signed(256, 64, 1, 1)},
		{"single elements with padding", image(64).Node("y = Conv x w", modeltest.Ints("pads", 1, 1, 1, 1)), signed(256, 64, 1, 1)},
		{"single elements with strides", image(64).Node("y = Conv x w", modeltest.Ints("strides", 2, 2)), signed(256, 64, 1, 1)},
		{"of sequences", modeltest.New().Input("x", 2, 32, 11).Node("y = Conv x w", modeltest.Ints("pads", 2, 2)), signed(104, 32, 5)},
		{"of volumes", modeltest.New().Input("x", 1, 8, 4, 5, 6).Node("y = Conv x w"), signed(80, 8, 3, 3, 3)},
	} {
		for _, bits := range []int64{8, 4} {
			t.Run(fmt.Sprintf("%s, int%d", c.name, bits), func(t *testing.T) {
				floats := c.model.Known("w", c.w).Output("y")
				p, counts := inIntegers(t, floats, bits)
				if counts != [2]int{1, 1} {
					t.Fatalf("%d of %d weights are in integers", counts[0], counts[1])
				}
				for _, v := range p.Values {
					if v.Data != nil && v.Data.Len() == c.w.Len() && v.DType != array.Int8 {
						t.Errorf("%s is %v%v", v.Name, v.DType, v.Shape)
					}
				}
				w, _, _ := rounded(c.w, 1, c.w.Len()/c.w.Shape[0], 8)
				checkNear(t, modeltest.Run(t, p)["y"], modeltest.Run(t, modeltest.Import(t, replaced(floats, "w", w)))["y"])
			})
		}
	}
}

// TestKernelsStayFloats where the storage says so; matrices do not.
func TestKernelsStayFloats(t *testing.T) {
	m := modeltest.New().Input("x", 1, 64, 5, 5).Constant("k", 64, 64, 3, 3).Constant("w", 64, 64, 1, 1).
		Node("c = Conv x k", modeltest.Same3x3).Node("y = Conv c w").Output("y")
	if _, counts := importedAs(t, m, array.Storage{WeightBits: 8, FloatKernels: true}); counts != [2]int{1, 2} {
		t.Errorf("%d of %d weights are in integers, want the matrix alone", counts[0], counts[1])
	}
}

// TestSingleElementsMultiplyRowsOfRoundedData: with fast numerics a convolution by them is a product of rows, whose
// weights are in integers.
func TestSingleElementsMultiplyRowsOfRoundedData(t *testing.T) {
	w := signed(72, 64, 1, 1)
	m := modeltest.New().Input("x", 2, 64, 3, 5).Known("w", w).Node("y = Conv x w").Output("y")
	p, counts := importedAs(t, m, array.Storage{WeightBits: 8, Type: array.BFloat16, Constants: true})
	if names := fmt.Sprint(modeltest.TaskNames(p)); counts != [2]int{1, 1} || !strings.Contains(names, "matmul") {
		t.Errorf("%d weights are in integers, tasks are %s", counts[0], names)
	}
	rows, _, _ := rounded(w, 1, 64, 8)
	checkNear(t, modeltest.Run(t, p)["y"], modeltest.Run(t, modeltest.Import(t, replaced(m, "w", rows)))["y"])
}
