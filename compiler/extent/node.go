package extent

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// node is an open expression: a sum of terms and a constant. Terms are sorted, with distinct products of atoms.
type node struct {
	set    *Set
	terms  []term
	plus   int64
	within interval
	// size is the number of symbols and operations in its text.
	size int
}

// term is a number times a product of atoms, sorted by their numbers.
type term struct {
	by int64
	of []*atom
}

// atom is a symbol divided by its step, or an operation that is no sum and no product.
type atom struct {
	atomKey
	// number is the atom's position among those of its set.
	number int
	within interval
	size   int
}

type atomKey struct {
	symbol *Symbol
	op     Op
	a, b   Extent
}

func setOf(e, f Extent) *Set {
	if e.of != nil {
		return e.of.set
	}
	return f.of.set
}

// split returns a constant as a sum without terms.
func (e Extent) split() node {
	if e.of == nil {
		return node{plus: e.n}
	}
	return *e.of
}

// all returns the terms, including that of the constant.
func (n node) all() []term {
	if n.plus == 0 {
		return n.terms
	}
	return append(n.terms[:len(n.terms):len(n.terms)], term{by: n.plus})
}

func (t term) times(u term) term {
	of := slices.Concat(t.of, u.of)
	slices.SortFunc(of, func(a, b *atom) int { return cmp.Compare(a.number, b.number) })
	return term{bounded(float64(t.by)*float64(u.by), t.by*u.by), of}
}

// bounded returns an exact number whose approximate value is given, if it is within the limit.
func bounded(approximate float64, exact int64) int64 {
	if math.Abs(approximate) > maxFactor {
		panic(ErrComplex)
	}
	return exact
}

// compare orders terms by degree, the largest first, and then by atoms.
func (t term) compare(u term) int {
	if c := cmp.Compare(len(u.of), len(t.of)); c != 0 {
		return c
	}
	return slices.CompareFunc(t.of, u.of, func(a, b *atom) int { return cmp.Compare(a.number, b.number) })
}

// sum returns the canonical sum of terms and a constant.
func (s *Set) sum(terms []term, plus int64) Extent {
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, term.compare)
	var kept []term
	for _, t := range terms {
		if len(t.of) == 0 {
			plus += t.by
			continue
		}
		if last := len(kept) - 1; last >= 0 && kept[last].compare(t) == 0 {
			if kept[last].by = bounded(float64(kept[last].by)+float64(t.by), kept[last].by+t.by); kept[last].by == 0 {
				kept = kept[:last]
			}
			continue
		}
		if t.by != 0 {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return Of(plus)
	}
	if len(kept) > maxTerms || len(kept[0].of) > maxDegree {
		panic(ErrComplex)
	}
	return Extent{of: s.node(kept, plus)}
}

// node interns a sum.
func (s *Set) node(terms []term, plus int64) *node {
	var key strings.Builder
	for _, t := range terms {
		key.WriteString(strconv.FormatInt(t.by, 36))
		for _, a := range t.of {
			key.WriteByte('*')
			key.WriteString(strconv.Itoa(a.number))
		}
		key.WriteByte('+')
	}
	key.WriteString(strconv.FormatInt(plus, 36))
	if n := s.nodes[key.String()]; n != nil {
		return n
	}
	n := &node{set: s, terms: terms, plus: bounded(float64(plus), plus)}
	for _, t := range terms {
		for _, a := range t.of {
			n.size += a.size
		}
	}
	if n.size > maxSize || len(s.nodes) >= maxNodes {
		panic(ErrComplex)
	}
	n.within = n.bounds(maxEliminations)
	if s.nodes == nil {
		s.nodes = map[string]*node{}
	}
	s.nodes[key.String()] = n
	return n
}

// atom interns an atom.
func (s *Set) atom(key atomKey, within interval) *atom {
	if a := s.atoms[key]; a != nil {
		return a
	}
	if s.atoms == nil {
		s.atoms = map[atomKey]*atom{}
	}
	a := &atom{key, len(s.atoms), within, 1 + key.a.split().size + key.b.split().size}
	s.atoms[key] = a
	return a
}

