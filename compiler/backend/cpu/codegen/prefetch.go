package codegen

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// minPartBytes is the least part of a constant whose successor is worth fetching while it is read.
const minPartBytes = 2048

// part is what the loops around a load read of a buffer again and again before they go on to what lies behind it.
type part struct {
	// base is the index of its first element, bytes its size, repeats how often it is read.
	base           expr.Linear
	bytes, repeats int64
	// inner are the loops over the part, innermost first, with the elements that a step moves; turns are those that
	// repeat it, with the number of repetitions in a step.
	inner, turns []expr.Term
}

// partOf finds the part that a load with the given index belongs to; ok is false where nothing is read again.
func (p *printer) partOf(at expr.Linear, elementBytes int64) (found part, ok bool) {
	found = part{base: at, repeats: 1}
	for k := len(p.loops) - 1; k >= 0; k-- {
		n := p.loops[k]
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

// prefetch fetches what will be read behind an element, once in the body of a loop, where the buffer is to be fetched
// ahead. That is twice for a line of two vectors; once made the best Winograd convolutions slower by a fiftieth.
func (p *printer) prefetch(t *expr.Tensor, at expr.Linear) {
	ahead := p.kernel.ahead[t]
	if ahead == 0 {
		return
	}
	if element := p.element(t, at); !p.fetched[element] {
		p.fetched[element] = true
		p.line("__builtin_prefetch((const char *)&%s + %d);", element, ahead)
	}
}

// prefetchNext fetches what lies behind the part of a constant that is being read several times, or behind the part
// that a buffer which is being read several times was computed from: each time a share of it, spread over the time
// that a repetition takes. The first reading of a part need not wait for memory then, which it could not keep up with.
func (p *printer) prefetchNext(t *expr.Tensor, at expr.Linear) {
	if p.kernel.ahead[t] == 0 {
		return
	}
	elementBytes := t.DType.Bytes()
	x, ok := p.partOf(at, elementBytes)
	if !ok || x.bytes < minPartBytes || p.fetched[p.buffer(t)] {
		return
	}
	from := source{t, x.base, x.bytes}
	if f := p.filled[t]; f != nil {
		if f.from == nil {
			return
		}
		from = *f.from
	}
	p.fetched[p.buffer(t)] = true
	lineBytes := p.unit.caches.LineBytes
	share := ceilDiv(ceilDiv(from.bytes, x.repeats), lineBytes) * lineBytes
	perTurn := func(bytes int64) int64 { return ceilDiv(ceilDiv(bytes*from.bytes, x.bytes), x.repeats) }
	var offsets []string
	add := func(term expr.Term, bytes int64) {
		offsets = append(offsets, fmt.Sprintf("%s * %d", p.scalar(term.Atom), bytes))
	}
	for _, turn := range x.turns {
		add(turn, turn.Coef*share)
	}
	for _, inner := range x.inner {
		add(inner, perTurn(inner.Coef*elementBytes))
	}
	step := perTurn(x.inner[0].Coef * elementBytes)
	address := fmt.Sprintf("(const char *)&%s + %s", p.element(from.constant, from.base), strings.Join(offsets, " + "))
	for first := int64(0); first == 0 || first < step; first += lineBytes {
		p.line("__builtin_prefetch(%s + %d, 0, 2);", address, from.bytes+first)
	}
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
