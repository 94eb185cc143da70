package kerneltest

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// Opened draws an axis of a workload from Draw, and limits it, and everything it determines in other stages, by an
// input. The workload stays unchanged if another stage would use elements beyond the limit.
func Opened(t *rapid.T, w *expr.Workload) *expr.Workload {
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
	opened, err := expr.NewWorkload(w.Outputs, append(slices.Clone(w.Inputs), append(w.Constants, n)...)...)
	if err != nil {
		t.Fatalf("the opened workload is none: %v", err)
	}
	return opened
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

// limits returns how many elements of a tensor an execution uses along each dimension.
func limits(w *expr.Workload, t *expr.Tensor, counts map[*expr.Tensor]int64) []int64 {
	used := slices.Clone(t.Shape)
	note := func(k int, v *expr.Var) {
		if v.Limit != nil {
			used[k] = min(used[k], limitAt(v.Limit, counts))
		}
	}
	if t.Role == expr.Computed {
		for k, v := range t.Axes {
			note(k, v)
		}
		return used
	}
	for _, s := range w.Stages {
		for _, l := range expr.Loads(s.Body) {
			if l.Tensor != t {
				continue
			}
			for k, x := range l.Index {
				if v, isVar := x.(*expr.Var); isVar {
					note(k, v)
				}
			}
		}
	}
	return used
}

// limitAt returns the value of a limit.
func limitAt(e expr.Expr, counts map[*expr.Tensor]int64) int64 {
	l := expr.Linearize(e)
	n := l.Const
	for _, term := range l.Terms {
		n += term.Coef * counts[term.Atom.(*expr.Load).Tensor]
	}
	return n
}

// eachBeyond calls visit with the elements beyond the used part of any dimension.
func eachBeyond(shape, used []int64, visit func(i int64)) {
	for i := range array.Elements(shape) {
		rest, beyond := i, false
		for k := len(shape) - 1; k >= 0; k-- {
			beyond = beyond || rest%shape[k] >= used[k]
			rest /= shape[k]
		}
		if beyond {
			visit(i)
		}
	}
}
