package ir

import "github.com/tilth-dev/tilth/compiler/expr"

// Range is the values that the variable of a loop takes, which are the same for all threads of a block: from First on,
// before End, every so many of them. All are below the loop's extent.
type Range struct {
	First, End expr.Expr
	Every      int64
	// Mean is how many values that is on average.
	Mean float64
}

// Rewritten is a range with its ends replaced; nil stays nil.
func (r *Range) Rewritten(f func(expr.Expr) expr.Expr) *Range {
	if r == nil {
		return nil
	}
	c := *r
	c.First, c.End = f(r.First), f(r.End)
	return &c
}

// Tiles are what the blocks of a launch share among them: how many there are, and how much of them is the share of the
// block that has most.
type Tiles struct {
	Count int64
	Most  float64
}
