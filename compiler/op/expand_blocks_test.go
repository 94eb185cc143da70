package op_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// nBits is a product of x (3, K) by weights of made-up codes, with the sum of them that is wanted.
type nBits struct {
	depth, columns, block, bits int64
	// zeros is the type of the zero points; Invalid for none.
	zeros array.DType
}

// code and zero are the made-up numbers of a column.
func (c nBits) code(n, k int64) int64 { return (n*n*7 + k*k*3 + n + k) % (1 << c.bits) }

func (c nBits) zero(n, b int64) float64 {
	switch c.zeros {
	case array.Invalid:
		return float64(int64(1) << (c.bits - 1))
	case array.Uint8:
		return float64((5*n + 3*b) % (1 << c.bits))
	}
	return float64(n) - 0.5*float64(b)
}

func (c nBits) scale(n, b int64) float64 { return 0.25 + 0.125*float64((n+2*b)%5) }

func (c nBits) blocks() int64 { return (c.depth-1)/c.block + 1 }

// packed puts integers of some bits side by side in bytes, each row of them by itself.
func packed(rows, each, bits int64, of func(row, k int64) int64, shape ...int64) *array.Array {
	row := (each*bits + 7) / 8
	a := array.New(array.Uint8, shape...)
	for r := range rows {
		for k := range each {
			a.Data[r*row+k*bits/8] |= byte(of(r, k) << (k * bits % 8))
		}
	}
	return a
}

// model has the weights as a MatMulNBits wants them.
func (c nBits) model(attributes ...*onnx.Attribute) modeltest.Model {
	blocks := c.blocks()
	codes := packed(c.columns, blocks*c.block, c.bits, func(n, k int64) int64 {
		if k >= c.depth {
			return 0
		}
		return c.code(n, k)
	}, c.columns, blocks, c.block*c.bits/8)
	scales := array.New(array.Float32, c.columns, blocks)
	for i := range scales.Len() {
		scales.SetFloat(i, c.scale(i/blocks, i%blocks))
	}
	m := modeltest.New().Input("x", 3, c.depth).Known("w", codes).Known("s", scales)
	text := "y = MatMulNBits x w s"
	switch c.zeros {
	case array.Invalid:
	case array.Uint8:
		row := (blocks*c.bits + 7) / 8
		m, text = m.Known("z", packed(c.columns, blocks, c.bits, func(n, b int64) int64 { return int64(c.zero(n, b)) }, c.columns, row)), text+" z"
	default:
		z := array.New(c.zeros, c.columns*blocks)
		for i := range z.Len() {
			z.SetFloat(i, c.zero(i/blocks, i%blocks))
		}
		m, text = m.Known("z", z), text+" z"
	}
	attributes = append([]*onnx.Attribute{
		modeltest.Int("K", c.depth), modeltest.Int("N", c.columns), modeltest.Int("bits", c.bits), modeltest.Int("block_size", c.block),
	}, attributes...)
	return m.Node(text, attributes...)
}

func (c nBits) want(x *array.Array) []float64 {
	var list []float64
	for row := range int64(3) {
		for n := range c.columns {
			sum := 0.0
			for k := range c.depth {
				b := k / c.block
				sum += x.Float(row*c.depth+k) * (float64(c.code(n, k)) - c.zero(n, b)) * c.scale(n, b)
			}
			list = append(list, sum)
		}
	}
	return list
}

// TestMatMulNBits: codes of 2 bits, which are stored as 4, of 4 and of 8, zero points of every kind, and a last block
// that is not whole.
func TestMatMulNBits(t *testing.T) {
	for _, bits := range []int64{2, 4, 8} {
		for _, zeros := range []array.DType{array.Invalid, array.Uint8, array.Float32} {
			for _, depth := range []int64{64, 39} {
				c := nBits{depth: depth, columns: 5, block: 16, bits: bits, zeros: zeros}
				name := fmt.Sprintf("%d bits, zero points %v, depth %d", bits, zeros, depth)
				m := ofRuntime(c.model().Output("y"))
				in, out := evaluated(t, m)
				wantElements(t, name, out["y"], c.want(in["x"]))
				if text := modeltest.Import(t, m).Tasks[0].Workload.Text(); !strings.Contains(text, fmt.Sprintf("u8[%d,5]", (depth*max(bits, 4)+7)/8)) {
					t.Errorf("%s: codes are not packed in\n%s", name, text)
				}
			}
		}
	}
}

