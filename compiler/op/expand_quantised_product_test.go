package op_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// numbers returns an array of made-up integers.
func numbers(d array.DType, low, high int64, shape ...int64) *array.Array {
	a := array.New(d, shape...)
	for i := range a.Len() {
		a.SetInt(i, low+(i*i*7+3*i)%(high-low+1))
	}
	return a
}

// quantisedInput adds x, quantised to u8 and back, as qx.
func quantisedInput(shape ...int64) modeltest.Model {
	zero := array.New(array.Uint8)
	zero.SetInt(0, 113)
	return modeltest.New().Input("x", shape...).Known("sx", scalarOf(0.01)).Known("zx", zero).
		Node("q = QuantizeLinear x sx zx").Node("qx = DequantizeLinear q sx zx")
}

func scalarOf(v float64) *array.Array {
	a := array.New(array.Float32)
	a.SetFloat(0, v)
	return a
}

// quantisedWeights adds dequantised i8 weights as w: with a scale for each position on an axis, or one for all where
// axis is negative.
func quantisedWeights(s modeltest.Model, axis int64, shape ...int64) modeltest.Model {
	s = s.Known("iw", numbers(array.Int8, -127, 127, shape...))
	if axis < 0 {
		return s.Known("sw", scalarOf(0.02)).Node("w = DequantizeLinear iw sw")
	}
	return s.Known("sw", modeltest.Wave(0.02, 0.01, shape[axis])).Known("zw", array.New(array.Int8, shape[axis])).
		Node("w = DequantizeLinear iw sw zw", modeltest.Int("axis", axis))
}

// TestProductsOfDequantisedValuesAreOfIntegers compares them with the products of the floats.
func TestProductsOfDequantisedValuesAreOfIntegers(t *testing.T) {
	for _, c := range []struct {
		name     string
		model    modeltest.Model
		integers bool
	}{
		{"MatMul", quantisedWeights(quantisedInput(5, 16), -1, 16, 9).Node("y = MatMul qx w"), true},
		{"MatMul by channel", quantisedWeights(quantisedInput(5, 16), 1, 16, 9).Node("y = MatMul qx w"), true},
		{"Gemm", quantisedWeights(quantisedInput(5, 16), 0, 9, 16).Constant("b", 9).Node("y = Gemm qx w b", modeltest.Int("transB", 1)), true},
		{"Conv 1x1", quantisedWeights(quantisedInput(1, 8, 5, 6), 0, 6, 8, 1, 1).Constant("b", 6).Node("y = Conv qx w b"), true},
		{"Conv 3x3 with strides", quantisedWeights(quantisedInput(1, 8, 5, 6), 0, 6, 8, 3, 3).Node("y = Conv qx w", modeltest.Ints("strides", 2, 2), modeltest.Same3x3), true},
		{"Conv 3x3", quantisedWeights(quantisedInput(1, 8, 5, 6), 0, 6, 8, 3, 3).Node("y = Conv qx w", modeltest.Same3x3), true},
		{"odd depth", quantisedWeights(quantisedInput(5, 15), -1, 15, 9).Node("y = MatMul qx w"), false},
		{"scale along the depth", quantisedWeights(quantisedInput(5, 16), 0, 16, 9).Node("y = MatMul qx w"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.model.Output("y")
			p := modeltest.Import(t, m)
			sums := 0
			for _, task := range p.Tasks {
				sums += strings.Count(task.Workload.Text(), "(mul (cast i32 ")
			}
			if (sums > 0) != c.integers {
				t.Errorf("%d sums of integers in\n%s", sums, p.Tasks[len(p.Tasks)-1].Workload.Text())
			}
			// The same product of the values that the dequantisations give, which are model inputs of the second
			// program.
			floats := modeltest.Import(t, withoutQuantisation(t, m, p.Values[p.Inputs[0]].Shape))
			want := modeltest.Run(t, floats)["y"]
			got := modeltest.Run(t, p)["y"]
			for i := range want.Len() {
				if d := math.Abs(got.Float(i) - want.Float(i)); d > 1e-5*(1+math.Abs(want.Float(i))) {
					t.Fatalf("element %d is %g, the product of floats %g", i, got.Float(i), want.Float(i))
				}
			}
		})
	}
}

