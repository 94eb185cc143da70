package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// vector is a C expression of p.lanes lanes for e. Where there is no vector form, the lanes are computed one by one.
func (p *printer) vector(e expr.Expr) string {
	d := e.DType()
	if !expr.Uses(e, p.lane) {
		return p.broadcast(e)
	}
	switch n := e.(type) {
	case *expr.Load:
		if code, ok := p.vectorLoad(n); ok {
			return code
		}
	case *expr.Binary:
		if code, ok := p.vectorBinary(n); ok {
			return code
		}
	case *expr.Unary:
		if code, ok := p.vectorUnary(n); ok {
			return code
		}
	case *expr.Select:
		if first, ok := p.uniform(n.Cond); ok && vectorizable(d) {
			cond, t := p.scalar(first), p.unit.vector(d, p.lanes)
			defer p.guard()()
			return fmt.Sprintf("(%s ? (%s)%s : (%s)%s)", cond, t, p.vector(n.A), t, p.vector(n.B)) // gcc refuses vectors that differ in alignment
		}
	case *expr.Cast:
		if vectorizable(d) && vectorizable(n.A.DType()) && d.IsFloat() && n.A.DType().IsFloat() {
			return fmt.Sprintf("__builtin_convertvector(%s, %s)", p.vector(n.A), p.unit.vector(d, p.lanes))
		}
	}
	return p.lanewise(e)
}

// uniform is a condition that holds for all lanes or for none, as a condition on the first lane; ok is false when the lanes may
// differ. A bound that is a multiple of the lanes away from the vector's begin, as in the concatenation of whole vectors, does
// not cut through a vector.
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
	if !linear || coef != 1 || !vectorizable(n.Tensor.DType) {
		return "", false
	}
	at = at.Plus(expr.Linearize(p.lane), -1)
	if reg := p.registers[n.Tensor]; reg != nil {
		return reg.vector(at.Const, p.lanes)
	}
	t := p.unit.vector(n.Tensor.DType, p.lanes)
	address := fmt.Sprintf("&%s[%s]", p.buffer(n.Tensor), p.index(at))
	code := fmt.Sprintf("*(const %s_mem *)%s", t, address)
	if ahead := p.kernel.prefetchBytes(n.Tensor); ahead > 0 && p.isNew(code) {
		p.line("__builtin_prefetch((const char *)%s + %d);", address, ahead)
	}
	return p.temp(t, code), true
}

func (p *printer) vectorBinary(n *expr.Binary) (string, bool) {
	d := n.A.DType()
	if !vectorizable(d) || n.Op.IsComparison() {
		return "", false
	}
	switch n.Op {
	case expr.Add, expr.Sub, expr.Mul:
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
		return fmt.Sprintf("%s(%s, %s)", p.unit.helper(n.Op.String(), d, p.lanes), p.vector(n.A), p.vector(n.B)), true
	default:
		return "", false
	}
	return fmt.Sprintf("(%s %s %s)", p.vector(n.A), infix[n.Op], p.vector(n.B)), true
}

func (p *printer) vectorUnary(n *expr.Unary) (string, bool) {
	d := n.A.DType()
	if !vectorizable(d) || !d.IsFloat() {
		return "", false
	}
	switch n.Op {
	case expr.Neg:
		return fmt.Sprintf("(-%s)", p.vector(n.A)), true
	case expr.Rsqrt:
		return fmt.Sprintf("(%s / %s(%s))", p.broadcast(expr.F(d, 1)), p.unit.helper("sqrt", d, p.lanes), p.vector(n.A)), true
	}
	if lanewiseBuiltins[n.Op.String()] == "" {
		return "", false
	}
	return fmt.Sprintf("%s(%s)", p.unit.helper(n.Op.String(), d, p.lanes), p.vector(n.A)), true
}
