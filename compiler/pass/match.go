package pass

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// match shows that a block computes the meaning of an instruction.
type match struct {
	*ir.Instruction
	in       ir.Allocated
	operands []matched
	// vars holds the variables of the last statement's loops in the meaning, or of those of the program that are the
	// same.
	vars []*expr.Var
	// loops holds the loops of each statement, outermost first.
	loops [][]*matchedLoop
	// threads is the loop over the threads of a block; nil for an instruction of one thread.
	threads *matchedLoop
}

// matched is an operand.
type matched struct {
	load   *expr.Load // nil if the operand is only written
	tensor *expr.Tensor
	buffer *ir.Buffer
	// first is the first element, and row the distance between rows.
	first expr.Linear
	row   int64
	// moved is set for an operand in registers that are yet to be loaded from the tensor, or to be stored to it. Its
	// element at place is that of the tensor at index.
	moved        bool
	place, index expr.Linear
	// lacks holds the loops of the meaning that the program lacks, as results in registers may be more than its own.
	lacks []*expr.Var
}

// arg returns an operand that is not moved.
func (m *matched) arg() ir.Arg {
	return ir.Arg{Tensor: m.tensor, Buffer: m.buffer, Index: m.first.Expr(), Stride: m.row}
}

// at returns the index of the element at a place. Places count the loops of the meaning. Elements that the program
// lacks follow those of the same row, and rows repeat the only one.
func (m *matched) at(place expr.Expr) expr.Expr {
	loops := slices.SortedFunc(slices.Values(m.place.Terms), func(a, b expr.Term) int { return cmp.Compare(b.Coef, a.Coef) })
	values, index := map[*expr.Var]expr.Expr{}, m.index
	for k, t := range loops {
		v, of := t.Atom.(*expr.Var), place
		if k > 0 {
			of = remainder(of, loops[k-1].Coef)
			if slices.Contains(m.lacks, v) {
				index = index.Plus(expr.Linearize(v), t.Coef)
			}
		}
		values[v] = quotient(of, t.Coef)
	}
	return linear(index.Expr(), values).Expr()
}

// matchedLoop is a loop of the program. Its iterations are those of the loops of a meaning, the first one outermost,
// inside those that remain around the instruction.
type matchedLoop struct {
	*ir.For
	inside []*expr.Var
	// rest is the variable of the remaining loop, if any.
	rest *expr.Var
}

// one returns the variable that counts its iterations, inside the instruction if there are any.
func (l *matchedLoop) one() *expr.Var {
	if len(l.inside) == 0 || l.rest == nil && len(l.inside) == 1 {
		return l.Var
	}
	return l.inside[len(l.inside)-1]
}

// iterations returns the number of iterations inside the instruction.
func (l *matchedLoop) iterations() int64 {
	n := int64(1)
	for _, v := range l.inside {
		n *= v.Extent
	}
	return n
}

// Tensorized returns the operands with which an instruction computes a block. Those that are yet to be moved are the
// tensors alone. The error gives the reason for a mismatch.
func Tensorized(b ir.Block, i *ir.Instruction, in ir.Allocated) ([]ir.Arg, error) {
	found, err := tensorize(b, i, in, nil)
	if err != nil {
		return nil, err
	}
	once := map[*expr.Var]expr.Expr{}
	for _, l := range slices.Concat(found[0].loops...) {
		if l.rest != nil && l.rest.Extent > 1 {
			return nil, fmt.Errorf("%s: the loop over %s has more iterations", i.Name, l.Var.Name)
		}
		once[l.rest] = expr.I(0)
	}
	args := make([]ir.Arg, len(found[0].operands))
	for k := range args {
		args[k] = found[0].operands[k].arg()
		args[k].Index = expr.Substitute(args[k].Index, once)
	}
	return args, nil
}

// tensorize matches a block with the meaning of an instruction: statement by statement the same computation, with
// loops in any order, whose extents are multiples of those of the meaning, and factors in any order. Results in
// registers may be more than those of the program. It returns the possible matches, or the reason for the mismatch.
func tensorize(b ir.Block, i *ir.Instruction, in ir.Allocated, threads *ir.For) ([]*match, error) {
	if i.Meaning == nil || len(b) != len(i.Meaning.Body) {
		return nil, fmt.Errorf("%s does not have a meaning of %d statements", i.Name, len(b))
	}
	found := []*match{{Instruction: i, in: in, operands: make([]matched, len(i.Params))}}
	if threads != nil {
		found[0].threads = &matchedLoop{For: threads}
	}
	for k, st := range b {
		means, isNest := ir.PerfectNestOf(i.Meaning.Body[k])
		does, ok := ir.PerfectNestOf(st)
		if !ok || !isNest || does.Guard != nil {
			return nil, fmt.Errorf("%s: a statement is no nest of loops", i.Name)
		}
		var next []*match
		var why error
		for _, m := range found {
			ways, err := m.statement(means, does)
			next, why = append(next, ways...), err
		}
		if found = next; len(found) == 0 {
			return nil, fmt.Errorf("%s: %w", i.Name, why)
		}
	}
	if found = slices.DeleteFunc(found, (*match).aliased); len(found) == 0 {
		return nil, fmt.Errorf("%s: operands overlap", i.Name)
	}
	return found, nil
}

