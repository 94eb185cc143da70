package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// vector is a C expression of p.lanes lanes for e. Where there is no vector form, the lanes are computed one by one.
func (p *printer) vector(e expr.Expr) string {
	if !expr.Uses(e, p.lane) {
		return p.broadcast(e)
	}
	if code, ok := p.vectorForm(e); ok {
		return code
	}
	return p.lanewise(e)
}

// vectorForm prints an expression that differs between lanes with vector operations; ok is false when it has no such
// form.
func (p *printer) vectorForm(e expr.Expr) (string, bool) {
	switch n := e.(type) {
	case *expr.Load:
		return p.vectorLoad(n)
	case *expr.Select:
		return p.vectorSelect(n)
	}
	if e.DType() == array.Bool {
		return p.boolVector(e)
	}
	switch n := e.(type) {
	case *expr.Binary:
		return p.vectorBinary(n)
	case *expr.Unary:
		return p.vectorUnary(n)
	case *expr.Cast:
		if isClamped(n.A) && n.Type.IsInt() {
			return p.unit.castClamped(p.vector(n.A), n.A.DType(), n.Type, p.lanes), true
		}
		return p.unit.cast(p.vector(n.A), n.A.DType(), n.Type, p.lanes), true
	}
	return "", false
}

// vectorSelect chooses one side for all lanes where the condition allows, so that the other is not computed.
func (p *printer) vectorSelect(n *expr.Select) (string, bool) {
	first, ok := p.uniform(n.Cond)
	if !ok {
		return p.choice(n)
	}
	cond, t := p.scalar(first), p.unit.vector(n.DType(), p.lanes)
	release := p.guard()
	code := fmt.Sprintf("(%s ? (%s)%s : (%s)%s)", cond, t, p.vector(n.A), t, p.vector(n.B)) // gcc refuses vectors that differ in alignment
	release()
	return p.chosen(n, t, code), true
}

// uniform is a condition that holds for all lanes or for none, as a condition on the first lane; ok is false when the
// lanes may differ. A bound that is a multiple of the lanes away from the vector's begin, as in the concatenation of
// whole vectors, does not cut through a vector.
func (p *printer) uniform(cond expr.Expr) (first expr.Expr, ok bool) {
	if !expr.Uses(cond, p.lane) {
		return cond, true
	}
	n, isBinary := cond.(*expr.Binary)
	if !isBinary {
		return nil, false
	}
	switch n.Op {
	case expr.And, expr.Or:
		a, okA := p.uniform(n.A)
		b, okB := p.uniform(n.B)
		if !okA || !okB {
			return nil, false
		}
		return expr.Bin(n.Op, a, b), true
	case expr.Lt, expr.Le:
		return p.uniformBound(n)
	}
	return nil, false
}

func (p *printer) uniformBound(n *expr.Binary) (first expr.Expr, ok bool) {
	if n.A.DType() != array.Int64 {
		return nil, false
	}
	bound := expr.Linearize(expr.SubE(n.A, n.B)) // n holds where bound < 0, or bound - 1 < 0
	if n.Op == expr.Le {
		bound.Const--
	}
	coef, linear := bound.Coef(p.lane)
	if !linear || coef != 1 && coef != -1 {
		return nil, false
	}
	begin := bound.Plus(expr.Linearize(p.lane), -coef)
	if coef == -1 { // the last lane has the smallest bound: bound < 0 cuts between begin-lanes+1 and begin
		begin.Const -= p.lanes - 1
	}
	for _, t := range begin.Terms {
		if t.Coef%p.lanes != 0 {
			return nil, false
		}
	}
	if begin.Const%p.lanes != 0 {
		return nil, false
	}
	return expr.Bin(expr.Lt, begin.Expr(), expr.I(0)), true
}

func (p *printer) broadcast(e expr.Expr) string {
	t := p.unit.vector(e.DType(), p.lanes)
	if n, ok := e.(*expr.Float); ok && n.Value == 0 {
		return "(" + t + "){0}"
	}
	return fmt.Sprintf("%s_splat(%s)", t, p.scalar(e))
}