// withoutQuantisation is what follows the quantisation of a model on constants: its data quantised and dequantised
// here, its weights, if any, likewise.
func withoutQuantisation(t *testing.T, m *onnx.Model, shape []int64) *onnx.Model {
	t.Helper()
	known := map[string]*array.Array{}
	for _, c := range m.Graph.Initializers {
		known[c.Name] = c.Value
	}
	data := modeltest.Wave(0, 1, shape...)
	for i := range data.Len() {
		q := min(max(math.RoundToEven(float64(float32(data.Float(i))/float32(0.01)))+113, 0), 255)
		data.SetFloat(i, (q-113)*float64(float32(0.01)))
	}
	s := modeltest.New().Known("qx", data)
	for _, n := range m.Graph.Nodes {
		if n.Op != "QuantizeLinear" && n.Op != "DequantizeLinear" {
			s.Graph.Nodes = append(s.Graph.Nodes, n)
		}
	}
	integers := known["iw"]
	if integers == nil {
		return s.Output("y")
	}
	weights := array.New(array.Float32, integers.Shape...)
	axis, scale := int64(0), known["sw"]
	for _, n := range m.Graph.Nodes {
		if n.Outputs[0] == "w" && len(n.Attributes) > 0 {
			axis = n.Attributes[0].Int
		}
	}
	inner := array.Elements(integers.Shape[axis+1:])
	for i := range weights.Len() {
		weights.SetFloat(i, float64(integers.Int(i))*scale.Float(i/inner%integers.Shape[axis]%scale.Len()))
	}
	s = s.Known("w", weights)
	if b := known["b"]; b != nil {
		s = s.Known("b", b)
	}
	return s.Output("y")
}

// TestThreeChannelsAreFour: the zero channels that are added to an integer convolution change no sum, with a zero
// point neither.
func TestThreeChannelsAreFour(t *testing.T) {
	zero := array.New(array.Uint8)
	zero.SetInt(0, 7)
	w := numbers(array.Int8, -127, 127, 5, 3, 3, 3)
	m := modeltest.New().Known("w", w).Known("zx", zero).Node("y = ConvInteger x w zx", modeltest.Same3x3)
	m.Graph.Inputs = append(m.Graph.Inputs, modeltest.Info("x", []int64{1, 3, 4, 6}))
	m.Graph.Inputs[0].DType = array.Uint8
	p := modeltest.Import(t, m.Output("y"))
	x := numbers(array.Uint8, 0, 255, 1, 3, 4, 6)
	outs, err := evaluate.Program(p, map[string]*array.Array{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	y := outs["y"]
	for i := range y.Len() {
		oc, row, column, want := i/24, i/6%4, i%6, int64(0)
		for k := range int64(27) {
			c, r, q := k/9, row+k/3%3-1, column+k%3-1
			if r >= 0 && r < 4 && q >= 0 && q < 6 {
				want += (x.Int(c*24+r*6+q) - 7) * w.Int(oc*27+k)
			}
		}
		if y.Int(i) != want {
			t.Fatalf("element %d is %d, want %d", i, y.Int(i), want)
		}
	}
	if text := p.Tasks[len(p.Tasks)-1].Workload.Text(); !strings.Contains(text, "over 3,3,4") {
		t.Errorf("the sum is not over four channels:\n%s", text)
	}
}

// TestIntegersAreStoredRatherThanFloats: what several kernels read of a dequantised value are the integers, and the
// addition at the end of a residual block makes floats of them by itself.
func TestIntegersAreStoredRatherThanFloats(t *testing.T) {
	m := quantisedWeights(quantisedInput(1, 8, 5, 6), 0, 8, 8, 1, 1).
		Node("a = Conv qx w").Node("ra = Relu a").Node("qa = QuantizeLinear ra sx zx").Node("da = DequantizeLinear qa sx zx").
		Node("b = Conv da w").Node("qb = QuantizeLinear b sx zx").Node("db = DequantizeLinear qb sx zx").
		Node("y = Add db da").Output("y")
	p := modeltest.Import(t, m)
	if len(p.Calls) != 3 {
		t.Errorf("%d kernels, want one that quantises and two convolutions", len(p.Calls))
	}
	for _, v := range p.Values {
		if v.DType == array.Float32 && v.Data == nil && v.Name != "x" && v.Name != "y" {
			t.Errorf("%s is stored as floats", v.Name)
		}
	}
}