func TestMatMulNBitsRefuses(t *testing.T) {
	c := nBits{depth: 64, columns: 5, block: 16, bits: 4}
	order := array.New(array.Int32, 64)
	order.SetInt(5, 3)
	short := func(m modeltest.Model, name string, shape ...int64) modeltest.Model {
		for _, known := range m.Graph.Initializers {
			if known.Name == name {
				known.Value = array.New(known.Value.DType, shape...)
			}
		}
		return m
	}
	of := func(depth, columns, block, bits int64) modeltest.Model {
		m := c.model()
		for k, v := range []int64{depth, columns, bits, block} {
			m.Graph.Nodes[0].Attributes[k].Int = v
		}
		return m
	}
	reordered := c.model().Known("g", order)
	reordered.Graph.Nodes[0].Inputs = append(reordered.Graph.Nodes[0].Inputs, "", "g")
	open := c.model().Input("v", 5, 4)
	open.Graph.Nodes[0].Inputs[2] = "v"
	for _, r := range []struct {
		model modeltest.Model
		want  string
	}{
		{of(63, 5, 16, 4), "input 0 f32[3 64] does not have K=63 elements in each row"},
		{of(64, 5, 16, 3), "weights of 3 bits are not supported"},
		{of(64, 5, 24, 4), "block_size 24 is not a power of two"},
		{of(64, 5, 8, 4), "block_size 8 is not a power of two from 16"},
		{of(64, 6, 16, 4), "input 1 u8[5 4 8] has not the codes of N=6 columns"},
		{short(c.model(), "w", 5, 4, 7), "input 1 u8[5 4 7] has not the codes of N=5 columns in 4 blocks of 16: want u8[5 4 8]"},
		{short(c.model(), "s", 5, 3), "input 2 f32[5 3] has not a scale for each of 4 blocks of N=5 columns"},
		{short(nBits{64, 5, 16, 4, array.Uint8}.model(), "z", 5, 1), "input 3 u8[5 1] has not a zero point for each of 4 blocks"},
		{reordered, "input 4 (g_idx), which reorders columns, is not supported"},
		{open, "weights, scales or zero points are not constants"},
	} {
		_, err := frontend.Import(ofRuntime(r.model.Output("y")), frontend.Options{})
		if err == nil || !strings.Contains(err.Error(), r.want) {
			t.Errorf("%v, want %q", err, r.want)
		}
	}
}

// TestTrivialOrdersOfColumnsAreTaken, and a bias is added.
func TestTrivialOrdersOfColumnsAreTaken(t *testing.T) {
	c := nBits{depth: 32, columns: 3, block: 16, bits: 4}
	order := array.New(array.Int32, 32)
	for k := range order.Len() {
		order.SetInt(k, k/16)
	}
	m := c.model().Known("g", order).Constant("b", 3)
	m.Graph.Nodes[0].Inputs = append(m.Graph.Nodes[0].Inputs, "", "g", "b")
	in, out := evaluated(t, ofRuntime(m.Output("y")))
	want := c.want(in["x"])
	for i := range want {
		want[i] += modeltest.Wave(1, 0.5, 3).Float(int64(i % 3))
	}
	wantElements(t, "with a bias", out["y"], want)
}

