package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// fewBits is the operand width that Few stands for, in bits.
const fewBits = 4

// Dot replaces each reduction step in a dotted loop, acc[lane] += a[lane,k] * b[lane,k] over all k, by a dot-product
// instruction where has reports support for the types and number of terms. Other dotted loops become serial.
// Reduction steps may be separated, since each has accumulators of its own; other statements stay together.
func Dot(f *ir.Func, has func(t machine.DotTypes, terms int64) bool) *ir.Func {
	return mapKind(f, ir.Dot, func(n *ir.For, in ir.Allocated) ir.Block { return products(n, in, has) })
}

func products(n *ir.For, in ir.Allocated, has func(machine.DotTypes, int64) bool) ir.Block {
	serial := func(body ir.Block) *ir.For {
		loop := n.With(body)
		loop.Kind = ir.Serial
		return loop
	}
	if slices.ContainsFunc(n.Body, func(st ir.Stmt) bool { return !isStep(st) }) {
		return ir.Block{serial(n.Body)}
	}
	var out ir.Block
	for _, st := range n.Body {
		if p := dotProduct(n, st, in, has); p != nil {
			out = append(out, p...)
			continue
		}
		out = append(out, serial(ir.Block{st}))
	}
	return out
}

// isStep reports whether a statement is a reduction step, for one element or a vector.
func isStep(st ir.Stmt) bool {
	if lane, ok := st.(*ir.For); ok && lane.Kind == ir.Vector && len(lane.Body) == 1 {
		st = lane.Body[0]
	}
	store, ok := st.(*ir.Store)
	if !ok {
		return false
	}
	op, _, ok := store.Step()
	d := store.Buffer.Tensor.DType
	return ok && op == expr.Add && (d.IsInt() || d == array.Float32)
}

// dotProduct returns a vectorized step as one instruction, preceded by the loads of its operands, or nil.
func dotProduct(n *ir.For, st ir.Stmt, in ir.Allocated, has func(machine.DotTypes, int64) bool) ir.Block {
	lane, ok := st.(*ir.For)
	if !ok || lane.Kind != ir.Vector {
		return nil
	}
	_, term, _ := lane.Body[0].(*ir.Store).Step()
	x, y, ok := schedule.Factors(term)
	if !ok {
		return nil
	}
	types := func(a, b *expr.Load) machine.DotTypes {
		bits := in.Bits(a.Tensor)
		return machine.DotTypes{A: a.DType(), B: b.DType(), Few: bits > 0 && bits <= fewBits}
	}
	of := types(y, x)
	if !has(of, n.Extent) {
		if of = types(x, y); !has(of, n.Extent) {
			return nil
		}
	}
	dot := machine.Dot{DotTypes: of, Terms: n.Extent, Lanes: lane.Extent}.Instruction()
	found, err := tensorize(ir.Block{n.With(ir.Block{st})}, dot, in, nil)
	if err != nil {
		return nil
	}
	o := found[len(found)-1].operands // the second factor is the first operand where both may be
	a, b := elementsOf(&o[1], lane.Var, n), elementsOf(&o[2], lane.Var, n)
	if a == nil || b == nil {
		return nil
	}
	return ir.Block{a, b, ir.Exec(dot, o[0].arg(), ir.All(a.Buffer), ir.All(b.Buffer))}
}

// elements describes an operand in memory: the terms of a lane are step elements apart, and lanes have a fixed
// distance.
type elements struct {
	tensor  *expr.Tensor
	first   expr.Linear
	step    int64
	offsets []int64
}

// elementsOf loads an operand in memory into a register; it returns nil for others, and for elements too far apart.
func elementsOf(o *matched, lane *expr.Var, n *ir.For) *ir.Define {
	first, offsets := ir.Offsets(o.index.Expr(), lane)
	along, linear := first.Coef(n.Var)
	if !o.moved || offsets == nil || !linear {
		return nil
	}
	return elements{o.tensor, first.Plus(expr.Linearize(n.Var), -along), along, offsets}.load(n.Extent)
}

// load loads the given number of elements for each lane into a register; it returns nil if they are too far apart.
func (e elements) load(terms int64) *ir.Define {
	lane := &expr.Var{Name: "k", Extent: terms * int64(len(e.offsets))}
	define := &ir.Define{Buffer: ir.NewRegister("v", e.tensor.DType, lane.Extent), Lane: lane}
	switch {
	case e.step != 1:
		turns := e.takeTurns(lane, terms)
		if turns == nil {
			return nil
		}
		define.Value = turns
	case slices.Max(e.offsets) == 0 && slices.Min(e.offsets) == 0:
		define.Value = &ir.Spread{Tensor: e.tensor, First: e.first.Expr(), Elements: terms}
	case e.sideBySide(terms):
		define.Value = e.tensor.At(expr.AddE(e.first.Expr(), lane))
	default:
		each := make([]int64, 0, lane.Extent)
		for _, offset := range e.offsets {
			for k := range terms {
				each = append(each, offset+k)
			}
		}
		picked := ir.Pick(lane, e.tensor, e.first, each)
		if picked == nil {
			return nil
		}
		define.Value = picked
	}
	return define
}

// takeTurns interleaves the terms of neighbouring lanes, each loaded as a vector of its own; it returns nil if the
// lanes are not neighbours.
func (e elements) takeTurns(lane *expr.Var, terms int64) expr.Expr {
	if e.step == 0 || terms > ir.MaxTurns || !e.sideBySide(1) {
		return nil
	}
	return ir.TakeTurns(lane, e.tensor, e.first, e.step, terms)
}

// sideBySide reports whether the terms of consecutive lanes are contiguous.
func (e elements) sideBySide(terms int64) bool {
	for k, offset := range e.offsets {
		if offset != int64(k)*terms {
			return false
		}
	}
	return true
}
