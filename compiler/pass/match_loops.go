package pass

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// statement matches one nest.
type statement struct {
	*match
	// accesses lists the accesses in pairs, the store first.
	accesses []access
	// vars holds the variables of the meaning's loops, and loops those of the program, with the threads as the last.
	vars  []*expr.Var
	loops []*matchedLoop
}

// find returns the match for each assignment of the meaning's loops to those of the program with which the elements of
// all operands agree, inner loops first, or the reason for the mismatch.
func (s *statement) find(means, does ir.PerfectNest) (found []*match, err error) {
	for _, l := range means.Loops {
		s.vars = append(s.vars, l.Var)
	}
	for _, l := range does.Loops {
		s.loops = append(s.loops, &matchedLoop{For: l})
	}
	if s.threads != nil {
		s.loops = append(s.loops, &matchedLoop{For: s.threads.For})
	}
	err = errors.New("no loops match")
	s.assign(s.vars, func() {
		next := *s.match
		next.operands = slices.Clone(s.operands)
		loops := make([]*matchedLoop, len(s.loops))
		for k, l := range s.loops {
			loops[k] = &matchedLoop{For: l.For, inside: slices.Clone(l.inside)}
		}
		if next.threads != nil {
			next.threads = loops[len(does.Loops)]
		}
		next.loops = append(slices.Clone(s.match.loops), loops[:len(does.Loops)])
		if err = next.unify(s.accesses, s.vars, loops); err == nil {
			next.operands[s.accesses[0].operand].buffer = does.Store.Buffer
			found = append(found, &next)
		}
	})
	return found, err
}

// assign calls try for each assignment of loops.
func (s *statement) assign(vars []*expr.Var, try func()) {
	if len(vars) == 0 {
		try()
		return
	}
	for _, l := range slices.Backward(s.loops) {
		if s.mayBe(l, vars[0]) {
			l.inside = append(l.inside, vars[0])
			s.assign(vars[1:], try)
			l.inside = l.inside[:len(l.inside)-1]
		}
	}
	if s.mayLack(vars[0]) {
		s.assign(vars[1:], try)
	}
}

// mayBe reports whether iterations of a loop may be those of a loop of the meaning: both change the same results, and
// the elements of the same operands in memory. Loops over threads that have results of their own are over threads.
func (s *statement) mayBe(l *matchedLoop, v *expr.Var) bool {
	stored := s.accesses[0]
	thread, _, _ := s.Meaning.Operands[stored.operand].Place(stored.means)
	if ofThreads := s.threads != nil && l.For == s.threads.For; ofThreads || expr.Uses(thread.Expr(), v) {
		return ofThreads && expr.Uses(thread.Expr(), v) && l.Extent%(l.iterations()*v.Extent) == 0
	}
	if l.Extent%(l.iterations()*v.Extent) != 0 && !(len(l.inside) == 0 && s.mayLack(v)) {
		return false
	}
	return !slices.ContainsFunc(s.accesses, func(a access) bool {
		means, does := expr.Uses(a.means, v), expr.Uses(a.does, l.Var)
		return a.written && means != does || !a.moved && means && !does
	})
}

// mayLack reports whether the program may have fewer iterations than the meaning: those of results in registers, of
// which some are not used.
func (s *statement) mayLack(v *expr.Var) bool {
	return expr.Uses(s.accesses[0].means, v) && !slices.ContainsFunc(s.accesses, func(a access) bool { return !a.moved && expr.Uses(a.means, v) })
}

// unify determines the operands for an assignment of the loops.
func (m *match) unify(accesses []access, vars []*expr.Var, loops []*matchedLoop) error {
	does, means := map[*expr.Var]expr.Expr{}, map[*expr.Var]expr.Expr{}
	for _, l := range loops {
		l.values(does, means)
	}
	var lacks []*expr.Var
	vars = slices.Clone(vars)
	for k, v := range vars {
		if x, ok := means[v]; ok {
			vars[k] = x.(*expr.Var)
		}
		if !slices.ContainsFunc(loops, func(l *matchedLoop) bool { return slices.Contains(l.inside, v) }) {
			lacks = append(lacks, v)
		}
	}
	m.vars = vars
	for _, a := range accesses {
		if err := m.operand(a, vars, does, means); err != nil {
			return fmt.Errorf("operand %s: %w", m.Params[a.operand].Name, err)
		}
		m.operands[a.operand].lacks = lacks
	}
	return nil
}

