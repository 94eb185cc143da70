package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Window is where a sum reads something other than padding along a dimension: where Step times an axis of its
// reduction, plus Stride times the axis Along of its results, is First at least and less than End.
type Window struct {
	// Along is the index of an axis of the results, -1 for none.
	Along        int
	Step, Stride int64
	First, End   int64
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
	}
	windows := s.Windows(g, g.AxisVar(it.Axis))
	if len(windows) == 0 {
		return fmt.Errorf("trim: no padding is known along iterator %d of stage %d", iterID, stageID)
	}
	if err := s.annotate("trim", stageID, iterID, Trimmed); err != nil {
		return err
	}
	it.Windows = windows
	return nil
}

// Iterations are those of a loop over so many along an axis of the reduction that are left where the axis Along has
// values from least to most: from the first to before the end.
func (w Window) Iterations(least, most, extent int64) (first, end int64) {
	first = max(0, ceilDiv(w.First-w.Stride*most, w.Step))
	return first, max(first, min(extent, ceilDiv(w.End-w.Stride*least, w.Step)))
}

// Kept is the part of the iterations that is left on average, where the axis Along has so many values, of which so
// many are computed at a time.
func (w Window) Kept(values, atOnce, extent int64) float64 {
	left, tiles := int64(0), int64(0)
	for from := int64(0); from < values; from += atOnce {
		first, end := w.Iterations(from, min(from+atOnce, values)-1, extent)
		left += end - first
		tiles++
	}
	return float64(left) / float64(tiles*extent)
}

// ceilDiv rounds up, whatever the sign of a.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a > q*b {
		q++
	}
	return q
}

// Windows are those along an axis of the reduction of a sum of products with a constant, whose other factor a stage
// pads with zeros.
func (s *Schedule) Windows(g *Stage, axis *expr.Var) (windows []Window) {
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
		w, ok := windowOf(g, index, axis)
		if !ok {
			continue
		}
		first, end := inside(value.Cond, pad.Axes[d])
		if w.First, w.End = w.First+first, w.End+end; first > 0 || end < pad.Axes[d].Extent {
			windows = append(windows, w)
		}
	}
	return windows
}

// windowOf is how an index moves with an axis of a stage's reduction, and with an axis of its results; ok is false
// where it is no sum of these. First and End are counted from the constant in it.
func windowOf(g *Stage, index expr.Expr, axis *expr.Var) (w Window, ok bool) {
	linear := expr.Linearize(index)
	w = Window{Along: -1, First: -linear.Const, End: -linear.Const}
	for _, term := range linear.Terms {
		switch k := slices.IndexFunc(g.Axes, func(v *expr.Var) bool { return v == term.Atom }); {
		case term.Atom == axis:
			w.Step = term.Coef
		case k < 0 || w.Along >= 0:
			return w, false
		default:
			w.Along, w.Stride = k, term.Coef
		}
	}
	return w, w.Step > 0 && w.Stride >= 0
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
