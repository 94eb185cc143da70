package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// SquareBytes is the number of bytes per lane and operand in a reduction step for instructions that multiply two
// rows by two columns. Other instructions take half as many.
const SquareBytes = 8

// squaresOfBFloat16 describes such steps as an algorithm: an instruction adds two products, rounded to odd, before
// it adds them to the sum and rounds again. It flushes denormals to zero.
var squaresOfBFloat16 = algorithm{"BF16 squares", Fast, 2, 1}

// Dot computes a leaf's iterations of a sum of products in one step for all lanes of a vector: instructions
// multiply two to eight neighbouring elements per lane and add the products to the lane's sum. The leaf must be
// directly outside the vectorized one. If the operands do not have the layout of the instructions, or the machine
// lacks them for their types, the step falls back to plain arithmetic, which is slow but correct. SquareBytes of
// bfloat16 require fast numerics.
func (s *Schedule) Dot(stageID, iterID int) error {
	var squares bool
	err := s.annotate("dot", stageID, iterID, Dotted, func(g *Stage, it *Iter) error {
		if !it.Reduce || g.Combiner != expr.Sum {
			return fmt.Errorf("iterator %d of stage %d is not of a sum", iterID, stageID)
		}
		a, b, ok := Factors(g.Body)
		squares = ok && a.DType() == array.BFloat16 && b.DType() == array.BFloat16 && g.terms(it)*a.DType().Bytes() == SquareBytes
		return nil
	})
	if err == nil && squares {
		s.algorithms = append(s.algorithms, squaresOfBFloat16)
	}
	return err
}

// terms returns the extent of an iterator that is a whole axis or the inner part of a split; 0 for others.
func (g *Stage) terms(it *Iter) int64 {
	switch {
	case it.Axis >= 0:
		return g.AxisVar(it.Axis).Extent
	case it.Parent != nil && it.Parent.Inner == it:
		return it.Parent.Factor
	}
	return 0
}
