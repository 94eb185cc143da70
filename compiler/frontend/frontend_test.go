package frontend

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// sketch builds small models in tests.
type sketch struct{ *onnx.Model }

func newSketch() sketch {
	return sketch{&onnx.Model{Opsets: []onnx.Opset{{Version: 13}}, Graph: &onnx.Graph{Name: "test"}}}
}

func (s sketch) input(name string, shape ...int64) sketch {
	s.Graph.Inputs = append(s.Graph.Inputs, info(name, shape))
	return s
}

func info(name string, shape []int64) *onnx.ValueInfo {
	v := &onnx.ValueInfo{Name: name, DType: array.Float32, HasShape: true}
	for _, e := range shape {
		v.Shape = append(v.Shape, onnx.Dim{Value: e})
	}
	return v
}

// constant has made-up elements between 0.5 and 1.5.
func (s sketch) constant(name string, shape ...int64) sketch {
	return s.known(name, wave(1, 0.5, shape...))
}

func (s sketch) known(name string, a *array.Array) sketch {
	s.Graph.Initializers = append(s.Graph.Initializers, &onnx.Tensor{Name: name, Value: a})
	return s
}

// node is "result ... = Op operand operand ..."; "_" leaves an operand out.
func (s sketch) node(text string, attributes ...*onnx.Attribute) sketch {
	fields := strings.Fields(text)
	equals := slices.Index(fields, "=")
	inputs := append([]string{}, fields[equals+2:]...)
	for k, name := range inputs {
		if name == "_" {
			inputs[k] = ""
		}
	}
	s.Graph.Nodes = append(s.Graph.Nodes, &onnx.Node{
		Name: "make_" + fields[0], Op: fields[equals+1], Outputs: fields[:equals], Inputs: inputs, Attributes: attributes,
	})
	return s
}

func (s sketch) output(names ...string) *onnx.Model {
	for _, name := range names {
		s.Graph.Outputs = append(s.Graph.Outputs, &onnx.ValueInfo{Name: name})
	}
	return s.Model
}

func intsAttr(name string, v ...int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInts, Ints: v}
}

func intAttr(name string, v int64) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrInt, Int: v}
}

var same3x3 = intsAttr("pads", 1, 1, 1, 1)

// wave has elements centre ± amplitude.
func wave(centre, amplitude float64, shape ...int64) *array.Array {
	a := array.New(array.Float32, shape...)
	for i := range a.Len() {
		a.SetFloat(i, centre+amplitude*math.Sin(float64(i*i%1009)))
	}
	return a
}

