package frontend_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// importCost imports a model and returns the total of allocated bytes.
func importCost(l op.Limits, m *onnx.Model) (p *program.Program, bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err = frontend.ImportWithin(op.NewBudget(l, m.ConstantBytes()), m, frontend.Options{Verify: true})
	runtime.ReadMemStats(&after)
	return p, after.TotalAlloc - before.TotalAlloc, err
}

// chain applies a node 40 times, each to the result of the one before: %d are the numbers of the result and the
// operand.
func chain(m modeltest.Model, format string, attributes ...*onnx.Attribute) modeltest.Model {
	for k := range 40 {
		m = m.Node(strings.NewReplacer("OUT", fmt.Sprint("x", k+1), "IN", fmt.Sprint("x", k)).Replace(format), attributes...)
	}
	return m.Node("y = Add in x40")
}

// small are limits that are spent soon.
var small = op.Limits{Nodes: 1 << 12, Bytes: 32 << 20, Steps: 1 << 28}

// A file of three kilobytes that doubled a constant forty times took 4 GiB.
func TestConstantIsNotDoubledForEver(t *testing.T) {
	m := chain(modeltest.New().Input("in", 1).Constant("x0", 1), "OUT = Concat IN IN", modeltest.Int("axis", 0)).Output("y")
	_, bytes, err := importCost(op.DefaultLimits, m)
	if err == nil || !strings.Contains(err.Error(), `node "make_x26" (Concat): reading the model takes more than`) {
		t.Errorf("%v", err)
	}
	if bytes > 1<<30 {
		t.Errorf("import allocated %d MiB", bytes>>20)
	}
}

func TestSmallModelCannotMultiplyItself(t *testing.T) {
	start := func() modeltest.Model { return modeltest.New().Input("in", 1) }
	huge := func(name string, v ...int64) modeltest.Model {
		return start().Known(name, array.FromInt64(v, int64(len(v))))
	}
	one := func() modeltest.Model { return start().Constant("x0", 1) }
	runtimeInput := func(shape ...int64) modeltest.Model { return start().Input("x", shape...) }
	cases := []struct {
		name string
		m    modeltest.Model
	}{
		{"Concat of itself", chain(one(), "OUT = Concat IN IN", modeltest.Int("axis", 0))},
		{"Tile", chain(one().Known("two", array.FromInt64([]int64{2}, 1)), "OUT = Tile IN two")},
		{"Pad", chain(one().Known("pads", array.FromInt64([]int64{1 << 20, 1 << 20}, 2)), "OUT = Pad IN pads")},
		{"Expand", huge("s", 1<<30, 2).Constant("c", 1).Node("e = Expand c s").Node("y = Add in e")},
		{"ConstantOfShape", huge("s", 1<<38).Node("e = ConstantOfShape s").Node("y = Add in e")},
		{"Range", huge("a").Known("z", array.FromInt64([]int64{0})).Known("n", array.FromInt64([]int64{1 << 38})).
			Known("d", array.FromInt64([]int64{1})).Node("e = Range z n d").Node("y = Cast e", modeltest.Int("to", 1))},
		{"EyeLike", runtimeInput(1<<20, 1<<20).Node("e = EyeLike x").Node("y = Add in e")},
		{"OneHot", huge("d", 1<<38).Known("i", array.FromInt64([]int64{0}, 1)).Constant("v", 2).
			Node("e = OneHot i d v").Node("y = Add in e")},
		{"Resize of an input", runtimeInput(1, 1, 1, 1, 1, 1, 1).Constant("roi", 0).
			Known("scales", array.FromFloat32([]float32{1 << 23, 1 << 23, 1 << 23, 1 << 23, 1 << 23, 1 << 23, 1}, 7)).
			Node("y = Resize x roi scales", &onnx.Attribute{Name: "mode", Type: onnx.AttrString, String: "linear"})},
		{"MatMul", huge("a", 1<<12, 1<<12).Node("b = ConstantOfShape a").Node("c = MatMul b b").Node("d = MatMul c c").
			Node("y = Add in d")},
		{"Einsum", huge("a", 1<<8, 1<<8).Node("b = ConstantOfShape a").
			Node("c = Einsum b b b", &onnx.Attribute{Name: "equation", Type: onnx.AttrString, String: "ab,cd,ef->abcdef"}).
			Node("y = Add in c")},
		{"HannWindow", huge("n", 1<<24).Opset(17).Node("a = HannWindow n").Node("b = HannWindow n").Node("c = HannWindow n").
			Node("d = HannWindow n").Node("e = HannWindow n").Node("f = HannWindow n").Node("g = HannWindow n").
			Node("h = HannWindow n").Node("y = Sum a b c d e f g h")},
		{"ScatterElements into an input", runtimeInput(1<<36).Known("i", array.FromInt64([]int64{0}, 1)).Constant("u", 1).
			Node("y = ScatterElements x i u")},
		{"ScatterND into an input", runtimeInput(1<<36).Known("i", array.FromInt64([]int64{0}, 1, 1)).Constant("u", 1).
			Node("y = ScatterND x i u")},
		{"steps of an LSTM", runtimeInput(1<<36, 1, 1).Constant("w", 1, 4, 1).Constant("r", 1, 4, 1).
			Known("l", array.New(array.Int32, 1)).Node("y = LSTM x w r _ l", modeltest.Int("hidden_size", 1))},
		{"positions of an Attention", runtimeInput(1, 1, 1<<36, 1).Opset(23).
			Node("y = Attention x x x", modeltest.Int("is_causal", 1))},
		{"rank", huge("s", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1).Node("y = Reshape in s")},
		{"nested functions", nestedFunctions(start())},
		{"loop", loopOf(start(), 1<<40, (&onnx.Graph{}))},
		{"weights that many products share", sharedWeights(start())},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, bytes, err := importCost(small, c.m.Output("y"))
			if err == nil || !strings.Contains(err.Error(), "node \"") {
				t.Errorf("%v where an error that names the node is due", err)
			}
			if bytes > 96<<20 {
				t.Errorf("import allocated %d MiB", bytes>>20)
			}
		})
	}
}

