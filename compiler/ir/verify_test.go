package ir_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// TestVerifyNamesWhatIsWrong checks programs, of which each except the first has one fault.
func TestVerifyNamesWhatIsWrong(t *testing.T) {
	out := &ir.Buffer{Tensor: ir.Flat("out", array.Float32, 8), Space: ir.Argument}
	scratch := &ir.Buffer{Tensor: ir.Flat("s", array.Float32, 8), Space: ir.Scratch}
	i, j := &expr.Var{Name: "i", Extent: 8}, &expr.Var{Name: "j", Extent: 8}
	one := expr.F(array.Float32, 1)
	store := func(b *ir.Buffer, index expr.Expr) *ir.Store { return &ir.Store{Buffer: b, Index: index, Value: one} }
	loop := func(v *expr.Var, kind ir.Kind, extent int64, body ...ir.Stmt) *ir.For {
		return &ir.For{Var: v, Extent: extent, Kind: kind, Body: body}
	}
	every := func(n *ir.For, first expr.Expr, step int64) *ir.For {
		n.Range = &ir.Range{First: first, End: expr.I(8), Every: step}
		return n
	}
	tiled := func(n *ir.For) *ir.For {
		n.Tiles = &ir.Tiles{Count: 9, Max: 2}
		return n
	}
	load := &ir.Instruction{Name: "load", By: ir.ByThread, Params: []ir.Param{{Name: "to", Use: ir.Write, In: ir.Private}}}
	for want, body := range map[string]ir.Block{
		"": {&ir.Alloc{Buffer: scratch}, loop(i, ir.Parallel, 8, store(out, i), loop(j, ir.Vector, 8, store(scratch, j)))},
		"variable j is used where it is not bound": {loop(i, ir.Serial, 8, store(out, j))},
		"variable i is bound twice":                {loop(i, ir.Serial, 8, loop(i, ir.Serial, 8, store(out, i)))},
		"buffer s is stored to":                    {store(scratch, expr.I(0))},
		"buffer s is read out of scope":            {&ir.Store{Buffer: out, Index: expr.I(0), Value: scratch.Tensor.At(expr.I(0))}},
		"buffer s is allocated twice":              {&ir.Alloc{Buffer: scratch}, &ir.Alloc{Buffer: scratch}},
		"the loop over i has 0 iterations":         {loop(i, ir.Serial, 0, store(out, i))},
		"a vector loop holds a *ir.For":            {loop(i, ir.Vector, 8, loop(j, ir.Serial, 8, store(out, j)))},
		"the walk over j is that of no block":      {every(loop(j, ir.Persistent, 8, store(out, j)), i, 2)},
		"variable i is used where":                 {every(loop(j, ir.Serial, 8, store(out, j)), i, 2)},
		"the loop over j does not go on":           {loop(i, ir.Blocks, 8, every(loop(j, ir.Persistent, 8, store(out, j)), i, 0))},
		"the vector loop over j has a range":       {loop(i, ir.Serial, 8, every(loop(j, ir.Vector, 8, store(out, j)), i, 1))},
		"is read from memory":                      {every(loop(j, ir.Serial, 8, store(out, j)), out.Tensor.At(expr.I(0)), 1)},
		"has tiles for blocks, and is none":        {tiled(loop(i, ir.Serial, 8, store(out, i)))},
		"operand to of load lies in argument":      {loop(i, ir.Threads, 8, ir.Exec(load, ir.At(out, i)))},
		"load is outside a thread loop":            {ir.Exec(load, ir.All(out))},
		"load has 0 operands":                      {loop(i, ir.Threads, 8, ir.Exec(load))},
		"is inside another":                        {loop(i, ir.Parallel, 8, loop(j, ir.Parallel, 8, store(out, j)))},
	} {
		err := (&ir.Func{Args: []*ir.Buffer{out, nil}, Body: body}).Verify()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