// apply returns an operation as an atom. Minima and maxima have their operands in the order of their text.
func (s *Set) apply(op Op, a, b Extent, within interval) Extent {
	if op != FloorDiv && a.String() > b.String() {
		a, b = b, a
	}
	if within.lo == within.hi {
		return Of(within.lo)
	}
	return s.sum([]term{{1, []*atom{s.atom(atomKey{op: op, a: a, b: b}, within)}}}, 0)
}

// over returns n / by, for by > 1.
func (n *node) over(by int64) Extent {
	// The coefficients of the rest are in 0..by-1, so that each number has one form.
	var quotient, rest []term
	whole, common := floorDiv(n.plus, by), by
	left := n.plus - by*whole
	for _, t := range n.terms {
		q := floorDiv(t.by, by)
		if r := t.by - q*by; r != 0 {
			rest, common = append(rest, term{r, t.of}), gcd(common, r)
		}
		quotient = append(quotient, term{q, t.of})
	}
	q := n.set.sum(quotient, whole)
	for k := range rest {
		rest[k].by /= common
	}
	by /= common
	r := n.set.sum(rest, floorDiv(left, common))
	if low, high := floorDiv(r.Min(), by), floorDiv(r.Max(), by); r.Max() != infinite && r.Min() != -infinite && low == high {
		return q.Plus(Of(low))
	}
	if x, m, ok := r.quotient(); ok && m <= math.MaxInt32 && by <= math.MaxInt32 { // ((x/m) + c) / by
		return q.Plus(x.Plus(Of(r.of.plus * m)).Over(Of(m * by)))
	}
	return q.Plus(n.set.apply(FloorDiv, r, Of(by), r.within().over(interval{by, by})))
}

// quotient matches a sum of a quotient x / m, by a constant m, and a constant.
func (e Extent) quotient() (x Extent, m int64, ok bool) {
	if e.of == nil || len(e.of.terms) != 1 || e.of.terms[0].by != 1 || len(e.of.terms[0].of) != 1 {
		return Extent{}, 0, false
	}
	return e.of.terms[0].of[0].quotient()
}

// quotient matches a quotient by a constant.
func (a *atom) quotient() (x Extent, m int64, ok bool) {
	m, isConst := a.b.Const()
	return a.a, m, a.op == FloorDiv && isConst
}

// exactly returns e / f if it is a polynomial without a rest, by division with the leading terms.
func (e Extent) exactly(f Extent) (quotient Extent, ok bool) {
	lead := f.split().all()[0]
	for range maxTerms {
		if e.Is(0) {
			return quotient, true
		}
		top := e.split().all()[0]
		of, divides := without(top.of, lead.of)
		if !divides || top.by%lead.by != 0 {
			return Extent{}, false
		}
		part := setOf(e, f).sum([]term{{top.by / lead.by, of}}, 0)
		quotient, e = quotient.Plus(part), e.Minus(part.Times(f))
	}
	return Extent{}, false
}

// without removes factors from a product; ok is false if it lacks one.
func without(product, factors []*atom) (rest []*atom, ok bool) {
	rest = slices.Clone(product)
	for _, a := range factors {
		k := slices.Index(rest, a)
		if k < 0 {
			return nil, false
		}
		rest = slices.Delete(rest, k, k+1)
	}
	return rest, true
}

// maxEliminations limits the quotients and factors that are taken out one after the other to find bounds, and
// maxRelated the terms of the sums for which that is done.
const maxEliminations, maxRelated = 3, 8

