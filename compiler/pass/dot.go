package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// fewBits is the operand width that Few stands for, in bits.
const fewBits = 4

// sum returns the accumulator type for products of type d: 32 bits of the same kind.
func sum(d array.DType) array.DType {
	if d.IsFloat() {
		return array.Float32
	}
	return array.Int32
}

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
	if !ok || lane.Kind != ir.Vector || len(lane.Body) != 1 {
		return nil
	}
	store, ok := lane.Body[0].(*ir.Store)
	if !ok || expr.Uses(store.Index, n.Var) {
		return nil
	}
	if coef, linear := expr.Linearize(store.Index).Coef(lane.Var); !linear || coef != 1 {
		return nil
	}
	_, term, _ := store.Step()
	factors, ok := term.(*expr.Binary)
	if !ok || factors.Op != expr.Mul {
		return nil
	}
	a, okA := dotOperand(factors.A, store.Buffer.Tensor.DType, lane.Var, n, in)
	b, okB := dotOperand(factors.B, store.Buffer.Tensor.DType, lane.Var, n, in)
	if !okA || !okB {
		return nil
	}
	types := func(a, b elements) machine.DotTypes {
		bits := in.Bits(a.tensor)
		return machine.DotTypes{A: a.tensor.DType, B: b.tensor.DType, Few: bits > 0 && bits <= fewBits}
	}
	if has(types(b, a), n.Extent) {
		a, b = b, a
	}
	if !has(types(a, b), n.Extent) {
		return nil
	}
	loadA, loadB := a.load(n.Extent), b.load(n.Extent)
	if loadA == nil || loadB == nil {
		return nil
	}
	dot := machine.Dot{DotTypes: types(a, b), Terms: n.Extent, Lanes: lane.Var.Extent}
	sums := ir.At(store.Buffer, expr.Linearize(store.Index).Plus(expr.Linearize(lane.Var), -1).Expr())
	return ir.Block{loadA, loadB, ir.Exec(dot.Instruction(), sums, ir.All(loadA.Buffer), ir.All(loadB.Buffer))}
}

// elements describes an operand in memory: the terms of a lane are step elements apart, and lanes have a fixed
// distance.
type elements struct {
	tensor  *expr.Tensor
	first   expr.Linear
	step    int64
	offsets []int64
}

// dotOperand returns a factor of a product that is accumulated in type added.
func dotOperand(e expr.Expr, added array.DType, lane *expr.Var, n *ir.For, in ir.Allocated) (elements, bool) {
	cast, ok := e.(*expr.Cast)
	if !ok || cast.Type != added {
		return elements{}, false
	}
	l, ok := cast.A.(*expr.Load)
	if !ok || sum(l.Tensor.DType) != added || in.InRegisters(l.Tensor) {
		return elements{}, false
	}
	first, offsets := ir.Offsets(l.Index[0], lane)
	along, linear := first.Coef(n.Var)
	if offsets == nil || !linear {
		return elements{}, false
	}
	return elements{l.Tensor, first.Plus(expr.Linearize(n.Var), -along), along, offsets}, true
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
