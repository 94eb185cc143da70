package pass

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine"
)

// minPartBytes is the smallest part of a constant for which prefetching the next part pays.
const minPartBytes = 2048

// prefetchPart is a part of a buffer that the surrounding loops read repeatedly before they move on.
type prefetchPart struct {
	// base is the index of its first element, bytes its size, repeats the number of times it is read.
	base           expr.Linear
	bytes, repeats int64
	// inner lists the loops over the part, innermost first, with their strides in elements; turns lists the loops
	// that repeat it, with the number of repetitions per step.
	inner, turns []expr.Term
}

// partOf returns the part that a load with the given index belongs to; ok is false if nothing is read repeatedly.
func (a *prefetchAhead) partOf(at expr.Linear, elementBytes int64) (found prefetchPart, ok bool) {
	found = prefetchPart{base: at, repeats: 1}
	for k := len(a.loops) - 1; k >= 0; k-- {
		n := a.loops[k]
		c, linear := at.Coef(n.Var)
		switch {
		case !linear || c < 0 || c == 0 && len(found.inner) == 0:
			return found, false
		case c == 0:
			found.turns = append(found.turns, expr.Term{Atom: n.Var, Coef: found.repeats})
			found.repeats *= n.Extent
		case found.repeats > 1:
			return found, true
		default:
			found.inner = append(found.inner, expr.Term{Atom: n.Var, Coef: c})
			found.base = found.base.Plus(expr.Linearize(n.Var), -c)
			found.bytes = max(found.bytes, c*n.Extent*elementBytes)
		}
	}
	return found, found.repeats > 1
}

// next prefetches the part after the one of a constant that is read repeatedly, or after the one from which a
// repeatedly read buffer was computed. Each repetition fetches an equal share. The first reading of the next part
// then need not wait for memory, which could not keep up with it.
func (a *prefetchAhead) next(l line) (out ir.Block) {
	elementBytes := l.tensor.DType.Bytes()
	x, ok := a.partOf(l.at, elementBytes)
	if !ok || x.bytes < minPartBytes || a.parts[l.tensor] {
		return nil
	}
	from := source{l.tensor, x.base, x.bytes}
	if f := a.filled[l.tensor]; f != nil {
		if f.from == nil {
			return nil
		}
		from = *f.from
	}
	a.parts[l.tensor] = true
	share := ceilDiv(ceilDiv(from.bytes, x.repeats), a.lineBytes) * a.lineBytes
	perTurn := func(bytes int64) int64 { return ceilDiv(ceilDiv(bytes*from.bytes, x.bytes), x.repeats) }
	var terms []expr.Term
	for _, turn := range x.turns {
		terms = append(terms, expr.Term{Atom: turn.Atom, Coef: turn.Coef * share})
	}
	for _, inner := range x.inner {
		terms = append(terms, expr.Term{Atom: inner.Atom, Coef: perTurn(inner.Coef * elementBytes)})
	}
	step := perTurn(x.inner[0].Coef * elementBytes)
	for first := int64(0); first == 0 || first < step; first += a.lineBytes {
		bytes := expr.Linear{Const: from.bytes + first, Terms: terms}
		out = append(out, machine.PrefetchAhead(from.constant, from.base, bytes))
	}
	return out
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