// TestKnownWeightsStayInBytes: reading quantised weights allocates about two bytes for each at most, whatever zero
// point they have: with that of the file, three.
func TestKnownWeightsStayInBytes(t *testing.T) {
	const in, out = 1 << 10, 1 << 11
	bytes := func(d array.DType, shape ...int64) *array.Array {
		a := array.New(d, shape...)
		for i := range a.Len() {
			a.SetInt(i, i*37%251)
		}
		return a
	}
	scale := array.FromFloat32([]float32{0.5})
	start := func() modeltest.Model {
		return modeltest.New().Opset(21).Input("x", 4, in).Known("s", scale).Known("z", bytes(array.Uint8)).
			Known("w", bytes(array.Uint8, in, out)).Known("wt", bytes(array.Uint8, out, in)).Known("wi", bytes(array.Int8, out, in)).
			Known("zw", array.FromInt64([]int64{100}).As(array.Uint8)).Known("zc", bytes(array.Uint8, out)).Known("zb", bytes(array.Uint8, in/32, out)).
			Constant("sc", out).Constant("sb", in/32, out).Input("image", 1, in/4, 5, 5).Known("k", bytes(array.Uint8, out, in/4, 2, 2)).
			Known("ki", bytes(array.Int8, out, in/4, 2, 2))
	}
	dynamic := func() modeltest.Model { return start().Node("q qs qz = DynamicQuantizeLinear x") }
	static := func() modeltest.Model {
		return start().Node("q = QuantizeLinear x s z").Node("qx = DequantizeLinear q s z")
	}
	transB := modeltest.Int("transB", 1)
	for name, m := range map[string]modeltest.Model{
		"MatMulInteger":                    dynamic().Node("y = MatMulInteger q w qz zw"),
		"MatMulInteger, zero per column":   dynamic().Node("y = MatMulInteger q w qz zc"),
		"ConvInteger":                      start().Node("q qs qz = DynamicQuantizeLinear image").Node("y = ConvInteger q k qz zw"),
		"ConvInteger, zero per channel":    start().Node("q qs qz = DynamicQuantizeLinear image").Node("y = ConvInteger q k qz zc"),
		"signed ConvInteger":               start().Node("q qs qz = DynamicQuantizeLinear image").Node("y = ConvInteger q ki qz"),
		"Conv":                             start().Node("q = QuantizeLinear image s z").Node("qx = DequantizeLinear q s z").Node("dw = DequantizeLinear k s zw").Node("y = Conv qx dw"),
		"Conv, per channel":                start().Node("q = QuantizeLinear image s z").Node("qx = DequantizeLinear q s z").Node("dw = DequantizeLinear k sc zc", modeltest.Int("axis", 0)).Node("y = Conv qx dw"),
		"signed Conv":                      start().Node("q = QuantizeLinear image s z").Node("qx = DequantizeLinear q s z").Node("dw = DequantizeLinear ki s").Node("y = Conv qx dw"),
		"Conv of floats":                   start().Node("dw = DequantizeLinear k s zw").Node("y = Conv image dw"),
		"Conv of floats, per channel":      start().Node("dw = DequantizeLinear k sc zc", modeltest.Int("axis", 0)).Node("y = Conv image dw"),
		"signed Conv of floats":            start().Node("dw = DequantizeLinear ki sc", modeltest.Int("axis", 0)).Node("y = Conv image dw"),
		"signed Gemm":                      static().Node("dw = DequantizeLinear wi s").Node("y = Gemm qx dw", transB),
		"Gemm":                             static().Node("dw = DequantizeLinear wt s zw").Node("y = Gemm qx dw", transB),
		"Gemm, per channel":                static().Node("dw = DequantizeLinear wt sc zc", modeltest.Int("axis", 0)).Node("y = Gemm qx dw", transB),
		"MatMul":                           static().Node("dw = DequantizeLinear w s zw").Node("y = MatMul qx dw"),
		"MatMul, per channel":              static().Node("dw = DequantizeLinear w sc zc").Node("y = MatMul qx dw"),
		"MatMul of floats":                 start().Node("dw = DequantizeLinear w s zw").Node("y = MatMul x dw"),
		"MatMul of floats, per channel":    start().Node("dw = DequantizeLinear w sc zc").Node("y = MatMul x dw"),
		"MatMul of floats, per block":      start().Node("dw = DequantizeLinear w sb zb", modeltest.Int("axis", 0), modeltest.Int("block_size", 32)).Node("y = MatMul x dw"),
		"MatMul of floats by a transposed": start().Node("dw = DequantizeLinear wt s zw").Node("t = Transpose dw").Node("y = MatMul x t"),
		"Gemm of floats":                   start().Node("dw = DequantizeLinear wt s zw").Node("y = Gemm x dw", transB),
	} {
		t.Run(name, func(t *testing.T) {
			_, bytes, err := importCost(op.DefaultLimits, m.Output("y"))
			if err != nil {
				t.Fatal(err)
			}
			if bytes > 23*in*out/10 {
				t.Errorf("import allocated %.1f bytes for each weight", float64(bytes)/(in*out))
			}
		})
	}
}

