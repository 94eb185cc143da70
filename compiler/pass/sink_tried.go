package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// maxTried limits the number of index values for which distinct is checked exhaustively.
const maxTried = 1 << 12

// trial enumerates the values of an index.
type trial struct {
	index    expr.Expr
	elements int64
	of       *expr.Var
	vars     []*expr.Var
	// values holds the current values of the variables.
	values map[*expr.Var]expr.Expr
	// owners maps each written element to the value of the variable that wrote it.
	owners map[int64]expr.Expr
}

// tried decides distinct by enumeration if the index takes few values: rows of rows leave gaps that the bound misses.
func tried(index expr.Expr, elements int64, of *expr.Var) bool {
	t := &trial{index: index, elements: elements, of: of, vars: []*expr.Var{of}, values: map[*expr.Var]expr.Expr{}, owners: map[int64]expr.Expr{}}
	expr.Walk(index, func(e expr.Expr) {
		if v, ok := e.(*expr.Var); ok && !slices.Contains(t.vars, v) {
			t.vars = append(t.vars, v)
		}
	})
	count := elements
	for _, v := range t.vars {
		if v.Extent < 1 || v.Extent > maxTried/count {
			return false
		}
		count *= v.Extent
	}
	return t.over(t.vars)
}

// over enumerates the values of vars.
func (t *trial) over(vars []*expr.Var) bool {
	if len(vars) == 0 {
		return t.once()
	}
	for k := range vars[0].Extent {
		t.values[vars[0]] = expr.I(k)
		if !t.over(vars[1:]) {
			return false
		}
	}
	return true
}

// once records the elements at the current index.
func (t *trial) once() bool {
	at, ok := expr.Simplifier{Values: t.values}.Simplify(t.index).(*expr.Int)
	if !ok {
		return false
	}
	for k := range t.elements {
		owner, taken := t.owners[at.Value+k]
		if taken && !expr.Same(owner, t.values[t.of]) {
			return false
		}
		t.owners[at.Value+k] = t.values[t.of]
	}
	return true
}
