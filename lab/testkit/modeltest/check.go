package modeltest

import (
	"bytes"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
)

// Check checks that every element is written before it is read, and that arguments fit the workloads.
func Check(t *testing.T, p *program.Program) {
	t.Helper()
	c := written{p, map[int][]byte{}}
	for _, k := range p.Inputs {
		c.write(k)
	}
	for _, call := range p.Calls {
		args := p.Tasks[call.Task].Workload.Args()
		outputs := len(p.Tasks[call.Task].Workload.Outputs)
		for k, v := range call.Args {
			if !fits(args[k], p.Values[v]) {
				t.Errorf("call %q: argument %d is %+v where %v%v with strides %v is due", call.Name, k, p.Values[v], args[k].DType, args[k].Shape, args[k].Strides)
			}
			if k < len(args)-outputs && !c.isWhole(v) {
				t.Errorf("call %q reads %q before it is computed", call.Name, p.Values[v].Name)
			}
		}
		for _, v := range call.Args[len(args)-outputs:] {
			c.write(v)
		}
	}
	for _, k := range p.Outputs {
		if !c.isWhole(k) || p.Values[k].Strides != nil || p.Values[k].Offset != 0 {
			t.Errorf("output %q is not computed where it is due", p.Values[k].Name)
		}
	}
}

// fits reports whether a kernel's argument has the same layout as the program's value.
func fits(arg *expr.Tensor, v program.Value) bool {
	if arg.DType != v.DType || array.Elements(arg.Shape) != array.Elements(v.Shape) {
		return false
	}
	if arg.Strides == nil {
		return v.Strides == nil && v.Offset*v.DType.Bytes()%program.Alignment == 0
	}
	lies := expr.Tensor{Shape: v.Shape, Strides: v.Strides}
	return arg.SpanElements() == lies.SpanElements()
}

// written tracks the written elements of each root.
type written struct {
	*program.Program
	roots map[int][]byte
}

// maxMarked is the maximum size of a root whose elements are tracked. Larger ones count as complete after any write.
const maxMarked = 1 << 16

func (w written) at(v int) (marks evaluate.Strided, ok bool) {
	value, root := w.Values[v], w.Root(v)
	elements := array.Elements(w.Values[root].Shape)
	if elements > maxMarked {
		return marks, false
	}
	if w.roots[root] == nil {
		w.roots[root] = make([]byte, elements)
	}
	lies := expr.Tensor{Shape: value.Shape, Strides: value.Strides}
	return evaluate.Strided{Data: w.roots[root][value.Offset:], Strides: lies.MemoryStrides()}, true
}

func (w written) write(v int) {
	marks, ok := w.at(v)
	if !ok {
		w.roots[w.Root(v)] = []byte{1}
		return
	}
	shape := w.Values[v].Shape
	ones := bytes.Repeat([]byte{1}, int(array.Elements(shape)))
	evaluate.CopyStrided(array.Uint8, shape, marks, evaluate.Strided{Data: ones, Strides: expr.RowMajorStrides(shape)})
}

func (w written) isWhole(v int) bool {
	if w.Values[w.Root(v)].Data != nil {
		return true
	}
	marks, ok := w.at(v)
	if !ok {
		return w.roots[w.Root(v)] != nil
	}
	shape := w.Values[v].Shape
	read := make([]byte, array.Elements(shape))
	evaluate.CopyStrided(array.Uint8, shape, evaluate.Strided{Data: read, Strides: expr.RowMajorStrides(shape)}, marks)
	return !bytes.Contains(read, []byte{0})
}
