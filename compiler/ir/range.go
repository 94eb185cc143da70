package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Range restricts the values of a loop variable, uniformly for all threads of a block: from First, before End, with
// a stride. All are below the loop's extent.
type Range struct {
	First, End expr.Expr
	Every      int64
	// Mean is the average number of values.
	Mean float64
}

// Rewritten returns a range with its ends replaced; nil stays nil.
func (r *Range) Rewritten(f func(expr.Expr) expr.Expr) *Range {
	if r == nil {
		return nil
	}
	c := *r
	c.First, c.End = f(r.First), f(r.End)
	return &c
}

// Tiles describes the tiles that the blocks of a launch share: their number, and the share of the block with most.
type Tiles struct {
	Count int64
	Max   float64
}
