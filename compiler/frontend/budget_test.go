package frontend

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/compiler/program"
)

// importCost imports a model and tells how many bytes that allocated, in all.
func importCost(l op.Limits, m *onnx.Model) (p *program.Program, bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err = importWithin(op.NewBudget(l, m.ConstantBytes()), m, Options{Verify: true})
	runtime.ReadMemStats(&after)
	return p, after.TotalAlloc - before.TotalAlloc, err
}

// chain applies a node 40 times, each to the result of the one before: %d are the numbers of the result and the
// operand.
func chain(m sketch, format string, attributes ...*onnx.Attribute) sketch {
	for k := range 40 {
		m = m.node(strings.NewReplacer("OUT", fmt.Sprint("x", k+1), "IN", fmt.Sprint("x", k)).Replace(format), attributes...)
	}
	return m.node("y = Add in x40")
}

// small are limits that are spent soon.
var small = op.Limits{Nodes: 1 << 12, Bytes: 32 << 20, Steps: 1 << 28}

// A file of three kilobytes that doubled a constant forty times took 4 GiB.
func TestAConstantIsNotDoubledForEver(t *testing.T) {
	m := chain(newSketch().input("in", 1).constant("x0", 1), "OUT = Concat IN IN", intAttr("axis", 0)).output("y")
	_, bytes, err := importCost(op.DefaultLimits, m)
	if err == nil || !strings.Contains(err.Error(), `node "make_x25" (Concat): what is computed while the model is read`) {
		t.Errorf("%v", err)
	}
	if bytes > 1<<30 {
		t.Errorf("import allocated %d MiB", bytes>>20)
	}
}

func TestASmallModelCannotMultiplyItself(t *testing.T) {
	start := func() sketch { return newSketch().input("in", 1) }
	huge := func(name string, v ...int64) sketch { return start().known(name, array.FromInt64(v, int64(len(v)))) }
	one := func() sketch { return start().constant("x0", 1) }
	runtimeInput := func(shape ...int64) sketch { return start().input("x", shape...) }
	cases := []struct {
		name string
		m    sketch
	}{
		{"Concat of itself", chain(one(), "OUT = Concat IN IN", intAttr("axis", 0))},
		{"Tile", chain(one().known("two", array.FromInt64([]int64{2}, 1)), "OUT = Tile IN two")},
		{"Pad", chain(one().known("pads", array.FromInt64([]int64{1 << 20, 1 << 20}, 2)), "OUT = Pad IN pads")},
		{"Expand", huge("s", 1<<30, 2).constant("c", 1).node("e = Expand c s").node("y = Add in e")},
		{"ConstantOfShape", huge("s", 1<<38).node("e = ConstantOfShape s").node("y = Add in e")},
		{"Range", huge("a").known("z", array.FromInt64([]int64{0})).known("n", array.FromInt64([]int64{1 << 38})).
			known("d", array.FromInt64([]int64{1})).node("e = Range z n d").node("y = Cast e", intAttr("to", 1))},
		{"EyeLike", runtimeInput(1<<20, 1<<20).node("e = EyeLike x").node("y = Add in e")},
		{"OneHot", huge("d", 1<<38).known("i", array.FromInt64([]int64{0}, 1)).constant("v", 2).
			node("e = OneHot i d v").node("y = Add in e")},
		{"Resize of an input", runtimeInput(1, 1, 1, 1, 1, 1, 1).constant("roi", 0).
			known("scales", array.FromFloat32([]float32{1 << 23, 1 << 23, 1 << 23, 1 << 23, 1 << 23, 1 << 23, 1}, 7)).
			node("y = Resize x roi scales", &onnx.Attribute{Name: "mode", Type: onnx.AttrString, String: "linear"})},
		{"MatMul", huge("a", 1<<12, 1<<12).node("b = ConstantOfShape a").node("c = MatMul b b").node("d = MatMul c c").
			node("y = Add in d")},
		{"Einsum", huge("a", 1<<8, 1<<8).node("b = ConstantOfShape a").
			node("c = Einsum b b b", &onnx.Attribute{Name: "equation", Type: onnx.AttrString, String: "ab,cd,ef->abcdef"}).
			node("y = Add in c")},
		{"HannWindow", huge("n", 1<<24).opset(17).node("a = HannWindow n").node("b = HannWindow n").node("c = HannWindow n").
			node("d = HannWindow n").node("e = HannWindow n").node("f = HannWindow n").node("g = HannWindow n").
			node("h = HannWindow n").node("y = Sum a b c d e f g h")},
		{"ScatterElements into an input", runtimeInput(1<<36).known("i", array.FromInt64([]int64{0}, 1)).constant("u", 1).
			node("y = ScatterElements x i u")},
		{"ScatterND into an input", runtimeInput(1<<36).known("i", array.FromInt64([]int64{0}, 1, 1)).constant("u", 1).
			node("y = ScatterND x i u")},
		{"steps of an LSTM", runtimeInput(1<<36, 1, 1).constant("w", 1, 4, 1).constant("r", 1, 4, 1).
			known("l", array.New(array.Int32, 1)).node("y = LSTM x w r _ l", intAttr("hidden_size", 1))},
		{"positions of an Attention", runtimeInput(1, 1, 1<<36, 1).opset(23).
			node("y = Attention x x x", intAttr("is_causal", 1))},
		{"rank", huge("s", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1).node("y = Reshape in s")},
		{"nested functions", nestedFunctions(start())},
		{"loop", loopOf(start(), 1<<40, (&onnx.Graph{}))},
		{"weights that many products share", sharedWeights(start())},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, bytes, err := importCost(small, c.m.output("y"))
			if err == nil || !strings.Contains(err.Error(), "node \"") {
				t.Errorf("%v where an error that names the node is due", err)
			}
			if bytes > 96<<20 {
				t.Errorf("import allocated %d MiB", bytes>>20)
			}
		})
	}
}

func TestAnErrorOfImportIsShort(t *testing.T) {
	m := newSketch().input("in", 1).known("s", array.New(array.Int64, 1<<16)).node("y = Reshape in s").output("y")
	if _, err := Import(m, Options{Verify: true}); err == nil || len(err.Error()) > maxError+4 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

func (s sketch) opset(v int64) sketch {
	s.Opsets[0].Version = v
	return s
}

// nestedFunctions has functions that call the next one twice, 30 deep.
func nestedFunctions(m sketch) sketch {
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
	m = m.node("y = f0 in")
	m.Graph.Nodes[0].Domain = "d"
	return m
}

// loopOf runs a body without nodes.
func loopOf(m sketch, trips int64, body *onnx.Graph) sketch {
	body.Inputs = []*onnx.ValueInfo{{Name: "i"}, {Name: "c"}, {Name: "v"}}
	body.Outputs = []*onnx.ValueInfo{{Name: "c"}, {Name: "v"}}
	return m.known("trips", array.FromInt64([]int64{trips})).
		node("y = Loop trips _ in", &onnx.Attribute{Name: "body", Type: onnx.AttrGraph, Graph: body})
}

// sharedWeights has a thousand products of an input by the same weights, which the compiler would make one.
func sharedWeights(m sketch) sketch {
	m = m.input("x", 1, 1<<10).constant("w", 1<<10, 1<<10)
	var sums []string
	for k := range 1000 {
		m = m.node(fmt.Sprintf("p%d = MatMul x w", k)).node(fmt.Sprintf("r%d = ReduceSum p%d", k, k))
		sums = append(sums, fmt.Sprint("r", k))
	}
	return m.node("y = Sum " + strings.Join(sums, " "))
}
