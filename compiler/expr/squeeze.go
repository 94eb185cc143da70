package expr

// squeeze returns the workload without axes and dimensions of extent one, keeping one if nothing else is left:
// their only valid index is zero. ok is false if there was none to drop.
func (w *Workload) squeeze() (squeezed *Workload, ok bool) {
	s := &squeezer{kept: map[*Tensor][]int{}, tensors: map[*Tensor]*Tensor{}}
	var outputs, args []*Tensor
	for _, t := range append(append([]*Tensor{}, w.Inputs...), w.Constants...) {
		args = append(args, s.leaf(t))
	}
	for _, t := range w.Stages {
		s.stage(t)
	}
	if !s.dropped {
		return w, false
	}
	for _, t := range w.Outputs {
		outputs = append(outputs, s.tensors[t])
	}
	squeezed, err := NewWorkload(outputs, args...)
	if err != nil {
		panic(err) // dropping unit axes keeps a checked workload valid
	}
	return squeezed, true
}

type squeezer struct {
	// kept holds the dimensions that each tensor keeps.
	kept    map[*Tensor][]int
	tensors map[*Tensor]*Tensor
	dropped bool
}

// keep lists the extents other than one, or the last one if all are.
func (s *squeezer) keep(extents []int64) []int {
	var kept []int
	for k, e := range extents {
		if e != 1 {
			kept = append(kept, k)
		}
	}
	if len(kept) == 0 && len(extents) > 0 {
		kept = []int{len(extents) - 1}
	}
	s.dropped = s.dropped || len(kept) < len(extents)
	return kept
}

func pick[T any](list []T, kept []int) []T {
	picked := make([]T, len(kept))
	for i, k := range kept {
		picked[i] = list[k]
	}
	return picked
}

func (s *squeezer) leaf(t *Tensor) *Tensor {
	if len(t.Shape) == 0 && t.Role != Computed { // limits read such scalars
		s.tensors[t] = t
		return t
	}
	s.kept[t] = s.keep(t.Shape)
	s.tensors[t] = &Tensor{Name: t.Name, DType: t.DType, Role: t.Role, Shape: pick(t.Shape, s.kept[t]), Strides: t.keptStrides(s.kept[t])}
	return s.tensors[t]
}

func (s *squeezer) stage(t *Tensor) {
	r := s.leaf(t)
	r.Combiner = t.Combiner
	r.Axes = pick(t.Axes, s.kept[t])
	extents := make([]int64, len(t.Reduce))
	zero := map[*Var]Expr{}
	for k, v := range t.Reduce {
		extents[k] = v.Extent
	}
	r.Reduce = pick(t.Reduce, s.keep(extents))
	for _, v := range t.variables() {
		if v.Extent == 1 {
			zero[v] = I(0)
		}
	}
	r.Body = Rewrite(t.Body, func(x Expr) Expr {
		switch n := x.(type) {
		case *Var:
			if z, ok := zero[n]; ok {
				return z
			}
		case *Load:
			// A selection with a decided condition is its side, which is already rewritten.
			if to := s.tensors[n.Tensor]; to != nil {
				return &Load{Tensor: to, Index: pick(n.Index, s.kept[n.Tensor])}
			}
		}
		return x
	})
}
