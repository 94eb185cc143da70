package vta

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/cprint"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// product returns the matrix unit's instruction that a nest of steps of sums means. Its last loops are over terms and
// over sums.
func (t *translator) product(n nest) *ir.Call {
	_, term, _ := n.Store.Step()
	a, b, factors := schedule.Factors(term)
	depth := len(n.Loops) - 2
	if !factors || depth < 0 || n.Guard != nil {
		fail("a sum is not one of products")
	}
	step, around := n.Loops[depth], n.without(2)
	apart, _ := expr.Linearize(b.Index[0]).Coef(step.Var)
	distance := expr.I(apart)
	i := product(a.DType(), distance)
	args, err := pass.Tensorized(ir.Block{step}, i, t.in)
	if err != nil {
		fail("the innermost loops of a sum are not a step of the matrix unit: %w", err)
	}
	operands := make([]access, len(args))
	for k := range args {
		operands[k] = around.access(args[k].Tensor, args[k].Index)
		args[k].Index = operands[k].first
	}
	return repeated(i, []expr.Expr{distance}, around.repeat(operands), args...)
}

// repeat returns the loops around an instruction as C. Loops that advance all operands like one loop are joined.
func (n nest) repeat(operands []access) string {
	type loop struct {
		iterations int64
		steps      []int64
	}
	var list []loop
	for k, l := range n.Loops {
		next := loop{iterations: l.Extent}
		joined := len(list) > 0
		for _, a := range operands {
			step := a.steps[k] * a.tensor.DType.Bytes()
			joined = joined && list[len(list)-1].steps[len(next.steps)] == step*l.Extent
			next.steps = append(next.steps, step)
		}
		if joined {
			next.iterations *= list[len(list)-1].iterations
			list = list[:len(list)-1]
		}
		list = append(list, next)
	}
	var text []string
	for _, l := range list {
		text = append(text, fmt.Sprintf("{%d, {%s}}", l.iterations, cprint.List(l.steps)))
	}
	if len(list) > maxLoops {
		fail("an instruction has %d loops around it", len(list))
	}
	return fmt.Sprintf("%d, (struct vta_loop[]){%s}", len(list), strings.Join(text, ", "))
}

// selector covers the value of a nest by vector instructions.
type selector struct {
	// nest has the lanes as the last loop.
	nest
	calls ir.Block
	// temporaries holds buffers for intermediate values, by depth. The first one may be a buffer that is overwritten.
	temporaries []*ir.Buffer
	// made lists those that were not there before.
	made []*ir.Buffer
	// last is the tensor that the first temporary overwrites, so that it must be read first; nil for none.
	last *expr.Tensor
}

// value is a row of lanes for each iteration of the other loops.
type value struct {
	access
	buffer *ir.Buffer
}

// arg returns the operand in the first iteration.
func (v value) arg() ir.Arg {
	return ir.Arg{Tensor: v.tensor, Buffer: v.buffer, Index: v.first}
}

// compute emits the instructions that compute an expression. The result is stored at to, or anywhere if to is nil.
// depth is the number of temporaries in use.
func (x *selector) compute(e expr.Expr, to *value, depth int) value {
	if l, ok := e.(*expr.Load); ok && to == nil {
		return x.load(l)
	}
	for _, v := range vectors {
		values, immediates, ok := v.match(e)
		if !ok {
			continue
		}
		rows := x.operands(values, depth)
		if to == nil {
			t := x.temporary(depth, e.DType())
			to = &t
		}
		accesses, args := []access{to.access}, []ir.Arg{to.arg()}
		for _, r := range rows {
			accesses, args = append(accesses, r.access), append(args, r.arg())
		}
		x.calls = append(x.calls, repeated(v.instruction(immediates), immediates, x.without(1).repeat(accesses), args...))
		return *to
	}
	panic(failure{fmt.Errorf("no vector instruction computes %T of %v", e, e.DType())})
}

// operands computes the operands of an instruction, first the one with what the first temporary overwrites.
func (x *selector) operands(rows []expr.Expr, depth int) []value {
	values := make([]value, len(rows))
	order := make([]int, len(rows))
	for k := range order {
		order[k] = k
	}
	overwritten := func(k int) int {
		if slices.ContainsFunc(expr.Loads(rows[k]), func(l *expr.Load) bool { return l.Tensor == x.last }) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return overwritten(a) - overwritten(b) })
	for _, k := range order {
		v := x.compute(rows[k], nil, depth)
		if values[k] = v; depth < len(x.temporaries) && v.buffer == x.temporaries[depth] {
			depth++
		}
	}
	return values
}

// load returns elements in a scratchpad, whose lanes must be neighbours.
func (x *selector) load(l *expr.Load) value {
	a := x.access(l.Tensor, l.Index[0])
	if a.steps[len(a.steps)-1] != 1 {
		fail("lanes of %s are not neighbours", l.Tensor.Name)
	}
	v := value{access: a}
	if l.Tensor == x.last {
		v.buffer = x.temporaries[0]
	}
	return v
}

// temporary returns the temporary at a depth for values of a type of 32 bits or less.
func (x *selector) temporary(depth int, d array.DType) value {
	elements := int64(1)
	for _, l := range x.Loops {
		elements *= l.Extent
	}
	for len(x.temporaries) <= depth {
		b := &ir.Buffer{Tensor: ir.Flat(fmt.Sprintf("t%d", len(x.temporaries)), array.Int32, elements), Space: ir.Shared}
		x.temporaries, x.made = append(x.temporaries, b), append(x.made, b)
	}
	b := x.temporaries[depth]
	return value{access{b.Tensor, expr.I(0), x.dense()}, b}
}
