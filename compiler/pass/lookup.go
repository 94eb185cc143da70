// The lookup pass is the pass that looks functions of a quantised value up: from one integer of eight bits to another,
// whatever is computed in between is one of 256 answers.

package pass

import (
	"cmp"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
)

// ManyLookups is how many operations a function counts for that is computed by a polynomial, such as the exponential.
const ManyLookups = 20

const (
	// places are the values of eight bits.
	places = 256
	// mostNodes and mostParts bound what is looked at: functions in models have a hundred nodes, and are those of one
	// of the smallest of their parts.
	mostNodes, mostParts = 600, 8
)

// simple are the functions that are one operation.
var simple = []expr.UnaryOp{expr.Neg, expr.Abs, expr.Not, expr.Sqrt, expr.Rsqrt, expr.Floor, expr.Ceil, expr.Round, expr.IsNaN, expr.IsInf}

// Lookup replaces each value of eight bits that is a function of another one by an ir.Lookup, where computing it
// takes at least so many operations: a sigmoid between two quantisations, or a product of a value by its sigmoid.
func Lookup(f *ir.Func, least int) *ir.Func {
	return f.With(ir.Rewrite(f.Body, func(e expr.Expr) expr.Expr { return replaced(e, least) }))
}

// replaced is e with lookups for its largest parts that can be looked up.
func replaced(e expr.Expr, least int) expr.Expr {
	if isByte(e.DType()) {
		if l := lookup(e, least); l != nil {
			return l
		}
	}
	return expr.Map(e, func(x expr.Expr) expr.Expr { return replaced(x, least) })
}

func isByte(d array.DType) bool { return d == array.Uint8 || d == array.Int8 }

// lookup is a value as one that is looked up by the smallest of its parts that all of it is made of; nil where there
// is none, or it is computed in fewer operations.
func lookup(e expr.Expr, least int) *ir.Lookup {
	if operations(e) < least || expr.Size(e) > mostNodes {
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
	for _, part := range parts[:min(len(parts), mostParts)] {
		byPart := expr.NewInput("x", part.DType(), places)
		place := &expr.Var{Name: "i", Extent: places}
		function := lookupSubstituted(e, part, byPart.At(place))
		if lookupUses(function, place) && operations(function) >= least {
			if table := tabulated(function, byPart, place); table != nil {
				return &ir.Lookup{Table: table, At: part}
			}
		}
	}
	return nil
}

// lookupSubstituted is e with another value in place of a part, wherever that occurs.
func lookupSubstituted(e, part, by expr.Expr) expr.Expr {
	if expr.Same(e, part) {
		return by
	}
	return expr.Map(e, func(x expr.Expr) expr.Expr { return lookupSubstituted(x, part, by) })
}

// lookupUses reports whether a value is made of numbers and of what is read at a place, and of nothing else.
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

// operations counts those of a value.
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

// tabulated has a function's values for all bytes, as the evaluator computes them; nil where it cannot.
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
