package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Window is the range along a dimension in which a sum reads more than padding: Step times an axis of its
// reduction, plus Stride times the result axis Along, is at least First and less than End.
type Window struct {
	// Along is the index of a result axis, or -1 for none.
	Along        int
	Step, Stride int64
	First, End   int64
}

// Trim makes the loop over a whole reduction axis of a sum skip the iterations that multiply only padding, such as
// the rows of a window outside an image. The padding must be a stage of its own, and the other factor a constant,
// which is assumed to be finite.
func (s *Schedule) Trim(stageID, iterID int) error {
	return s.annotate("trim", stageID, iterID, Trimmed, func(g *Stage, it *Iter) error {
		if !it.Reduce || it.Axis < 0 {
			return fmt.Errorf("iterator %d of stage %d is not a whole axis of a reduction", iterID, stageID)
		}
		if it.Windows = s.Windows(g, g.AxisVar(it.Axis)); len(it.Windows) == 0 {
			return fmt.Errorf("no padding is known along iterator %d of stage %d", iterID, stageID)
		}
		return nil
	})
}

// Iterations returns the remaining iterations, first to end (exclusive), of a reduction loop of the given extent
// while the axis Along has values from lo to hi.
func (w Window) Iterations(lo, hi, extent int64) (first, end int64) {
	first = max(0, ceilDiv(w.First-w.Stride*hi, w.Step))
	return first, max(first, min(extent, ceilDiv(w.End-w.Stride*lo, w.Step)))
}

// Kept returns the average share of the remaining iterations, if the axis Along has the given number of values and
// atOnce of them are computed together.
func (w Window) Kept(values, atOnce, extent int64) float64 {
	left, tiles := int64(0), int64(0)
	for from := int64(0); from < values; from += atOnce {
		first, end := w.Iterations(from, min(from+atOnce, values)-1, extent)
		left += end - first
		tiles++
	}
	return float64(left) / float64(tiles*extent)
}

// ceilDiv rounds up for a of either sign.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a > q*b {
		q++
	}
	return q
}

// Windows returns the windows along a reduction axis of a sum of products with a constant, if a stage zero-pads the
// other factor.
func (s *Schedule) Windows(g *Stage, axis *expr.Var) (windows []Window) {
	a, b, ok := Factors(g.Body)
	if !ok || g.Combiner != expr.Sum {
		return nil
	}
	if s.Constant(a.Tensor) >= 0 {
		a, b = b, a
	}
	pad := s.Producer(a.Tensor)
	if pad == nil || pad.Inlined || s.Constant(b.Tensor) < 0 {
		return nil
	}
	value, ok := pad.Body.(*expr.Select)
	if !ok || !IsZero(value.B) || len(pad.Reduce) > 0 {
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

// windowOf returns how an index moves with a reduction axis and a result axis of a stage; ok is false if it is not
// a sum of these. First and End are relative to the constant term.
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

// inside returns bounds on the values of an axis for which a condition may hold, first to end (exclusive), as
// derived from comparisons of this axis alone.
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
