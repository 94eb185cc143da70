package schedule

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Band is where an index of a dimension reads something other than padding.
type Band struct {
	// Index is in terms of the axes of the stage that reads.
	Index expr.Expr
	// First and End are the index's first value inside, and the one behind the last.
	First, End int64
}

// Trim has the loop over a whole axis of a sum's reduction leave out the iterations that multiply nothing but padding,
// as those of a window's rows outside of an image. What pads is a stage of its own, and the other factor a constant,
// whose numbers are taken to be finite.
func (s *Schedule) Trim(stageID, iterID int) error {
	g, it, err := s.leaf(stageID, iterID)
	switch {
	case err != nil:
		return fmt.Errorf("trim: %w", err)
	case !it.Reduce || it.Axis < 0:
		return fmt.Errorf("trim: iterator %d of stage %d is no whole axis of a reduction", iterID, stageID)
	case len(s.Bands(g, g.AxisVar(it.Axis))) == 0:
		return fmt.Errorf("trim: no padding is known along iterator %d of stage %d", iterID, stageID)
	}
	return s.annotate("trim", stageID, iterID, Trimmed)
}

// Bands are the dimensions along which a sum of products with a constant reads what another stage pads with zeros, and
// whose index moves with an axis of the sum's reduction.
func (s *Schedule) Bands(g *Stage, axis *expr.Var) (bands []Band) {
	a, b, ok := Factors(g.Body)
	if !ok || g.Combiner != expr.Sum {
		return nil
	}
	if s.isConstant(a.Tensor) {
		a, b = b, a
	}
	pad := s.Producer(a.Tensor)
	if pad == nil || pad.Inlined || !s.isConstant(b.Tensor) {
		return nil
	}
	value, ok := pad.Body.(*expr.Select)
	if !ok || !isZero(value.B) || len(pad.Reduce) > 0 {
		return nil
	}
	for d, index := range a.Index {
		if !expr.Uses(index, axis) {
			continue
		}
		if first, end := inside(value.Cond, pad.Axes[d]); first > 0 || end < pad.Axes[d].Extent {
			bands = append(bands, Band{index, first, end})
		}
	}
	return bands
}

func (s *Schedule) isConstant(t *expr.Tensor) bool {
	for k := range s.Workload.Constants {
		if s.ConstantTensor(k) == t {
			return true
		}
	}
	return false
}

// inside are the first value of an axis for which a condition may hold, and the one behind the last, for all that the
// comparisons of this axis alone tell.
func inside(cond expr.Expr, axis *expr.Var) (first, end int64) {
	first, end = axis.Extent, 0
	for k := range axis.Extent {
		at := expr.Simplifier{Values: map[*expr.Var]expr.Expr{axis: expr.I(k)}}
		if value, known := at.Simplify(cond).(*expr.Int); known && value.Value == 0 {
			continue
		}
		first, end = min(first, k), k+1
	}
	return first, end
}