// rounds reports whether the loops permit elements of a type to be converted to floats of another.
func rounds(n ir.PerfectNest, d array.DType) bool {
	return slices.ContainsFunc(n.Loops, func(l *ir.For) bool { return l.Kind == ir.Matrices && l.Format.Takes(d) })
}

// access is an element of an operand and of the program.
type access struct {
	operand        int
	means, does    expr.Expr
	tensor         *expr.Tensor
	load           *expr.Load
	written, moved bool
}

// statement returns the ways to match one more statement, or the reason for the mismatch.
func (m *match) statement(means, does ir.PerfectNest) (found []*match, err error) {
	stored, err := m.access(means.Store.Buffer.Tensor, means.Store.Index, does.Store.Buffer.Tensor, does.Store.Index)
	if err != nil {
		return nil, err
	}
	stored.written = true
	ways, err := m.values(means.Store.Value, does.Store.Value, does)
	for _, read := range ways {
		s := &statement{match: m, accesses: append([]access{stored}, read...)}
		list, why := s.find(means, does)
		found, err = append(found, list...), why
	}
	return found, err
}

// aliased reports whether the instruction writes elements of a tensor that it reads as another operand.
func (m *match) aliased() bool {
	for k, p := range m.Params {
		for n, q := range m.Params {
			if k != n && p.Use != ir.Read && q.Use != ir.Write && m.operands[k].tensor == m.operands[n].tensor {
				return true
			}
		}
	}
	return false
}

// access returns an access to an operand and the program's.
func (m *match) access(formal *expr.Tensor, means expr.Expr, tensor *expr.Tensor, does expr.Expr) (a access, err error) {
	k := slices.IndexFunc(m.Meaning.Operands, func(f ir.Formal) bool { return f.Buffer != nil && f.Buffer.Tensor == formal })
	if k < 0 {
		return a, fmt.Errorf("%s is no operand", formal.Name)
	}
	in, space := m.Params[k].In, m.in.Space(tensor)
	a = access{operand: k, means: means, does: does, tensor: tensor}
	a.moved = in != ir.Argument && in != ir.Shared && space != in
	if in == ir.Shared && space != in {
		return a, fmt.Errorf("%s lies in %v memory", m.Params[k].Name, space)
	}
	return a, nil
}

// values returns the ways in which a value of the program is that of the meaning, as lists of their elements.
func (m *match) values(means, does expr.Expr, in ir.PerfectNest) ([][]access, error) {
	why := fmt.Errorf("%v and %v values differ", means.DType(), does.DType())
	ways := expr.Unify(means, does, func(means, does expr.Expr) (a access, ok bool) {
		number := means
		if a, ok := means.(*ir.Apply); ok { // what the instruction does to an element
			number = a.Values[0]
		}
		f, isElement := schedule.ElementOf(number)
		l, loaded := schedule.ElementOf(does)
		if !isElement || !loaded || means.DType() != does.DType() {
			return a, false
		}
		a, err := m.access(f.Tensor, f.Index[0], l.Tensor, l.Index[0])
		if a.load = l; err != nil {
			why = err
		}
		return a, err == nil && (f.DType() == l.DType() || a.moved && f.DType().IsFloat() && rounds(in, l.DType()))
	})
	if len(ways) == 0 {
		return nil, why
	}
	return ways, nil
}

// tensorizeFactors returns the ways in which a loop over matrices computes an instruction that multiplies factors of
// two types.
func tensorizeFactors(n *ir.For, of func(a, b array.DType) *ir.Instruction, in ir.Allocated, threads *ir.For) (found []*match) {
	nest, isNest := ir.PerfectNestOf(n)
	if !isNest {
		return nil
	}
	_, term, _ := nest.Store.Step()
	x, y, ok := schedule.Factors(term)
	if !ok || !n.Format.Takes(x.DType()) || !n.Format.Takes(y.DType()) {
		return nil
	}
	for _, types := range [][2]array.DType{{x.DType(), y.DType()}, {y.DType(), x.DType()}} {
		ways, _ := tensorize(ir.Block{n}, of(types[0], types[1]), in, threads)
		found = append(found, ways...)
		if x.DType() == y.DType() {
			break
		}
	}
	return found
}
