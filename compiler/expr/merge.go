package expr

import "slices"

// Merge returns the workload without axes of extent one, and with neighbouring axes merged wherever every tensor
// treats them as one: a 1x1 convolution over [n,h,w,c] becomes a matrix product over [n*h*w,c], an elementwise
// chain a single loop. Memory layouts stay the same, so arguments are passed as before. Workloads that differ only
// in such grouping become equal. The result is the canonical input of scheduling; w is not changed. Neighbouring
// reduction axes are merged likewise. An axis with a limit is only merged with those after it, so that its elements
// stay at the front.
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

// grouping records which dimension of each tensor, and which reduction axis of each stage, is merged with the next
// one.
type grouping struct {
	dims, reduce map[*Tensor]int
}

func newGrouping() grouping { return grouping{map[*Tensor]int{}, map[*Tensor]int{}} }

// mergeable finds a pair of neighbouring axes, of an output or of a reduction, that can be merged everywhere.
func (w *Workload) mergeable() (grouping, bool) {
	for _, out := range w.Outputs {
		for k := range len(out.Shape) - 1 {
			g := newGrouping()
			if w.join(g, out, k) {
				return g, true
			}
		}
	}
	for _, t := range w.Stages {
		for k := range len(t.Reduce) - 1 {
			g := newGrouping()
			if w.joinReduce(g, t, k) {
				return g, true
			}
		}
	}
	return grouping{}, false
}

// join records that dimensions k and k+1 of t are merged, with all consequences; false on a contradiction.
func (w *Workload) join(g grouping, t *Tensor, k int) bool {
	if at, seen := g.dims[t]; seen {
		return at == k
	}
	if !t.joinable(k) || t.Role == Computed && t.Axes[k+1].Limit != nil {
		return false
	}
	g.dims[t] = k
	if t.Role == Computed && !w.joinLoads(g, t, t.Axes[k], t.Axes[k+1]) {
		return false
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

// joinReduce records that reduction axes k and k+1 of t are merged, with all consequences.
func (w *Workload) joinReduce(g grouping, t *Tensor, k int) bool {
	if at, seen := g.reduce[t]; seen {
		return at == k
	}
	if t.Reduce[k+1].Limit != nil {
		return false
	}
	g.reduce[t] = k
	return w.joinLoads(g, t, t.Reduce[k], t.Reduce[k+1])
}

// joinLoads merges the indices of loads in t's body that use two of its axes, which must occur nowhere else.
func (w *Workload) joinLoads(g grouping, t *Tensor, a, b *Var) bool {
	for _, l := range Loads(t.Body) {
		if !w.joinLoad(g, l, a, b) {
			return false
		}
	}
	return !usesOutsideOf(t.Body, a, b)
}

// joinLoad checks that a load with one of the two axes uses both, once, as neighbouring indices.
func (w *Workload) joinLoad(g grouping, l *Load, a, b *Var) bool {
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

// joinReader checks that a stage that loads t passes two neighbouring axes of its own at the merged dimensions.
func (w *Workload) joinReader(g grouping, c *Tensor, l *Load, k int) bool {
	passes := func(vars []*Var, i int) bool {
		return l.Index[k] == Expr(vars[i]) && l.Index[k+1] == Expr(vars[i+1]) &&
			vars[i].Extent == l.Tensor.Shape[k] && vars[i+1].Extent == l.Tensor.Shape[k+1]
	}
	for i := range len(c.Axes) - 1 {
		if passes(c.Axes, i) {
			return w.join(g, c, i)
		}
	}
	for i := range len(c.Reduce) - 1 {
		if passes(c.Reduce, i) {
			return w.joinReduce(g, c, i)
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

// apply rebuilds the workload with the merged dimensions.
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
		panic(err) // merging keeps a checked workload valid
	}
	return merged
}

type merger struct {
	grouping
	tensors map[*Tensor]*Tensor
}

func joinShape(shape []int64, k int) []int64 {
	return slices.Concat(shape[:k], []int64{shape[k] * shape[k+1]}, shape[k+2:])
}

func (m *merger) leaf(t *Tensor) *Tensor {
	r := t
	if k, ok := m.dims[t]; ok {
		r = &Tensor{Name: t.Name, DType: t.DType, Role: t.Role, Shape: joinShape(t.Shape, k), Strides: joinStrides(t.Strides, k)}
	}
	m.tensors[t] = r
	return r
}

func (m *merger) stage(t *Tensor) {
	r := &Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape, Strides: t.Strides, Axes: t.Axes, Reduce: t.Reduce, Combiner: t.Combiner}
	values := map[*Var]Expr{}
	if k, ok := m.dims[t]; ok {
		r.Shape, r.Strides = joinShape(t.Shape, k), joinStrides(t.Strides, k)
		r.Axes = joinVars(t.Axes, k, values)
	}
	if k, ok := m.reduce[t]; ok {
		r.Reduce = joinVars(t.Reduce, k, values)
	}
	r.Body = m.body(t.Body, values)
	m.tensors[t] = r
}

// joinVars replaces the two variables at k by one; values receives the replacements of the old ones.
func joinVars(vars []*Var, k int, values map[*Var]Expr) []*Var {
	joined := &Var{Name: vars[k].Name, Extent: vars[k].Extent * vars[k+1].Extent, Limit: joinedLimit(vars[k].Limit, vars[k+1].Extent)}
	values[vars[k]], values[vars[k+1]] = joined, joined
	return slices.Concat(vars[:k], []*Var{joined}, vars[k+2:])
}

// body renames tensors and axes; if a load's two dimensions are merged, its two indices become the merged axis.
func (m *merger) body(e Expr, values map[*Var]Expr) Expr {
	return Rewrite(e, func(x Expr) Expr {
		switch n := x.(type) {
		case *Var:
			if v, ok := values[n]; ok {
				return v
			}
		case *Load:
			index := n.Index
			if k, ok := m.dims[n.Tensor]; ok {
				index = slices.Concat(index[:k], index[k+1:])
			}
			return &Load{Tensor: m.tensors[n.Tensor], Index: index}
		}
		return x
	})
}