// lanewise gathers the lanes, each computed as a scalar.
func (p *printer) lanewise(e expr.Expr) string {
	lane, lanes := p.lane, p.lanes
	t := p.unit.vector(e.DType(), lanes)
	p.lane, p.lanes = nil, 1
	defer func() { p.lane, p.lanes = lane, lanes }()
	parts := make([]string, lanes)
	for k := range parts {
		at := expr.Simplifier{Values: map[*expr.Var]expr.Expr{lane: expr.I(int64(k))}}
		parts[k] = p.scalar(at.Simplify(e))
	}
	return fmt.Sprintf("(%s){%s}", t, strings.Join(parts, ", "))
}

func (p *printer) vectorLoad(n *expr.Load) (string, bool) {
	at := expr.Linearize(n.Index[0])
	coef, linear := at.Coef(p.lane)
	if !linear || coef != 1 {
		return "", false
	}
	at = at.Plus(expr.Linearize(p.lane), -1)
	if reg := p.registers[n.Tensor]; reg != nil {
		return reg.vector(at.Const, p.lanes)
	}
	t := p.unit.vector(n.Tensor.DType, p.lanes)
	code := fmt.Sprintf("*(const %s_mem *)&%s", t, p.element(n.Tensor, at))
	if p.isNew(code) {
		p.prefetch(n.Tensor, at)
		p.prefetchNext(n.Tensor, at)
	}
	return p.temp(t, code, n.Tensor), true
}

func (p *printer) vectorBinary(n *expr.Binary) (string, bool) {
	d := n.A.DType()
	if isHalf(d) {
		return p.vectorForm(inFloat32(n))
	}
	if code, ok := p.byLogistic(n); ok {
		return code, true
	}
	switch n.Op {
	case expr.Add, expr.Sub, expr.Mul:
	case expr.And, expr.Or, expr.Xor:
	case expr.Div:
		if !d.IsFloat() {
			return "", false
		}
	case expr.Pow:
		if !d.IsFloat() {
			return "", false
		}
		return fmt.Sprintf("%s(%s, %s)", p.unit.helper("pow", d, p.lanes), p.vector(n.A), p.vector(n.B)), true
	case expr.Min, expr.Max:
		return p.vectorExtreme(n), true
	default:
		return "", false
	}
	return fmt.Sprintf("(%s %s %s)", p.vector(n.A), infix[n.Op], p.vector(n.B)), true
}

// vectorExtreme is Min or Max. A number that is not NaN, such as the zero of a ReLU, comes first, which is cheaper.
func (p *printer) vectorExtreme(n *expr.Binary) string {
	a, b := n.A, n.B
	if isNumber(b) {
		a, b = b, a
	}
	helper := p.unit.extremeHelper(n.Op, a.DType(), p.lanes)
	if isNumber(a) {
		helper = p.unit.helper(n.Op.String(), a.DType(), p.lanes)
	}
	return fmt.Sprintf("%s(%s, %s)", helper, p.vector(a), p.vector(b))
}

func isNumber(e expr.Expr) bool {
	f, ok := e.(*expr.Float)
	return ok && f.Value == f.Value
}

func (p *printer) vectorUnary(n *expr.Unary) (string, bool) {
	d := n.A.DType()
	switch {
	case isHalf(d):
		return p.vectorForm(inFloat32(n))
	case n.Op == expr.Neg:
		return fmt.Sprintf("(-%s)", p.vector(n.A)), true
	case n.Op == expr.Not:
		return fmt.Sprintf("(~%s)", p.vector(n.A)), true
	case !d.IsFloat():
		return "", false
	case n.Op == expr.Rsqrt:
		return fmt.Sprintf("(%s / %s(%s))", p.broadcast(expr.F(d, 1)), p.unit.helper("sqrt", d, p.lanes), p.vector(n.A)), true
	case lanewiseBuiltins[n.Op.String()] == "":
		return "", false
	}
	name := n.Op.String()
	if n.Op == expr.Exp && d == array.Float32 && p.endsTile(n.A) {
		name = "exp_all"
	}
	return fmt.Sprintf("%s(%s)", p.unit.helper(name, d, p.lanes), p.vector(n.A)), true
}

// endsTile reports whether e reads a tile of accumulators.
func (p *printer) endsTile(e expr.Expr) bool {
	return slices.ContainsFunc(expr.Loads(e), func(l *expr.Load) bool {
		reg := p.registers[l.Tensor]
		return reg != nil && reg.IsTile()
	})
}
