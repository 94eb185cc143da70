// The dot pass is the pass that multiplies and adds up neighbouring elements in one instruction, where the machine has
// one.

package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// DotTypes are those of the operands of an instruction. Few is set where the first one has values of four bits, so
// that sums of few products fit into 16.
type DotTypes struct {
	A, B array.DType
	Few  bool
}

// fewBits is how many bits few are.
const fewBits = 4

// sum is the type in which products of elements of a type are added up: 32 bits, of whatever kind the elements are.
func sum(d array.DType) array.DType {
	if d.IsFloat() {
		return array.Float32
	}
	return array.Int32
}

// Dot makes a DotProduct of each step of a sum in a dotted loop that has the form of one, acc[lane] += a[lane,k] *
// b[lane,k] for all k of the loop at once, where has reports whether there are instructions for so many terms of these
// types. The rest becomes serial loops. The steps of a sum may be taken apart, since each adds to elements of its own;
// other statements stay together.
func Dot(f *ir.Func, has func(t DotTypes, terms int64) bool) *ir.Func {
	return ir.MapBlocks(f, func(b ir.Block, in ir.Allocated) ir.Block {
		var out ir.Block
		for _, st := range b {
			if n, ok := st.(*ir.For); ok && n.Kind == ir.Dot {
				out = append(out, products(n, in, has)...)
				continue
			}
			out = append(out, st)
		}
		return out
	})
}

func products(n *ir.For, in ir.Allocated, has func(DotTypes, int64) bool) ir.Block {
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

// isStep reports whether a statement is a step of a sum, for one element or for those of a vector.
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

// dotProduct is a vectorized step as one instruction, behind those that load its operands; nil when it has none.
func dotProduct(n *ir.For, st ir.Stmt, in ir.Allocated, has func(DotTypes, int64) bool) ir.Block {
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
	types := func(a, b elements) DotTypes {
		bits := in.Bits(a.tensor)
		return DotTypes{a.tensor.DType, b.tensor.DType, bits > 0 && bits <= fewBits}
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
	before := store.Value.(*expr.Binary).A
	return ir.Block{loadA, loadB, &ir.DotProduct{Lane: lane.Var, Buffer: store.Buffer, Index: store.Index, Before: before, Terms: n.Extent,
		A: loadA.Buffer, B: loadB.Buffer, Few: types(a, b).Few}}
}

// elements are where an operand lies: the terms of a lane, step elements apart, and those of each lane so many
// elements behind those of the first.
type elements struct {
	tensor  *expr.Tensor
	first   expr.Linear
	step    int64
	offsets []int64
}

// dotOperand is a factor of a product that is added up in a type.
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

// load puts so many elements of each lane into a register; nil where they lie too far apart.
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

// takeTurns is the terms of lanes that are neighbours, each of which is in a vector of its own; nil where lanes are
// not.
func (e elements) takeTurns(lane *expr.Var, terms int64) expr.Expr {
	if e.step == 0 || terms > ir.MostTurns || !e.sideBySide(1) {
		return nil
	}
	return ir.TakeTurns(lane, e.tensor, e.first, e.step, terms)
}

// sideBySide reports whether the terms of each lane lie behind those of the lane before.
func (e elements) sideBySide(terms int64) bool {
	for k, offset := range e.offsets {
		if offset != int64(k)*terms {
			return false
		}
	}
	return true
}