// bounds returns bounds by interval arithmetic. To relate a quotient to its dividend, it also replaces x/m by
// (x - r)/m with a rest 0 <= r < m, so that x - 2*(x/2) is found to be in 0..1.
func (n *node) bounds(eliminations int) interval {
	within := interval{n.plus, n.plus}
	for _, t := range n.terms {
		product := interval{t.by, t.by}
		for _, a := range t.of {
			product = product.times(a.within)
		}
		within = within.plus(product)
	}
	if eliminations == 0 || len(n.terms) > maxRelated || slices.ContainsFunc(n.terms, func(t term) bool { return max(t.by, -t.by) > math.MaxInt32 }) ||
		max(n.plus, -n.plus) > math.MaxInt32 {
		return within
	}
	within = n.factored(within, eliminations)
	for k, t := range n.terms {
		if len(t.of) != 1 {
			continue
		}
		x, m, ok := t.of[0].quotient()
		if !ok || m > math.MaxInt32 || len(x.split().terms) > maxRelated {
			continue
		}
		// m*n = m*others + by*x - by*r
		others := node{set: n.set, plus: m * n.plus}
		for j, u := range n.terms {
			if j != k {
				others.terms = append(others.terms, term{m * u.by, u.of})
			}
		}
		for _, u := range x.split().all() {
			others.terms = append(others.terms, term{t.by * u.by, u.of})
		}
		scaled := others.merged().bounds(eliminations - 1).plus(interval{0, m - 1}.times(interval{-t.by, -t.by}))
		if scaled.lo != -infinite {
			within.lo = max(within.lo, -floorDiv(-scaled.lo, m))
		}
		if scaled.hi != infinite {
			within.hi = min(within.hi, floorDiv(scaled.hi, m))
		}
	}
	return within
}

// factored narrows bounds by taking a factor out of the terms that share it: b*q - b is b*(q - 1), which is not
// negative where q is at least 1.
func (n *node) factored(within interval, eliminations int) interval {
	seen := map[*atom]int{}
	for _, t := range n.terms {
		for k, a := range t.of {
			if k == 0 || t.of[k-1] != a {
				seen[a]++
			}
		}
	}
	for a, terms := range seen {
		if terms < 2 {
			continue
		}
		with, others := node{set: n.set}, node{set: n.set, plus: n.plus}
		for _, t := range n.terms {
			if rest, ok := without(t.of, []*atom{a}); ok {
				with.terms = append(with.terms, term{t.by, rest})
			} else {
				others.terms = append(others.terms, t)
			}
		}
		sum := a.within.times(with.merged().bounds(eliminations - 1)).plus(others.bounds(eliminations - 1))
		within = interval{max(within.lo, sum.lo), min(within.hi, sum.hi)}
	}
	return within
}

// merged returns a sum with distinct terms, without interning it.
func (n node) merged() *node {
	slices.SortStableFunc(n.terms, term.compare)
	var kept []term
	for _, t := range n.terms {
		switch last := len(kept) - 1; {
		case len(t.of) == 0:
			n.plus += t.by
		case last >= 0 && kept[last].compare(t) == 0:
			kept[last].by += t.by
		default:
			kept = append(kept, t)
		}
	}
	n.terms = slices.DeleteFunc(kept, func(t term) bool { return t.by == 0 })
	return &n
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (i interval) plus(j interval) interval {
	return interval{saturated(float64(i.lo)+float64(j.lo), i.lo+j.lo), saturated(float64(i.hi)+float64(j.hi), i.hi+j.hi)}
}

func (i interval) times(j interval) interval {
	var all []int64
	for _, a := range []int64{i.lo, i.hi} {
		for _, b := range []int64{j.lo, j.hi} {
			all = append(all, saturated(float64(a)*float64(b), a*b))
		}
	}
	return interval{slices.Min(all), slices.Max(all)}
}

// over returns the bounds of a quotient; they are unknown if the divisor may be zero.
func (i interval) over(j interval) interval {
	if j.lo < 1 || i.lo == -infinite || i.hi == infinite {
		return interval{-infinite, infinite}
	}
	all := []int64{floorDiv(i.lo, j.lo), floorDiv(i.lo, j.hi), floorDiv(i.hi, j.lo), floorDiv(i.hi, j.hi)}
	return interval{slices.Min(all), slices.Max(all)}
}

// saturated returns an exact result unless the approximate one is too large for it.
func saturated(approximate float64, exact int64) int64 {
	switch {
	case approximate > 1<<62:
		return infinite
	case approximate < -1<<62:
		return -infinite
	}
	return exact
}
