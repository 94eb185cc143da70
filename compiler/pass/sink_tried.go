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
	values map[*expr.Var]int64
	// owners maps each written element to the value of the variable that wrote it.
	owners map[int64]int64
}

// tried decides distinct by enumeration if the index takes few values: rows of rows leave gaps that the bound misses.
func tried(index expr.Expr, elements int64, of *expr.Var) bool {
	t := &trial{index: index, elements: elements, of: of, vars: []*expr.Var{of}, values: map[*expr.Var]int64{}, owners: map[int64]int64{}}
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
		t.values[vars[0]] = k
		if !t.over(vars[1:]) {
			return false
		}
	}
	return true
}

// once records the elements at the current index.
func (t *trial) once() bool {
	at, ok := t.value(t.index)
	for k := range t.elements {
		owner, taken := t.owners[at+k]
		ok = ok && (!taken || owner == t.values[t.of])
		t.owners[at+k] = t.values[t.of]
	}
	return ok
}

// value evaluates an expression; ok is false for operators that are rare in indices.
func (t *trial) value(e expr.Expr) (v int64, ok bool) {
	switch n := e.(type) {
	case *expr.Int:
		return n.Value, true
	case *expr.Var:
		return t.values[n], true
	case *expr.Binary:
		a, known := t.value(n.A)
		b, ok := t.value(n.B)
		if !known || !ok {
			return 0, false
		}
		return compute(n.Op, a, b)
	}
	return 0, false
}

func compute(op expr.BinaryOp, a, b int64) (v int64, ok bool) {
	switch op {
	case expr.Add:
		return a + b, true
	case expr.Sub:
		return a - b, true
	case expr.Mul:
		return a * b, true
	case expr.FloorDiv:
		if a >= 0 && b > 0 {
			return a / b, true
		}
	case expr.FloorMod:
		if a >= 0 && b > 0 {
			return a % b, true
		}
	}
	return 0, false
}
