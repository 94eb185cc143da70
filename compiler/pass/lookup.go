package pass

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// ManyLookups is the cost, in operations, of a function that is computed by a polynomial, such as the exponential.
const ManyLookups = 20

const (
	// places is the number of 8-bit values.
	places = 256
	// maxNodes and maxParts bound the search. Functions in models have about a hundred nodes and depend on one of
	// their smallest parts.
	maxNodes, maxParts = 600, 8
)

// simple lists the functions that cost one operation.
var simple = []expr.UnaryOp{expr.Neg, expr.Abs, expr.Not, expr.Sqrt, expr.Rsqrt, expr.Floor, expr.Ceil, expr.Round, expr.IsNaN, expr.IsInf}

// Lookup replaces each 8-bit value that is a function of one 8-bit value by an ir.Lookup in a table of 256 entries,
// if computing it takes at least the given number of operations. Examples are a sigmoid between two quantisations
// and a product of a value with its sigmoid. A floor of 0 disables lookups.
func Lookup(f *ir.Func, floor int) *ir.Func {
	if floor == 0 {
		return f
	}
	return f.With(ir.Rewrite(f.Body, func(e expr.Expr) expr.Expr { return replaced(e, floor) }))
}

// replaced returns e with table lookups for its largest suitable parts.
func replaced(e expr.Expr, floor int) expr.Expr {
	if isByte(e.DType()) {
		if l := lookup(e, floor); l != nil {
			return l
		}
	}
	return expr.Map(e, func(x expr.Expr) expr.Expr { return replaced(x, floor) })
}

func isByte(d array.DType) bool { return d == array.Uint8 || d == array.Int8 }

// lookup returns e as a lookup by the smallest part that determines it, or nil if no part does or e is cheap.
func lookup(e expr.Expr, floor int) *ir.Lookup {
	if operations(e) < floor || expr.Size(e) > maxNodes {
		return nil
	}
	var parts []expr.Expr
	expr.Walk(e, func(x expr.Expr) {
		if x != e && isByte(x.DType()) {
			if _, literal := x.(*expr.Int); !literal {
				parts = append(parts, x)
			}
		}
	})
	slices.SortStableFunc(parts, func(a, b expr.Expr) int { return cmp.Compare(expr.Size(a), expr.Size(b)) })
	for _, part := range parts[:min(len(parts), maxParts)] {
		byPart := expr.NewInput("x", part.DType(), places)
		place := &expr.Var{Name: "i", Extent: places}
		function := lookupSubstituted(e, part, byPart.At(place))
		if lookupUses(function, place) && operations(function) >= floor {
			if table := tabulated(function, byPart, place); table != nil {
				return &ir.Lookup{Table: table, At: part}
			}
		}
	}
	return nil
}

// lookupSubstituted replaces every occurrence of part in e.
func lookupSubstituted(e, part, by expr.Expr) expr.Expr {
	if expr.Same(e, part) {
		return by
	}
	return expr.Map(e, func(x expr.Expr) expr.Expr { return lookupSubstituted(x, part, by) })
}

// lookupUses reports whether a value depends only on constants and on the element at place.
func lookupUses(e expr.Expr, place *expr.Var) bool {
	only := true
	expr.Walk(e, func(x expr.Expr) {
		switch n := x.(type) {
		case *expr.Var:
			only = only && n == place
		case *expr.Load:
			only = only && len(n.Index) == 1 && n.Index[0] == expr.Expr(place)
		case *expr.Int, *expr.Float, *expr.Binary, *expr.Unary, *expr.Select, *expr.Cast:
		default:
			only = false
		}
	})
	return only && expr.Uses(e, place)
}

// operations returns the cost of a value in operations.
func operations(e expr.Expr) (count int) {
	expr.Walk(e, func(x expr.Expr) {
		switch n := x.(type) {
		case *expr.Unary:
			if count++; !slices.Contains(simple, n.Op) {
				count += ManyLookups
			}
		case *expr.Binary, *expr.Cast, *expr.Select:
			count++
		}
	})
	return count
}

// tabulated evaluates a function for all 256 bytes; it returns nil if the evaluator fails.
func tabulated(function expr.Expr, byPart *expr.Tensor, place *expr.Var) *array.Array {
	of := expr.Compute("table", []int64{places}, func(i []expr.Expr) expr.Expr {
		return expr.Substitute(function, map[*expr.Var]expr.Expr{place: i[0]})
	})
	w, err := expr.NewWorkload([]*expr.Tensor{of})
	if err != nil {
		return nil
	}
	all := array.New(byPart.DType, places)
	for k := range all.Data {
		all.Data[k] = byte(k)
	}
	table, err := expr.Evaluate(w, []*array.Array{all})
	if err != nil {
		return nil
	}
	return table[0]
}
