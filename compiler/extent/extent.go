package extent

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Extent is a constant or an expression of symbols. The zero value is the constant 0. Extents are comparable: they are
// == if their expressions have the same canonical form. All operands of an operation belong to one Set.
type Extent struct {
	// n is the value of a constant; of is nil for constants.
	n  int64
	of *node
}

// Symbol is a number that each execution chooses: a multiple of Step in Min..Max, which are multiples themselves.
type Symbol struct {
	Name           string
	Min, Max, Step int64
	// Source is the value that a symbol has in an execution if it depends on data; it is nil for others, which are
	// chosen before an execution. Its type is up to the creator of the symbol.
	Source any
	// Points lists, in units of the step, the numbers for which kernels are timed, the last one the maximum; nil for
	// the maximum alone.
	Points []int64
	// Iterations is set for the number of an iteration of a loop, from 0 on, whose symbol is less than it.
	Iterations *Extent
	count      Extent
}

// Units returns the bounds of the symbol divided by its step.
func (s *Symbol) Units() (least, most int64) { return s.Min / s.Step, s.Max / s.Step }

// Count returns the symbol divided by its step. The symbol must have been added to a Set.
func (s *Symbol) Count() Extent { return s.count }

// Set owns the symbols and expressions of a model. The zero value is ready for use.
type Set struct {
	symbols []*Symbol
	atoms   map[atomKey]*atom
	nodes   map[string]*node
}

// Limits of an expression; those of real models have a few terms. maxSize limits the symbols and operations in its
// text, in which shared parts are repeated, maxFactor its numbers, and maxNodes the expressions of a Set.
const (
	maxTerms  = 64
	maxDegree = 8
	maxSize   = 512
	maxFactor = 1 << 48
	maxNodes  = 1 << 15
)

// ErrComplex is the panic of operations whose result exceeds the limits on expressions. Catch turns it into an error.
var ErrComplex = errors.New("an extent depends on the open ones in too complex a way: fix some by --shape")

// OpenError is the panic of Shape.Fixed for a shape with an open extent. Catch turns it into an error.
type OpenError struct {
	Axis   int
	Extent Extent
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("the extent %v of axis %d is open, which is not supported here: fix it by --shape", e.Extent, e.Axis)
}

// Catch turns the panics of this package into *err. Use it in a defer statement.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *OpenError:
		*err = r
	case error:
		if r != ErrComplex { //nolint:errorlint // a panic with this very value
			panic(r)
		}
		*err = r
	default:
		panic(r)
	}
}

// Of returns a constant.
func Of(n int64) Extent { return Extent{n: n} }

// Add adds a symbol and returns its extent.
func (s *Set) Add(symbol *Symbol) Extent {
	s.symbols = append(s.symbols, symbol)
	least, most := symbol.Units()
	a := s.atom(atomKey{symbol: symbol}, interval{least, most})
	symbol.count = s.sum([]term{{1, []*atom{a}}}, 0)
	return symbol.count.Times(Of(symbol.Step))
}

// Symbols returns the symbols in the order in which they were added; none of a nil set.
func (s *Set) Symbols() []*Symbol {
	if s == nil {
		return nil
	}
	return s.symbols
}

// Const returns the value of a constant; ok is false for others.
func (e Extent) Const() (n int64, ok bool) { return e.n, e.of == nil }

// Is reports whether the extent is the constant n.
func (e Extent) Is(n int64) bool { return e.of == nil && e.n == n }

// IsOpen reports whether the extent depends on symbols.
func (e Extent) IsOpen() bool { return e.of != nil }

// Max returns an upper bound, which is exact for constants and symbols.
func (e Extent) Max() int64 { return e.within().hi }

// Min returns a lower bound, which is exact for constants and symbols.
func (e Extent) Min() int64 { return e.within().lo }

func (e Extent) within() interval {
	if e.of == nil {
		return interval{e.n, e.n}
	}
	return e.of.within
}

// Plus returns e + f.
func (e Extent) Plus(f Extent) Extent {
	if e.of == nil && f.of == nil {
		return Of(e.n + f.n)
	}
	a, b := e.split(), f.split()
	return setOf(e, f).sum(append(a.terms[:len(a.terms):len(a.terms)], b.terms...), a.plus+b.plus)
}

// Minus returns e - f.
func (e Extent) Minus(f Extent) Extent { return e.Plus(f.Times(Of(-1))) }

// Times returns e * f.
func (e Extent) Times(f Extent) Extent {
	switch {
	case e.of == nil && f.of == nil:
		return Of(e.n * f.n)
	case e.Is(0) || f.Is(0):
		return Of(0)
	case e.Is(1):
		return f
	case f.Is(1):
		return e
	}
	a, b := e.split(), f.split()
	var terms []term
	for _, x := range a.all() {
		for _, y := range b.all() {
			terms = append(terms, x.times(y))
		}
	}
	return setOf(e, f).sum(terms, 0)
}

