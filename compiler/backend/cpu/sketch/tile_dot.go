package sketch

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/sketch"
	"github.com/tilth-dev/tilth/compiler/target"
)

// dotting describes how a sum of products of small integers or bfloat16 elements is computed by dot product
// instructions, which multiply several neighbours along the innermost axis of the reduction at once.
type dotting struct {
	instruction
	// data and weights are the loads of the reduction's body: the operand shared by all lanes, and the packed
	// constant.
	data, weights int
	// adjoined is set if the last two reduction axes are fused.
	adjoined bool
	// window is set if the terms are those of a window's rows, and each lane has its own.
	window *window
}

// instruction describes a machine's instruction for such products.
type instruction struct {
	// terms is the number of neighbours multiplied at once. wide is the type that both operands are widened to first,
	// or Invalid.
	terms int64
	wide  array.DType
	// slots is its cycles of throughput, operations the number of instructions. A separately added product needs
	// another register.
	slots      float64
	operations float64
	registers  int64
	// late is its latency in cycles beyond that of a multiply-add.
	late float64
	// squares is set if it multiplies two positions by two channels at once.
	squares bool
}

// loads returns how many registers the terms of a vector's channels fill.
func (i *instruction) loads() float64 {
	if i.squares {
		return 2
	}
	return 1
}

// dotInstruction returns a target's best instruction for products of data by weights. terms is 0 without one.
func dotInstruction(t *target.Target, data, weights array.DType) instruction {
	vnni := t.CPU.Has("avxvnni") || t.CPU.Has("avx512vnni") && t.CPU.Has("avx512vl")
	narrow := data.Bytes() == 1 && weights.Bytes() == 1
	signed := weights == array.Int8
	switch {
	case data == array.BFloat16 && weights == array.BFloat16 && microarch.MultipliesPairs(t): // accumulated in float32
		return instruction{terms: 2, slots: 0.5, operations: 1, late: microarch.PairsLate}
	case data.IsFloat() || weights.IsFloat():
		return instruction{}
	case data.Bytes() > 2 || weights.Bytes() > 2 || data == array.Uint16 || weights == array.Uint16:
		return instruction{}
	case t.CPU.Arch == target.X86 && vnni && data == array.Uint8 && signed:
		return instruction{terms: 4, slots: 0.5, operations: 1}
	case t.CPU.Arch == target.X86 && vnni:
		return instruction{terms: 2, wide: array.Int16, slots: 0.5, operations: 1}
	case t.CPU.Arch == target.X86 && (t.CPU.VectorBytes <= 32 || t.CPU.Has("avx512bw")):
		// Additions compete for the multiply units.
		return instruction{terms: 2, wide: array.Int16, slots: 0.62, operations: 2, registers: 1}
	case narrow && data == weights && microarch.HasDots(t), t.CPU.Arch == target.ARM && narrow && data == array.Uint8 && signed && t.CPU.Has("i8mm"):
		return instruction{terms: 4, slots: 0.5, operations: 1}
	}
	return instruction{}
}

// TileBytes returns the preferred type of 8-bit data that is multiplied by int8 weights: the type with more terms per
// instruction on a target, or Invalid if both are equal.
func TileBytes(t *target.Target) array.DType {
	unsigned, signed := dotInstruction(t, array.Uint8, array.Int8).terms, dotInstruction(t, array.Int8, array.Int8).terms
	switch {
	case unsigned > signed:
		return array.Uint8
	case unsigned < signed:
		return array.Int8
	}
	return array.Invalid
}

// chooser returns the best instruction of some kind for products of data by weights, or one with 0 terms.
type chooser func(data, weights array.DType) instruction

// dotOf returns a chooser among a target's instructions for terms of single sums.
func dotOf(t *target.Target) chooser {
	return func(data, weights array.DType) instruction { return dotInstruction(t, data, weights) }
}

// findDot determines whether the reduction is a sum of products of such elements with a constant that can be packed
// for the instructions. The other operand must be contiguous along the reduction and shared by all lanes, or by those
// of a group. choose returns the instruction for products of data by weights.
func (x *Tile) findDot(s *schedule.Schedule, acc *schedule.Stage, choose chooser) {
	loads := expr.Loads(acc.Body)
	added := acc.Tensor.DType
	if x.lanes < 2 || acc.Combiner != expr.Sum || added != array.Int32 && added != array.Float32 || len(loads) != 2 || len(x.packs) != 1 ||
		!isProductOfCasts(acc.Body, added) {
		return
	}
	pack := x.packs[0]
	d := &dotting{weights: slices.IndexFunc(loads, func(l *expr.Load) bool { return s.Constant(l.Tensor) == pack.constant })}
	d.data = 1 - d.weights
	data, last := loads[d.data], acc.Reduce[len(acc.Reduce)-1]
	d.instruction = choose(data.Tensor.DType, loads[d.weights].Tensor.DType)
	if added.IsFloat() != data.Tensor.DType.IsFloat() || d.terms == 0 || last.Extent%d.terms != 0 || pack.last < 0 || !x.sharedInGroups(d.data) || !sketch.Adjacent(data, last) {
		return
	}
	if d.wide != array.Invalid {
		x.accesses[d.data].ElementBytes = d.wide.Bytes()
		x.accesses[d.weights].ElementBytes = d.wide.Bytes()
		x.fed, x.feedOps = &x.accesses[d.data], 1
	}
	x.dot = d
	x.steps = slices.Clone(x.reduce)
	x.steps[len(x.steps)-1] /= d.terms
}