func mustImport(t *testing.T, m *onnx.Model) *program.Program {
	t.Helper()
	p, err := Import(m, Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run evaluates a program on made-up inputs.
func run(t *testing.T, p *program.Program) map[string]*array.Array {
	t.Helper()
	inputs := map[string]*array.Array{}
	for _, k := range p.Inputs {
		inputs[p.Values[k].Name] = wave(0, 1, p.Values[k].Shape...)
	}
	outs, err := p.Evaluate(inputs)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

func taskNames(p *program.Program) []string {
	var names []string
	for _, task := range p.Tasks {
		names = append(names, fmt.Sprintf("%d %s", task.Count, task.Name))
	}
	return names
}

func checkTasks(t *testing.T, p *program.Program, want ...string) {
	t.Helper()
	if got := taskNames(p); !reflect.DeepEqual(got, want) {
		t.Errorf("tasks are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPartition(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  []string
	}{
		{
			"a convolution takes bias, activation and residual addition",
			newSketch().input("x", 1, 8, 5, 5).constant("w", 8, 8, 3, 3).constant("b", 8).
				node("c = Conv x w b", same3x3).node("s = Add c x").node("y = Relu s").output("y"),
			[]string{"1 conv2d+add+relu+copy 1x8x5x5 k3x3 -> 8"},
		},
		{
			"equal layers are one task",
			newSketch().input("x", 1, 8, 5, 5).constant("w", 8, 8, 3, 3).constant("v", 8, 8, 3, 3).
				node("m = MaxPool x", intsAttr("kernel_shape", 1, 1)).node("a = Conv m w", same3x3).node("r = Relu a").
				node("b = Conv r v", same3x3).node("s = Relu b").node("g = GlobalAveragePool s").output("g"),
			[]string{"1 maxpool 1x8x5x5 k1x1 -> 8", "2 conv2d+relu 1x5x5x8 k3x3 -> 8", "1 globalavgpool 1x5x5x8 -> 8"},
		},
		{
			"where two convolutions meet, the first operand's takes the addition",
			newSketch().input("x", 1, 8, 5, 5).constant("w", 8, 8, 1, 1).constant("v", 8, 8, 3, 3).
				node("a = Conv x w").node("b = Conv x v", same3x3).node("s = Add a b").node("y = GlobalMaxPool s").output("y"),
			[]string{"1 conv2d 1x8x5x5 k3x3 -> 8", "1 conv2d+add 1x8x5x5 k1x1 -> 8", "1 globalmaxpool 1x5x5x8 -> 8"},
		},
		{
			"a value used twice on the way to one result stays inside",
			newSketch().input("x", 2, 4).constant("w", 4, 4).
				node("a = MatMul x w").node("g = Sigmoid a").node("y = Mul a g").output("y"),
			[]string{"1 matmul+sigmoid+mul 2x4 x 4x4 -> 2x4"},
		},
		{
			"a value with another reader is stored on the way",
			newSketch().input("x", 2, 4).constant("w", 4, 4).
				node("a = MatMul x w").node("g = Relu a").node("y = Softmax a").output("g", "y"),
			[]string{"1 matmul+relu 2x4 x 4x4 -> 2x4", "1 softmax 2x4 axes [1] -> 2x4"},
		},
		{
			"an output is stored on the way",
			newSketch().input("x", 2, 4).constant("w", 4, 4).node("a = MatMul x w").node("y = Relu a").output("a", "y"),
			[]string{"1 matmul+relu 2x4 x 4x4 -> 2x4"},
		},
		{
			"flattening one pixel is an alias, and dropout nothing",
			newSketch().input("x", 1, 8, 5, 5).constant("w", 10, 8).node("g = GlobalAveragePool x").
				node("f = Flatten g").node("d = Dropout f").node("y = Gemm d w", intAttr("transB", 1)).output("y"),
			[]string{"1 globalavgpool 1x8x5x5 -> 8", "1 dense 1x8 -> 10"},
		},
		{
			"flattening more is a store in another order",
			newSketch().input("x", 1, 8, 4, 4).constant("w", 10, 32).node("p = MaxPool x", intsAttr("kernel_shape", 2, 2), intsAttr("strides", 2, 2)).
				node("f = Flatten p").node("y = Gemm f w", intAttr("transB", 1)).output("y"),
			[]string{"1 maxpool+copy 1x8x4x4 k2x2 s2x2 -> 8", "1 dense 1x32 -> 10"},
		},
		{
			"transpositions between heads cost nothing",
			newSketch().input("x", 1, 6, 8).constant("w", 8, 8).node("q = MatMul x w").
				known("heads", array.FromInt64([]int64{1, 6, 2, 4}, 4)).node("h = Reshape q heads").
				node("a = Transpose h", intsAttr("perm", 0, 2, 1, 3)).node("b = Transpose h", intsAttr("perm", 0, 2, 3, 1)).
				node("y = MatMul a b").output("y"),
			[]string{"1 matmul 1x6x8 x 8x8 -> 1x6x8", "1 matmul 1x6x2x4 x 1x2x4x6 -> 1x2x6x6"},
		},
		{
			"an addition behind a reshape by units and a transposition", newSketch().input("x", 6, 8).input("r", 1, 6, 4).constant("w", 8, 4).
				node("d = Gemm x w").known("shape", array.FromInt64([]int64{6, 1, 4}, 3)).node("u = Reshape d shape").
				node("t = Transpose u", intsAttr("perm", 1, 0, 2)).node("s = Add r t").node("y = Softmax s").output("y"),
			[]string{"1 matmul+transpose+add 6x1x8 x 8x4 -> 6x1x4", "1 softmax 1x6x4 axes [2] -> 1x6x4"},
		},
		{
			"a pad joins the convolution",
			newSketch().input("x", 1, 8, 5, 5).constant("w", 8, 8, 3, 3).known("pads", array.FromInt64([]int64{0, 0, 0, 0, 0, 0, 1, 1}, 8)).
				node("p = Pad x pads").node("c = Conv p w").node("y = GlobalMaxPool c").output("y"),
			[]string{"1 conv2d 1x8x5x5 k3x3 -> 8", "1 globalmaxpool 1x4x4x8 -> 8"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustImport(t, c.model)
			checkTasks(t, p, c.want...)
			checkProgram(t, p)
			run(t, p)
		})
	}
}

func TestImportIsDeterministic(t *testing.T) {
	make := func() *program.Program {
		return mustImport(t, newSketch().input("x", 1, 8, 5, 5).constant("w", 8, 8, 3, 3).constant("v", 8, 8, 1, 1).
			node("a = Conv x w", same3x3).node("b = Conv x v").node("s = Add a b").node("y = Relu s").
			node("z = GlobalMaxPool y").output("z", "y"))
	}
	first := make()
	for range 20 {
		if !reflect.DeepEqual(make().Calls, first.Calls) || !reflect.DeepEqual(taskNames(make()), taskNames(first)) {
			t.Fatal("two imports of one model differ")
		}
	}
}

// TestBatchNormsFold compares a model whose statistics are constants, which fold, with one that gets them as inputs.
func TestBatchNormsFold(t *testing.T) {
	gemm := func(s sketch) sketch { return s.constant("w", 6, 4).node("c = Gemm x w _") }
	for _, c := range []struct {
		name  string
		base  func() sketch
		tasks []string
	}{
		{"into a convolution", func() sketch {
			return newSketch().input("x", 1, 6, 3, 3).constant("w", 4, 6, 1, 1).constant("b", 4).node("c = Conv x w b")
		}, []string{"1 conv2d+copy 1x6x3x3 k1x1 -> 4"}},
		{"into a depthwise convolution without bias", func() sketch {
			return newSketch().input("x", 1, 4, 3, 3).constant("w", 4, 1, 2, 2).node("c = Conv x w", intAttr("group", 4))
		}, []string{"1 conv2d+copy 1x4x3x3 k2x2 depthwise -> 4"}},
		{"into a dense layer", func() sketch { return gemm(newSketch().input("x", 2, 6)) }, []string{"1 dense 2x6 -> 4"}},
		{"into nothing", func() sketch {
			return newSketch().input("x", 1, 4, 3, 3).node("c = MaxPool x", intsAttr("kernel_shape", 1, 1))
		}, []string{"1 maxpool+mul+add+copy 1x4x3x3 k1x1 -> 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := []string{"scale", "bias", "mean", "var"}
			folded, plain := c.base(), c.base()
			for k, name := range params {
				a := wave(1, 0.5, 4)
				a.SetFloat(0, 0.3+float64(k))
				folded.known(name, a)
				plain.input(name, 4)
			}
			const node = "y = BatchNormalization c scale bias mean var"
			p, q := mustImport(t, folded.node(node).output("y")), mustImport(t, plain.node(node).output("y"))
			checkTasks(t, p, c.tasks...)
			inputs := map[string]*array.Array{"x": wave(0, 1, p.Values[p.Inputs[0]].Shape...)}
			got, err := p.Evaluate(inputs)
			if err != nil {
				t.Fatal(err)
			}
			for _, tensor := range folded.Graph.Initializers {
				inputs[tensor.Name] = tensor.Value
			}
			want, err := q.Evaluate(inputs)
			if err != nil {
				t.Fatal(err)
			}
			if err := compare(got["y"], want["y"]); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLayoutsDoNotChangeResults checks outputs that are inputs, constants, views and repeated, against numpy's rules.
func TestOutputsOfEveryKind(t *testing.T) {
	m := newSketch().input("x", 2, 3).known("k", array.FromFloat32([]float32{5}, 1)).
		node("t = Transpose x").node("i = Identity x").node("s = Identity t").output("x", "t", "i", "s", "k")
	outs := run(t, mustImport(t, m))
	x := wave(0, 1, 2, 3)
	for name, want := range map[string]*array.Array{
		"x": x, "i": x, "t": op.Arrange(x, []int{1, 0}), "s": op.Arrange(x, []int{1, 0}), "k": array.FromFloat32([]float32{5}, 1),
	} {
		if outs[name] == nil {
			t.Errorf("output %q is missing", name)
		} else if err := compare(outs[name], want); err != nil {
			t.Errorf("output %q: %v", name, err)
		}
	}
}

func TestLayerNormsAreRecognised(t *testing.T) {
	written := func(axis int64) *onnx.Model {
		mean := intsAttr("axes", axis)
		return newSketch().input("x", 2, 5, 8).constant("scale", 8).constant("bias", 8).
			known("two", array.FromFloat32([]float32{2})).known("eps", array.FromFloat32([]float32{1e-5})).
			node("m = ReduceMean x", mean).node("d = Sub x m").node("p = Pow d two").node("v = ReduceMean p", mean).
			node("e = Add v eps").node("r = Sqrt e").node("n = Div d r").node("g = Mul n scale").node("y = Add g bias").output("y")
	}
	p := mustImport(t, written(-1))
	checkTasks(t, p, "1 layernorm 2x5x8 -> 2x5x8")
	q := mustImport(t, written(-2)) // another axis: not recognised
	if len(q.Tasks) < 4 {
		t.Errorf("normalisation of another axis became %v", taskNames(q))
	}
	got := run(t, p)["y"]
	x, scale := wave(0, 1, 2, 5, 8), wave(1, 0.5, 8)
	for row := range int64(10) {
		var mean, variance float64
		for k := range int64(8) {
			mean += x.Float(row*8+k) / 8
		}
		for k := range int64(8) {
			variance += math.Pow(x.Float(row*8+k)-mean, 2) / 8
		}
		for k := range int64(8) {
			want := (x.Float(row*8+k)-mean)/math.Sqrt(variance+1e-5)*scale.Float(k) + scale.Float(k)
			if g := got.Float(row*8 + k); math.Abs(g-want) > 1e-5 {
				t.Fatalf("row %d element %d is %g, want %g", row, k, g, want)
			}
		}
	}
}

// TestNormsInOtherFormsAreRecognised has what exporters write for normalisation beside the form with all parts.
func TestNormsInOtherFormsAreRecognised(t *testing.T) {
	mean := intsAttr("axes", -1)
	start := func() sketch {
		return newSketch().input("x", 2, 5, 8).constant("scale", 8).constant("bias", 8).
			known("one", array.FromFloat32([]float32{1})).known("eps", array.FromFloat32([]float32{1e-5}))
	}
	centred := func() sketch {
		return start().node("m = ReduceMean x", mean).node("d = Sub x m").node("p = Mul d d").node("v = ReduceMean p", mean).
			node("e = Add v eps").node("r = Sqrt e")
	}
	square := func() sketch {
		return start().node("p = Mul x x").node("v = ReduceMean p", mean).node("e = Add v eps").node("r = Sqrt e")
	}
	for name, c := range map[string]struct {
		s    sketch
		want string
	}{
		"no scale":                         {centred().node("y = Div d r"), "1 layernorm 2x5x8 -> 2x5x8"},
		"no bias":                          {centred().node("n = Div d r").node("y = Mul n scale"), "1 layernorm 2x5x8 -> 2x5x8"},
		"reciprocal":                       {centred().node("i = Reciprocal r").node("n = Mul d i").node("g = Mul n scale").node("y = Add g bias"), "1 layernorm 2x5x8 -> 2x5x8"},
		"root mean square":                 {square().node("n = Div x r").node("y = Mul scale n"), "1 rmsnorm 2x5x8 -> 2x5x8"},
		"root mean square, one over":       {square().node("i = Div one r").node("n = Mul x i").node("y = Mul scale n"), "1 rmsnorm 2x5x8 -> 2x5x8"},
		"root mean square without a scale": {square().node("y = Div x r"), "1 rmsnorm 2x5x8 -> 2x5x8"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.s.output("y")
			p := mustImport(t, m)
			checkTasks(t, p, c.want)
			checkMeaning(t, m, p)
		})
	}
}

func TestMeansOverDifferentAxesAreNoLayerNorm(t *testing.T) {
	all, last := intsAttr("axes", 0, 1), intsAttr("axes", -1)
	m := newSketch().input("x", 2, 8).constant("scale", 8).constant("bias", 8).
		known("two", array.FromFloat32([]float32{2})).known("eps", array.FromFloat32([]float32{1e-5})).
		node("m = ReduceMean x", all).node("d = Sub x m").node("p = Pow d two").node("v = ReduceMean p", last).
		node("e = Add v eps").node("r = Sqrt e").node("n = Div d r").node("g = Mul n scale").node("y = Add g bias").output("y")
	if p := mustImport(t, m); len(p.Tasks) < 2 {
		t.Errorf("became %v", taskNames(p))
	}
}

// Each link of the chain reads the one before twice: as one expression forty of them would have 2^40 nodes.
func TestChainOfDoublingsStaysSmall(t *testing.T) {
	s := newSketch().input("x0", 2, 8)
	for k := range 40 {
		s = s.node(fmt.Sprintf("x%d = Add x%d x%d", k+1, k, k))
	}
	p := mustImport(t, s.output("x40"))
	got := run(t, p)["x40"]
	if want := 0x1p40 * wave(0, 1, 2, 8).Float(3); math.Abs(got.Float(3)/want-1) > 1e-5 {
		t.Errorf("got %g, want %g", got.Float(3), want)
	}
}

func TestImportRefuses(t *testing.T) {
	sequence := newSketch().input("x", 1)
	sequence.Graph.Inputs[0].Kind = "sequence"
	foreign := newSketch().input("x", 1).node("y = Relu x")
	foreign.Graph.Nodes[0].Domain = "com.example"
	for _, c := range []struct {
		name  string
		model *onnx.Model
		want  string
	}{
		{"unknown operator", newSketch().input("x", 1).node("y = Fancy x").output("y"),
			`node "make_y" (Fancy, opset 13): the operator is not supported`},
		{"foreign domain", foreign.output("y"), `node "make_y" (Relu, opset 0): operators of domain "com.example" are not supported`},
		{"sequence", sequence.output("x"), `input "x" is a sequence: only tensors are supported`},
		{"dangling operand", newSketch().node("y = Relu x").output("y"),
			`node "make_y" (Relu): input "x" is computed by no earlier node`},
		{"missing output", newSketch().output("y"), `output "y" is computed by no node`},
		{"computed twice", newSketch().input("x", 1).node("y = Relu x").node("y = Relu x").output("y"),
			`node "make_y" (Relu): value "y" is computed twice`},
		{"dynamic shape", newSketch().input("x", 1).input("s", 1).node("y = Reshape x s").output("y"),
			`node "make_y" (Reshape, opset 13): input 1 (shape) is not constant: dynamic shapes are not supported`},
		{"shapes that do not fit", newSketch().input("x", 2).input("z", 3).node("y = Add x z").output("y"),
			`node "make_y" (Add, opset 13): input 1: shapes [2] and [3] cannot be broadcast`},
		{"attribute of a wrong type", newSketch().input("x", 2).node("y = Softmax x", intsAttr("axis", 0)).output("y"),
			`attribute "axis" has type 7 where 2 is due`},
		{"groups that do not fit", newSketch().input("x", 1, 6, 3, 3).constant("w", 4, 6, 1, 1).
			node("y = Conv x w", intAttr("group", 4)).output("y"), "and 4 groups do not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Import(c.model, Options{Verify: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