// Over returns e / f, rounded toward minus infinity. f must not be zero in any execution.
func (e Extent) Over(f Extent) Extent {
	switch {
	case f.Is(1):
		return e
	case f.Is(0):
		return Of(0)
	case f.of == nil && f.n < 0:
		return e.Times(Of(-1)).Over(Of(-f.n))
	case e.of == nil && f.of == nil:
		return Of(floorDiv(e.n, f.n))
	case f.of == nil:
		return e.of.over(f.n)
	}
	if q, ok := e.exactly(f); ok {
		return q
	}
	a, b := e.within(), f.within()
	if a.lo >= 0 && e.Less(f) {
		return Of(0)
	}
	return setOf(e, f).apply(FloorDiv, e, f, a.over(b))
}

// CeilOver returns e / f, rounded toward plus infinity.
func (e Extent) CeilOver(f Extent) Extent { return e.Minus(Of(1)).Over(f).Plus(Of(1)) }

// Mod returns e - f*(e/f), which has the sign of f.
func (e Extent) Mod(f Extent) Extent { return e.Minus(f.Times(e.Over(f))) }

// Least returns the smaller one of e and f.
func (e Extent) Least(f Extent) Extent { return e.extreme(Min, f) }

// Most returns the larger one of e and f.
func (e Extent) Most(f Extent) Extent { return e.extreme(Max, f) }

// extreme returns the smaller or the larger one of e and f.
func (e Extent) extreme(op Op, f Extent) Extent {
	a, b := e.within(), f.within()
	within := interval{min(a.lo, b.lo), min(a.hi, b.hi)}
	if op == Max {
		within = interval{max(a.lo, b.lo), max(a.hi, b.hi)}
	}
	switch isLess := e.AtMost(f); {
	case isLess == (op == Min) && (isLess || f.AtMost(e)):
		return e
	case isLess || f.AtMost(e):
		return f
	}
	return setOf(e, f).apply(op, e, f, within)
}

// AtMost reports whether e <= f holds in all executions, as far as bounds and common terms show.
func (e Extent) AtMost(f Extent) bool {
	if e.within().hi <= f.within().lo {
		return true
	}
	if e.of == nil && f.of == nil || e.within().lo > f.within().hi {
		return false
	}
	if a := e.single(); a != nil && (a.op == Min && (a.a.AtMost(f) || a.b.AtMost(f)) || a.op == Max && a.a.AtMost(f) && a.b.AtMost(f)) {
		return true
	}
	if a := f.single(); a != nil && (a.op == Max && (e.AtMost(a.a) || e.AtMost(a.b)) || a.op == Min && e.AtMost(a.a) && e.AtMost(a.b)) {
		return true
	}
	return f.Minus(e).least() >= 0
}

// least returns a lower bound. The numbers of iterations are the first or the last ones, whichever makes the sum
// smaller.
func (e Extent) least() int64 {
	for range maxLoops {
		s, last := e.iteration()
		if s == nil {
			break
		}
		values := map[*Symbol]Extent{}
		e.Each(func(of *Symbol) { values[of] = of.count.Times(Of(of.Step)) })
		values[s] = Of(0)
		if last {
			values[s] = s.Iterations.Minus(Of(1))
		}
		e = e.With(values)
	}
	return e.within().lo
}

// maxLoops limits the loops whose iterations least considers.
const maxLoops = 8

// iteration returns the number of an iteration in which a sum is monotonic, and whether it is decreasing; nil for
// other sums.
func (e Extent) iteration() (s *Symbol, last bool) {
	if e.of == nil {
		return nil, false
	}
	for _, t := range e.of.terms {
		for k, a := range t.of {
			if a.symbol == nil || a.symbol.Iterations == nil {
				continue
			}
			if sign, ok := e.sign(a); ok && t.others(k) {
				return a.symbol, sign < 0
			}
		}
	}
	return nil, false
}

// sign returns the sign of the terms that contain an atom as one of their factors; ok is false if they differ, if
// other factors may be negative, or if the atom occurs elsewhere.
func (e Extent) sign(of *atom) (sign int64, ok bool) {
	for _, t := range e.of.terms {
		for k, a := range t.of {
			switch {
			case a == of:
				if !t.others(k) || sign != 0 && (sign < 0) != (t.by < 0) {
					return 0, false
				}
				sign = t.by
			case a.symbol == nil:
				inside := false
				see := func(s *Symbol) { inside = inside || s == of.symbol }
				a.a.Each(see)
				a.b.Each(see)
				if inside {
					return 0, false
				}
			}
		}
	}
	return sign, true
}

// others reports whether the factors beside number k are not negative.
func (t term) others(k int) bool {
	for i, a := range t.of {
		if i != k && a.within.lo < 0 {
			return false
		}
	}
	return true
}

// single returns the atom that the extent consists of; nil for others.
func (e Extent) single() *atom {
	if e.of == nil || e.of.plus != 0 || len(e.of.terms) != 1 || e.of.terms[0].by != 1 || len(e.of.terms[0].of) != 1 {
		return nil
	}
	return e.of.terms[0].of[0]
}

// Less reports whether e < f holds in all executions, as far as bounds and common terms show.
func (e Extent) Less(f Extent) bool {
	if e.within().hi < f.within().lo {
		return true
	}
	if e.of == nil && f.of == nil || e.within().lo > f.within().hi {
		return false
	}
	return f.Minus(e).least() > 0
}