// TestProductsOfFloatsWithDequantisedWeights: weights stay packed, whatever their type, the axis of their scales and
// the size of blocks, and the product is that of the floats.
func TestProductsOfFloatsWithDequantisedWeights(t *testing.T) {
	const i8, u8 = array.Int8, array.Uint8
	for _, c := range []struct {
		name        string
		d           array.DType
		low, high   int64
		axis, block int64
		scales      []int64
		gemm        bool
		want        string
		turned      bool
	}{
		{"bytes by block", u8, 0, 255, 0, 8, []int64{3, 9}, false, "u8[24,9]", false},
		{"bytes with a sign", i8, -128, 127, 0, 8, []int64{3, 9}, false, "u8[24,9]", false},
		{"four bits", u8, 0, 15, 0, 8, []int64{3, 9}, false, "u8[12,9]", false},
		{"four bits with a sign", i8, -8, 7, 0, 8, []int64{3, 9}, false, "u8[12,9]", false},
		{"a last block that is not whole", i8, -8, 7, 0, 10, []int64{3, 9}, false, "u8[12,9]", false},
		{"by column", i8, -8, 7, 1, 0, []int64{9}, false, "u8[12,9]", false},
		{"by column from the last axis", i8, -8, 7, -1, 0, []int64{9}, false, "u8[12,9]", false},
		{"one scale", i8, -128, 127, 1, 0, nil, false, "u8[24,9]", false},
		{"transposed", i8, -8, 7, 1, 8, []int64{9, 3}, true, "u8[12,9]", false},
		{"blocks of columns", i8, -8, 7, 1, 3, []int64{24, 3}, false, "", false},
		{"a transposition", i8, -8, 7, 1, 8, []int64{9, 3}, true, "u8[12,9]", true},
		{"a transposition of columns", i8, -8, 7, 0, 0, []int64{9}, true, "u8[12,9]", true},
		{"a transposition of bytes with one scale", u8, 0, 255, 0, 0, nil, true, "u8[24,9]", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape := []int64{24, 9}
			if c.gemm {
				shape = []int64{9, 24}
			}
			zeros := numbers(c.d, c.low, c.high, c.scales...)
			m := modeltest.New().Opset(21).Input("x", 5, 24).Known("iw", numbers(c.d, c.low, c.high, shape...)).
				Known("sw", modeltest.Wave(0.02, 0.01, c.scales...)).Known("zw", zeros)
			dequantised := []*onnx.Attribute{modeltest.Int("axis", c.axis)}
			if c.block > 0 {
				dequantised = append(dequantised, modeltest.Int("block_size", c.block))
			}
			m = m.Node("w = DequantizeLinear iw sw zw", dequantised...)
			switch {
			case c.turned:
				m = m.Node("wt = Transpose w", modeltest.Ints("perm", 1, 0)).Node("y = MatMul x wt")
			case c.gemm:
				m = m.Constant("b", 9).Node("y = Gemm x w b", modeltest.Int("transB", 1))
			default:
				m = m.Node("y = MatMul x w")
			}
			p := modeltest.Import(t, m.Output("y"))
			if text := p.Tasks[0].Workload.Text(); c.want != "" && !strings.Contains(text, c.want) || strings.Contains(text, "f32[24,9]") != (c.want == "") {
				t.Errorf("weights are not %s in\n%s", c.want, text)
			}
			x := modeltest.Wave(0, 1, 5, 24)
			out, err := evaluate.Program(p, map[string]*array.Array{"x": x})
			if err != nil {
				t.Fatal(err)
			}
			wantElements(t, c.name, out["y"], wantedProduct(x, m.Model, c.gemm, c.axis, c.block))
		})
	}
}

// wantedProduct returns that of x by the weights of a model, dequantised.
func wantedProduct(x *array.Array, m *onnx.Model, gemm bool, axis, block int64) (want []float64) {
	known := map[string]*array.Array{}
	for _, c := range m.Graph.Initializers {
		known[c.Name] = c.Value
	}
	codes, scale, zero, bias := known["iw"], known["sw"], known["zw"], known["b"]
	for i := range x.Shape[0] {
		for n := range int64(9) {
			sum := 0.0
			for k := range int64(24) {
				at := []int64{k, n}
				if gemm {
					at = []int64{n, k}
				}
				code := codes.Int(at[0]*codes.Shape[1] + at[1])
				if block > 0 {
					at[axis] /= block
					at = []int64{at[0]*scale.Shape[1] + at[1]}
				} else {
					at = []int64{n % scale.Len()}
				}
				sum += x.Float(i*24+k) * float64(code-zero.Int(at[0])) * scale.Float(at[0])
			}
			if bias != nil {
				sum += bias.Float(n)
			}
			want = append(want, sum)
		}
	}
	return want
}

