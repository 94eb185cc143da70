package codegen

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// TestElementsBeyondTheExtentsAreNotRead compares kernels with the evaluator for the elements of an execution, with
// NaN beyond them.
func TestElementsBeyondTheExtentsAreNotRead(t *testing.T) {
	checkDrawn(t, modes[:1], batchSize, func(t *rapid.T, d *target.Target) kerneltest.Case {
		draw := rapid.SampledFrom([]func(*rapid.T) *expr.Workload{kerneltest.DrawWorkload, kerneltest.DrawAttention, kerneltest.DrawRows, kerneltest.DrawSums, kerneltest.DrawProduct, kerneltest.DrawConv}).Draw(t, "kind")
		return casePoint(t, d, opened(t, draw(t)).Merge())
	})
}

// TestSchedulesKeepLimits does the same for arbitrary schedules.
func TestSchedulesKeepLimits(t *testing.T) {
	for _, m := range modes[:1] {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, kerneltest.Batch(rt, rapid.Custom(func(t *rapid.T) kerneltest.Case {
					return drawCaseOf(t, opened(t, kerneltest.DrawWorkload(t)))
				}), batchSize))
			})
		})
	}
}

// opened draws an axis of a workload, and limits it, and everything it determines in other stages, by an
// input. The workload stays unchanged if another stage would use elements beyond the limit.
func opened(t *rapid.T, w *expr.Workload) *expr.Workload {
	var axes []*expr.Var
	for _, s := range w.Stages {
		axes = append(append(axes, s.Axes...), s.Reduce...)
	}
	seed := rapid.SampledFrom(append(axes, nil)).Draw(t, "open axis")
	if seed == nil {
		return w
	}
	o := opening{w: w, axes: map[*expr.Var]bool{}, dims: map[dimension]bool{}, extent: seed.Extent}
	if !o.axis(seed) {
		return w
	}
	n := expr.NewCount("n", seed.Extent)
	limit := n.At()
	if seed.Extent > 1 && rapid.Bool().Draw(t, "pairs") {
		n.Max /= 2
		limit = expr.MulE(limit, expr.I(2))
	}
	for v := range o.axes {
		v.Limit = limit
	}
	limited, err := expr.NewWorkload(w.Outputs, append(slices.Clone(w.Inputs), append(w.Constants, n)...)...)
	if err != nil {
		t.Fatalf("the opened workload is none: %v", err)
	}
	return limited
}

// dimension is a dimension of a tensor.
type dimension struct {
	of  *expr.Tensor
	dim int
}

// opening holds what is open: axes, and dimensions of tensors that are read.
type opening struct {
	w      *expr.Workload
	axes   map[*expr.Var]bool
	dims   map[dimension]bool
	extent int64
}

// axis opens an axis and everything it indexes. It returns false if that is impossible.
func (o *opening) axis(v *expr.Var) bool {
	if o.axes[v] {
		return true
	}
	o.axes[v] = true
	for _, s := range o.w.Stages {
		if k := slices.Index(s.Axes, v); k >= 0 && !o.dimension(dimension{s, k}) {
			return false
		}
		for _, l := range expr.Loads(s.Body) {
			for k, x := range l.Index {
				if x == expr.Expr(v) && !o.dimension(dimension{l.Tensor, k}) {
					return false
				}
			}
		}
	}
	return true
}

// dimension opens a dimension of a tensor, and everything that reads it.
func (o *opening) dimension(d dimension) bool {
	if o.dims[d] {
		return true
	}
	o.dims[d] = true
	if d.of.Shape[d.dim] != o.extent {
		return false
	}
	if d.of.Role == expr.Computed && !o.axis(d.of.Axes[d.dim]) {
		return false
	}
	for _, s := range o.w.Stages {
		for _, l := range expr.Loads(s.Body) {
			if l.Tensor != d.of {
				continue
			}
			if v, isVar := l.Index[d.dim].(*expr.Var); !isVar || !o.axis(v) {
				return false
			}
		}
	}
	return true
}
