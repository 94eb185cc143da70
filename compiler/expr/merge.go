package expr

import "slices"

// Merge is the workload without axes of extent one, and with neighbouring axes joined wherever every tensor treats them as
// one: a 1x1 convolution over [n,h,w,c] becomes a matrix product over [n*h*w,c], an element-wise chain a single loop. Memory layouts stay the same, so
// arguments are passed as before. Workloads that differ only in such grouping become equal.
// The result is canonical input for scheduling; w is not changed.
func (w *Workload) Merge() *Workload {
	w, _ = w.squeeze()
	for {
		g, ok := w.mergeable()
		if !ok {
			return w
		}
		w = g.apply(w)
	}
}

// grouping says which dimension of each tensor is joined with the next one.
type grouping map[*Tensor]int

// mergeable finds a pair of neighbouring axes of an output that can be joined everywhere.
func (w *Workload) mergeable() (grouping, bool) {
	for _, out := range w.Outputs {
		for k := range len(out.Shape) - 1 {
			g := grouping{}
			if w.join(g, out, k) {
				return g, true
			}
		}
	}
	return nil, false
}

// join adds "dimensions k and k+1 of t are one" and everything that follows from it; false on a contradiction.
func (w *Workload) join(g grouping, t *Tensor, k int) bool {
	if at, seen := g[t]; seen {
		return at == k
	}
	if !t.joinable(k) {
		return false
	}
	g[t] = k
	if t.Role == Computed {
		for _, l := range Loads(t.Body) {
			if !w.joinLoad(g, t, l, k) {
				return false
			}
		}
		if usesOutsideOf(t.Body, t.Axes[k], t.Axes[k+1]) {
			return false
		}
	}
	for _, c := range w.Stages {
		for _, l := range Loads(c.Body) {
			if l.Tensor == t && !w.joinReader(g, c, l, k) {
				return false
			}
		}
	}
	return true
}

// joinLoad: where t's body loads with one of the two axes, it must use both, once, as neighbouring indices.
func (w *Workload) joinLoad(g grouping, t *Tensor, l *Load, k int) bool {
	a, b := t.Axes[k], t.Axes[k+1]
	p := slices.Index(l.Index, Expr(a))
	q := slices.Index(l.Index, Expr(b))
	if p < 0 && q < 0 {
		return true
	}
	if p < 0 || q != p+1 || slices.Contains(l.Index[q+1:], Expr(a)) || slices.Contains(l.Index[q+1:], Expr(b)) || l.Tensor.Shape[p] != a.Extent || l.Tensor.Shape[q] != b.Extent {
		return false
	}
	return w.join(g, l.Tensor, p)
}

// joinReader: a stage that loads t must pass two neighbouring axes of its own at the joined dimensions.
func (w *Workload) joinReader(g grouping, c *Tensor, l *Load, k int) bool {
	for i := range len(c.Axes) - 1 {
		if l.Index[k] == Expr(c.Axes[i]) && l.Index[k+1] == Expr(c.Axes[i+1]) &&
			c.Axes[i].Extent == l.Tensor.Shape[k] && c.Axes[i+1].Extent == l.Tensor.Shape[k+1] {
			return w.join(g, c, i)
		}
	}
	return false
}

// usesOutsideOf reports whether an axis is used in any other way than as a whole index of a load.
func usesOutsideOf(e Expr, a, b *Var) bool {
	used := false
	var look func(x Expr)
	look = func(x Expr) {
		if x == Expr(a) || x == Expr(b) {
			used = true
		}
		if l, ok := x.(*Load); ok {
			for _, i := range l.Index {
				if i != Expr(a) && i != Expr(b) {
					look(i)
				}
			}
			return
		}
		Children(x, look)
	}
	look(e)
	return used
}

// apply rebuilds the workload with the joined dimensions.
func (g grouping) apply(w *Workload) *Workload {
	m := &merger{grouping: g, tensors: map[*Tensor]*Tensor{}}
	var outputs, args []*Tensor
	for _, t := range append(append([]*Tensor{}, w.Inputs...), w.Constants...) {
		args = append(args, m.leaf(t))
	}
	for _, t := range w.Stages {
		m.stage(t)
	}
	for _, t := range w.Outputs {
		outputs = append(outputs, m.tensors[t])
	}
	merged, err := NewWorkload(outputs, args...)
	if err != nil {
		panic(err) // joining keeps a checked workload correct
	}
	return merged
}

type merger struct {
	grouping grouping
	tensors  map[*Tensor]*Tensor
}

func joinShape(shape []int64, k int) []int64 {
	return slices.Concat(shape[:k], []int64{shape[k] * shape[k+1]}, shape[k+2:])
}

func (m *merger) leaf(t *Tensor) *Tensor {
	r := t
	if k, ok := m.grouping[t]; ok {
		r = &Tensor{Name: t.Name, DType: t.DType, Role: t.Role, Shape: joinShape(t.Shape, k), Strides: joinStrides(t.Strides, k)}
	}
	m.tensors[t] = r
	return r
}

func (m *merger) stage(t *Tensor) {
	r := &Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Strides: t.Strides, Axes: t.Axes, Reduce: t.Reduce, Combiner: t.Combiner}
	values := map[*Var]Expr{}
	if k, ok := m.grouping[t]; ok {
		r.Shape, r.Strides = joinShape(t.Shape, k), joinStrides(t.Strides, k)
		joined := &Var{Name: t.Axes[k].Name, Extent: r.Shape[k]}
		r.Axes = slices.Concat(t.Axes[:k], []*Var{joined}, t.Axes[k+2:])
		values[t.Axes[k]], values[t.Axes[k+1]] = joined, joined
	}
	r.Body = m.body(t.Body, values)
	m.tensors[t] = r
}

// body renames tensors and axes; where a load's two dimensions are joined, its two indices are the joined axis.
func (m *merger) body(e Expr, values map[*Var]Expr) Expr {
	return Rewrite(e, func(x Expr) Expr {
		switch n := x.(type) {
		case *Var:
			if v, ok := values[n]; ok {
				return v
			}
		case *Load:
			index := n.Index
			if k, ok := m.grouping[n.Tensor]; ok {
				index = slices.Concat(index[:k], index[k+1:])
			}
			return &Load{Tensor: m.tensors[n.Tensor], Index: index}
		}
		return x
	})
}