func TestErrorOfImportIsShort(t *testing.T) {
	m := modeltest.New().Input("in", 1).Known("s", array.New(array.Int64, 1<<16)).Node("y = Reshape in s").Output("y")
	if _, err := frontend.Import(m, frontend.Options{Verify: true}); err == nil || len(err.Error()) > frontend.MaxError+5 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

// nestedFunctions has functions that call the next one twice, 30 deep.
func nestedFunctions(m modeltest.Model) modeltest.Model {
	name := func(k int) string { return fmt.Sprint("f", k) }
	for k := range 30 {
		f := &onnx.Function{Name: name(k), Domain: "d", Inputs: []string{"x"}, Outputs: []string{"y"}, Opsets: m.Opsets}
		callee, domain := name(k+1), "d"
		if k == 29 {
			callee, domain = "Relu", ""
		}
		for _, edge := range [][2]string{{"x", "h"}, {"h", "y"}} {
			f.Nodes = append(f.Nodes, &onnx.Node{Op: callee, Domain: domain, Inputs: edge[:1], Outputs: edge[1:]})
		}
		m.Functions = append(m.Functions, f)
	}
	m = m.Node("y = f0 in")
	m.Graph.Nodes[0].Domain = "d"
	return m
}

// loopOf runs a body without nodes.
func loopOf(m modeltest.Model, trips int64, body *onnx.Graph) modeltest.Model {
	body.Inputs = []*onnx.ValueInfo{{Name: "i"}, {Name: "c"}, {Name: "v"}}
	body.Outputs = []*onnx.ValueInfo{{Name: "c"}, {Name: "v"}}
	return m.Known("trips", array.FromInt64([]int64{trips})).
		Node("y = Loop trips _ in", &onnx.Attribute{Name: "body", Type: onnx.AttrGraph, Graph: body})
}

// sharedWeights has a thousand products of an input by the same weights, which the compiler would make one.
func sharedWeights(m modeltest.Model) modeltest.Model {
	m = m.Input("x", 1, 1<<10).Constant("w", 1<<10, 1<<10)
	var sums []string
	for k := range 1000 {
		m = m.Node(fmt.Sprintf("p%d = MatMul x w", k)).Node(fmt.Sprintf("r%d = ReduceSum p%d", k, k))
		sums = append(sums, fmt.Sprint("r", k))
	}
	return m.Node("y = Sum " + strings.Join(sums, " "))
}

// pairs has so many pairs of products of one operand, each pair with a bound of its own, so that no two pairs are
// merged.
func pairs(n int) *onnx.Model {
	m := modeltest.New().Input("x", 1, 4)
	var sums []string
	for k := range n {
		m = m.Known(fmt.Sprint("bound", k), array.FromFloat32([]float32{float32(k)}))
		for _, side := range []string{"l", "r"} {
			name := fmt.Sprint(side, k)
			m = m.Constant("w"+name, 4, 4).Node(fmt.Sprintf("p%s = MatMul x w%s", name, name)).
				Node(fmt.Sprintf("c%s = Clip p%s _ bound%d", name, name, k)).Node(fmt.Sprintf("s%s = ReduceSum c%s", name, name))
			sums = append(sums, "s"+name)
		}
	}
	return m.Node("y = Sum " + strings.Join(sums, " ")).Output("y")
}

// Each pair that was merged had the whole graph gone through again. What import allocates stands for what it does.
func TestMergingSiblingsCostsInProportionToTheirNumber(t *testing.T) {
	cost := func(n int) uint64 {
		p, bytes, err := importCost(op.DefaultLimits, pairs(n))
		if err != nil {
			t.Fatal(err)
		}
		if want := n + 2*n; len(p.Calls) != want {
			t.Fatalf("%d pairs take %d calls, want %d: a product each, and two sums", n, len(p.Calls), want)
		}
		return bytes
	}
	if once, twice := cost(200), cost(400); twice > once*5/2 {
		t.Errorf("import allocates %d bytes, and %d for twice as much", once, twice)
	}
}

// TestWeightsThatProductsTakeAreNotDequantised: reading them costs memory in proportion to their bytes, not to floats
// and scales for each of them, which are eight times as many and more.
func TestWeightsThatProductsTakeAreNotDequantised(t *testing.T) {
	const depth, columns = 2048, 1024
	scale := array.New(array.Float32, depth/32, columns)
	m := modeltest.New().Opset(21).Input("x", 1, depth).Known("codes", array.New(array.Int8, depth, columns)).Known("scale", scale).
		Node("w = DequantizeLinear codes scale", modeltest.Int("axis", 0), modeltest.Int("block_size", 32)).Node("y = MatMul x w").Output("y")
	p, bytes, err := importCost(op.DefaultLimits, m)
	if err != nil {
		t.Fatal(err)
	}
	if bytes > 4*depth*columns {
		t.Errorf("import allocated %d KiB for %d KiB of weights", bytes>>10, depth*columns>>10)
	}
	if len(p.Tasks) != 1 {
		t.Errorf("%d tasks, want the product alone", len(p.Tasks))
	}
}