// TestSymmetricBytesKeepTheirSign, and need no zero point.
func TestSymmetricBytesKeepTheirSign(t *testing.T) {
	for _, zeros := range []bool{true, false} {
		m := modeltest.New().Opset(21).Input("x", 5, 24).Known("iw", numbers(array.Int8, -127, 127, 24, 9)).
			Known("sw", modeltest.Wave(0.02, 0.01, 9)).Known("zw", array.New(array.Int8, 9))
		text := "w = DequantizeLinear iw sw"
		if zeros {
			text += " zw"
		}
		m = m.Node(text, modeltest.Int("axis", 1)).Node("y = MatMul x w")
		p := modeltest.Import(t, m.Output("y"))
		if text := p.Tasks[0].Workload.Text(); !strings.Contains(text, "i8[24,9]") || strings.Contains(text, "sub") {
			t.Errorf("codes have lost their sign in\n%s", text)
		}
		x := modeltest.Wave(0, 1, 5, 24)
		out, err := evaluate.Program(p, map[string]*array.Array{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		wantElements(t, text, out["y"], wantedProduct(x, m.Model, false, 1, 0))
	}
}

// TestDeferredKernelsAreDequantisedOnce: convolutions of floats share the floats of dequantised kernels, transposed
// ones included.
func TestDeferredKernelsAreDequantisedOnce(t *testing.T) {
	k := numbers(array.Int8, -128, 127, 4, 4, 3, 3)
	floats := k.As(array.Float32)
	for i := range floats.Len() {
		floats.SetFloat(i, floats.Float(i)*0.5)
	}
	transposed := modeltest.Ints("perm", 1, 0, 2, 3)
	model := func(m modeltest.Model) *onnx.Model {
		return m.Node("a = Conv x w").Node("b = Conv a w").Node("t = Transpose w", transposed).Node("y = Conv b t").Output("y")
	}
	start := func() modeltest.Model { return modeltest.New().Opset(21).Input("x", 1, 4, 7, 7) }
	p := modeltest.Import(t, model(start().Known("k", k).Known("s", array.FromFloat32([]float32{0.5})).Node("w = DequantizeLinear k s")))
	want := modeltest.Run(t, modeltest.Import(t, model(start().Known("w", floats))))
	if err := modeltest.Compare(modeltest.Run(t, p)["y"], want["y"]); err != nil {
		t.Error(err)
	}
	kernels := 0
	for _, v := range p.Values {
		if v.Data != nil && v.Data.Len() == k.Len() {
			kernels++
		}
	}
	if kernels != 2 {
		t.Errorf("%d constants of kernels, want those and the transposed ones", kernels)
	}
}

// TestConvolutionsOfFloatsKeepTheirKernelsAsIntegers, unless kernels become floats, with the results of the floats.
func TestConvolutionsOfFloatsKeepTheirKernelsAsIntegers(t *testing.T) {
	const out = 64
	pads := modeltest.Ints("pads", 1, 0, 0, 1)
	scales := array.FromFloat32(modeltest.Wave(0.02, 0.01, out).Float32s(), out)
	for name, c := range map[string]struct {
		kernels, scale, zero *array.Array
		groups               int64
		floats               bool
	}{
		"signed":                    {numbers(array.Int8, -128, 127, out, 32, 3, 3), scales, nil, 1, false},
		"one scale":                 {numbers(array.Int8, -128, 127, out, 32, 3, 3), array.FromFloat32([]float32{0.01}), nil, 1, false},
		"centred":                   {numbers(array.Uint8, 0, 255, out, 32, 3, 3), scales, numbers(array.Uint8, 128, 128, out), 1, false},
		"each its zero point":       {numbers(array.Uint8, 0, 255, out, 32, 3, 3), scales, numbers(array.Uint8, 0, 255, out), 1, false},
		"groups":                    {numbers(array.Int8, -128, 127, out, 32, 3, 3), scales, nil, 2, false},
		"groups beyond bytes":       {numbers(array.Uint8, 0, 255, out, 32, 3, 3), scales, numbers(array.Uint8, 0, 255, out), 2, true},
		"floats that storage wants": {numbers(array.Int8, -128, 127, out, 32, 3, 3), scales, nil, 1, true},
		"few weights":               {numbers(array.Int8, -128, 127, out, 4, 3, 3), scales, nil, 1, true},
	} {
		start := func() modeltest.Model {
			return modeltest.New().Opset(21).Input("x", 1, c.kernels.Shape[1]*c.groups, 6, 6).Constant("b", out)
		}
		m := start().Known("k", c.kernels).Known("s", c.scale)
		if c.zero == nil {
			m = m.Node("w = DequantizeLinear k s", modeltest.Int("axis", 0))
		} else {
			m = m.Known("z", c.zero).Node("w = DequantizeLinear k s z", modeltest.Int("axis", 0))
		}
		m = m.Node("y = Conv x w b", pads, modeltest.Int("group", c.groups))
		p, err := frontend.Import(m.Output("y"), frontend.Options{Verify: true, Storage: array.Storage{FloatKernels: name == "floats that storage wants"}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		floats := c.kernels.As(array.Float32)
		for i := range floats.Len() {
			channel, zero := i/(floats.Len()/out), int64(0)
			if c.zero != nil {
				zero = c.zero.Int(channel)
			}
			floats.SetFloat(i, float64(c.kernels.Int(i)-zero)*c.scale.Float(channel%c.scale.Len()))
		}
		want := modeltest.Run(t, modeltest.Import(t, start().Known("w", floats).Node("y = Conv x w b", pads, modeltest.Int("group", c.groups)).Output("y")))
		if err := modeltest.Compare(modeltest.Run(t, p)["y"], want["y"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, v := range p.Values {
			if v.Data != nil && v.Data.Len() == c.kernels.Len() && v.DType.IsFloat() != c.floats {
				t.Errorf("%s: kernels are %v", name, v.DType)
			}
		}
	}
}