// operand determines an operand by an access to it.
func (m *match) operand(a access, vars []*expr.Var, does, means map[*expr.Var]expr.Expr) error {
	f, known := m.Meaning.Operands[a.operand], &m.operands[a.operand]
	thread, row, place := f.Place(expr.Substitute(a.means, means))
	index := expr.Linearize(a.does)
	if (expr.Simplifier{Values: does}).Changes(a.does) {
		index = regrouped(linear(a.does, does))
	}
	o := matched{load: a.load, tensor: a.tensor, buffer: m.in[a.tensor], moved: a.moved, place: place, index: index, row: known.row}
	if m.Params[a.operand].Swizzled {
		if o.row = o.buffer.Row; o.row == 0 {
			return errors.New("it is not swizzled")
		}
	}
	var err error
	switch {
	case a.moved:
		err = o.within(vars, thread, place)
	case f.Thread != nil && !m.isThread(a, thread, does):
		err = errors.New("it is not that of the thread")
	default:
		err = o.unify(vars, row, place)
	}
	if err == nil && known.tensor != nil && !o.same(known) {
		err = errors.New("its elements lie elsewhere")
	}
	*known = o
	return err
}

// values adds what the variable of a loop is: a number made of those of the meaning. A loop that is one of the meaning
// keeps its variable. Terms stay in a loop.
func (l *matchedLoop) values(does, means map[*expr.Var]expr.Expr) {
	n := l.iterations()
	switch {
	case len(l.inside) == 0:
		l.rest = l.Var
		return
	case len(l.inside) == 1 && l.Extent <= n && l.Kind != ir.Matrices:
		means[l.inside[0]] = l.Var
		return
	}
	value := expr.I(0)
	if l.Extent > n || l.Kind == ir.Matrices {
		l.rest = &expr.Var{Name: l.Var.Name, Extent: (l.Extent + n - 1) / n}
		value = l.rest
	}
	for _, v := range l.inside {
		value = expr.AddE(expr.MulE(value, expr.I(v.Extent)), v)
	}
	does[l.Var] = value
}

// isThread reports whether a number is that of the thread, among those that execute the instruction, which accesses a
// variable of its own.
func (m *match) isThread(a access, number expr.Linear, does map[*expr.Var]expr.Expr) bool {
	if m.threads == nil || m.in.Space(a.tensor) != ir.Private {
		return false
	}
	rest := linear(m.threads.Var, does).Plus(number, -1)
	return !slices.ContainsFunc(rest.Terms, func(t expr.Term) bool { return t.Atom != expr.Expr(m.threads.rest) })
}

// same reports whether two accesses find the same elements.
func (m *matched) same(other *matched) bool {
	equal := func(a, b expr.Linear) bool { return expr.Same(a.Plus(b, -1).Expr(), expr.I(0)) }
	return m.tensor == other.tensor && m.row == other.row && equal(m.first, other.first) && equal(m.index, other.index)
}

// within checks that the elements of an operand in registers depend on their place alone.
func (m *matched) within(vars []*expr.Var, thread, place expr.Linear) error {
	for _, v := range vars {
		if expr.Uses(m.index.Expr(), v) && !expr.Uses(place.Expr(), v) && !expr.Uses(thread.Expr(), v) {
			return fmt.Errorf("an element depends on %s", v.Name)
		}
	}
	return nil
}

// unify solves first + row * rows + place = index, for all values of the variables.
func (m *matched) unify(vars []*expr.Var, rows, place expr.Linear) error {
	m.first, m.index = m.index, expr.Linear{}
	for _, v := range vars {
		does, isLinear := m.first.Coef(v)
		means, _ := place.Coef(v)
		apart, _ := rows.Coef(v)
		if !isLinear {
			return fmt.Errorf("it is not linear in %s", v.Name)
		}
		if apart != 0 && m.row == 0 {
			m.row = (does - means) / apart
		}
		if does != means+apart*m.row {
			return fmt.Errorf("elements are %d apart along %s, not %d", does, v.Name, means+apart*m.row)
		}
		m.first = m.first.Plus(expr.Linearize(v), -does)
	}
	m.first.Const -= place.Const + rows.Const*m.row
	return nil
}