// sharedInGroups reports whether all lanes, or all lanes of a group, read the same elements of an operand.
func (x *Tile) sharedInGroups(load int) bool {
	return !x.accesses[load].Moves(x.vec) || x.group > 0 && slices.Contains(x.grouped, load)
}

// adjoinedRegisters is the number of registers for values that several positions read in successive unrolled steps,
// as windows overlap.
const adjoinedRegisters = 4

// adjoinTerms returns the tile of a sum whose channels are not a multiple of an instruction's terms, as those of a
// picture. It fuses the columns of its window with their channels. It returns nil if that does not help.
func adjoinTerms(s *schedule.Schedule, acc *schedule.Stage, u sketch.Unit, t *target.Target, choose chooser) *Tile {
	a, b, product := schedule.Factors(acc.Body)
	if !product {
		return nil
	}
	data, weights := a, b
	if a.Tensor.Role == expr.Constant {
		data, weights = b, a
	}
	by := choose(data.Tensor.DType, weights.Tensor.DType)
	if by.terms == 0 {
		return nil
	}
	like, err := schedule.Replay(s.Workload, s.Trace()) // leave s unchanged
	if err != nil {
		return nil
	}
	id, err := like.Adjoin(acc.ID, by.terms, by.wide)
	if err != nil {
		return nil
	}
	x := newTile(like, like.Stages[acc.ID], u, t)
	if x.findDot(like, like.Stages[acc.ID], choose); x.dot == nil {
		return nil
	}
	x.dot.instruction, x.dot.adjoined = by, true
	x.dot.registers += adjoinedRegisters
	x.joinPositions(like.Stages[acc.ID])
	copied := u
	copied.Feeds = append(slices.Clone(u.Feeds), id)
	x.fedBy(like, like.Stages[acc.ID], copied)
	return x
}

// isProductOfCasts reports whether an expression is the product of two elements, each cast to the type of the sum.
func isProductOfCasts(e expr.Expr, added array.DType) bool {
	n, ok := e.(*expr.Binary)
	if !ok || n.Op != expr.Mul {
		return false
	}
	return isCastLoad(n.A, added) && isCastLoad(n.B, added)
}

func isCastLoad(e expr.Expr, added array.DType) bool {
	c, ok := e.(*expr.Cast)
	if !ok || c.Type != added {
		return false
	}
	_, ok = c.A.(*expr.Load)
	return ok
}

// applyWidening makes the reduction read its operands in the instruction's types, and returns the stages that then
// feed it. The previous feed is computed in the copy.
func (x *Tile) applyWidening(b *sketch.Builder, u sketch.Unit, p TileParameters) []int {
	switch {
	case x.matrices != nil:
		return x.applyCopy(b, u)
	case x.dot == nil:
		return x.applyNarrow(b, u, p)
	case x.dot.adjoined:
		return x.applyAdjoining(b, u)
	case x.dot.window != nil:
		return x.applyWindow(b, u)
	case x.dot.wide == array.Invalid:
		return u.Feeds
	}
	sketch.Get(b.S.Widen(u.Acc, x.dot.weights, x.dot.wide))
	return x.copied(b, u, x.dot.data, x.dot.wide)
}

// copied makes the reduction read an operand through a copy of a wider type, which computes the previous feed. The
// copy is the new feed.
func (x *Tile) copied(b *sketch.Builder, u sketch.Unit, load int, to array.DType) []int {
	wide := sketch.Get(b.S.Widen(u.Acc, load, to))
	for _, f := range u.Feeds {
		b.Do(b.S.Inline(f))
	}
	return []int{wide}
}

// applyAdjoining fuses the reduction's last axes, and computes the previous feed in the copy.
func (x *Tile) applyAdjoining(b *sketch.Builder, u sketch.Unit) []int {
	id := sketch.Get(b.S.Adjoin(u.Acc, x.dot.terms, x.dot.wide))
	for _, f := range u.Feeds {
		b.Do(b.S.Inline(f))
	}
	return []int{id}
}