// Differs reports whether e != f holds in all executions, as far as bounds and common terms show.
func (e Extent) Differs(f Extent) bool { return e.Less(f) || f.Less(e) }

// Op is an operation of an expression.
type Op uint8

// The operations.
const (
	Add Op = iota + 1
	Mul
	FloorDiv
	Min
	Max
)

// Fold computes an expression: number and symbol return the value of a leaf, and apply that of an operation. The
// leaf of a symbol is the symbol divided by its Step.
func Fold[T any](e Extent, number func(int64) T, symbol func(*Symbol) T, apply func(op Op, a, b T) T) T {
	if e.of == nil {
		return number(e.n)
	}
	var sum *T
	add := func(x T) {
		if sum != nil {
			x = apply(Add, *sum, x)
		}
		sum = &x
	}
	for _, t := range e.of.terms {
		var product *T
		for _, a := range t.of {
			var x T
			if a.symbol != nil {
				x = symbol(a.symbol)
			} else {
				x = apply(a.op, Fold(a.a, number, symbol, apply), Fold(a.b, number, symbol, apply))
			}
			if product != nil {
				x = apply(Mul, *product, x)
			}
			product = &x
		}
		if t.by != 1 {
			x := apply(Mul, *product, number(t.by))
			product = &x
		}
		add(*product)
	}
	if e.of.plus != 0 {
		add(number(e.of.plus))
	}
	return *sum
}

// At returns the value where each symbol has the given one.
func (e Extent) At(value func(*Symbol) int64) int64 {
	return Fold(e, func(n int64) int64 { return n }, func(s *Symbol) int64 { return value(s) / s.Step }, func(op Op, a, b int64) int64 {
		switch op {
		case Add:
			return a + b
		case Mul:
			return a * b
		case FloorDiv:
			return floorDiv(a, b)
		case Min:
			return min(a, b)
		}
		return max(a, b)
	})
}

// With returns the expression with other extents in place of symbols.
func (e Extent) With(extents map[*Symbol]Extent) Extent {
	return Fold(e, Of, func(s *Symbol) Extent { return extents[s].Over(Of(s.Step)) }, func(op Op, a, b Extent) Extent {
		switch op {
		case Add:
			return a.Plus(b)
		case Mul:
			return a.Times(b)
		case FloorDiv:
			return a.Over(b)
		case Min:
			return a.Least(b)
		}
		return a.Most(b)
	})
}

// Linear returns an extent as plus and a multiple of each symbol's units; ok is false for others, and if a symbol
// depends on data other than the numbers of iterations.
func (e Extent) Linear() (plus int64, times map[*Symbol]int64, ok bool) {
	if e.of == nil {
		return e.n, nil, true
	}
	times = map[*Symbol]int64{}
	for _, t := range e.of.terms {
		if len(t.of) != 1 || t.of[0].symbol == nil || t.of[0].symbol.Source != nil && t.of[0].symbol.Iterations == nil {
			return 0, nil, false
		}
		times[t.of[0].symbol] = t.by
	}
	return e.of.plus, times, true
}

// Coefficient returns the coefficient of a symbol, not counting products and quotients that contain it.
func (e Extent) Coefficient(s *Symbol) int64 {
	if e.of != nil {
		for _, t := range e.of.terms {
			if len(t.of) == 1 && t.of[0].symbol == s {
				return t.by
			}
		}
	}
	return 0
}

// IsSum reports whether an extent is a constant plus positive multiples of symbols.
func (e Extent) IsSum() bool {
	_, times, ok := e.Linear()
	for _, n := range times {
		ok = ok && n > 0
	}
	return ok
}

// Each calls f with each symbol that the extent depends on.
func (e Extent) Each(f func(*Symbol)) {
	if e.of == nil {
		return
	}
	for _, t := range e.of.terms {
		for _, a := range t.of {
			if a.symbol != nil {
				f(a.symbol)
			} else {
				a.a.Each(f)
				a.b.Each(f)
			}
		}
	}
}

// DependsOn reports whether an extent depends on one of the symbols.
func (e Extent) DependsOn(symbols []*Symbol) (does bool) {
	e.Each(func(s *Symbol) { does = does || slices.Contains(symbols, s) })
	return does
}

// Symbol returns the symbol that an extent is; nil for others.
func (e Extent) Symbol() *Symbol {
	if e.of == nil || e.of.plus != 0 || len(e.of.terms) != 1 || len(e.of.terms[0].of) != 1 || e.of.terms[0].of[0].symbol == nil || e.of.terms[0].by != e.of.terms[0].of[0].symbol.Step {
		return nil
	}
	return e.of.terms[0].of[0].symbol
}

// floorDiv returns a/b rounded toward minus infinity; 0 for a division by zero.
func floorDiv(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// infinite stands for all larger numbers in bounds.
const infinite = math.MaxInt64

// interval is the range lo <= x <= hi. An infinite bound is unknown.
type interval struct{ lo, hi int64 }
