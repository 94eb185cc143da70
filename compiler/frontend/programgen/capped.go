package programgen

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/program"
)

// variant describes the kernels for extents up to caps, and the share of executions that need them.
type variant struct {
	caps  []int64
	share float64
}

// variantsOf returns the variants for smaller extents in ascending order, and the one for all.
func variantsOf(extents []program.Extent) (smaller []variant, all variant) {
	list := []variant{{share: 1}}
	for _, e := range extents {
		var longer []variant
		for _, before := range list {
			for k, n := range append(slices.Clone(e.Caps), e.Max) {
				longer = append(longer, variant{append(slices.Clone(before.caps), n), before.share * e.Shares[k]})
			}
		}
		list = longer
	}
	last := len(list) - 1
	return list[:last], list[last]
}

// variants returns a kernel's tasks for smaller extents in ascending order, and the share of executions that need
// the full one.
func (g *general) variants(w *expr.Workload, name string) (list []program.Variant, share float64, err error) {
	e := g.emitters[0]
	smaller, all := variantsOf(g.extents)
	for _, x := range smaller {
		own, err := g.capped(w, x.caps)
		if err != nil {
			return nil, 0, err
		}
		v := program.Variant{Task: e.task(fmt.Sprintf("%s up to %s", name, Values(g.extents, x.caps)), own.Merge())}
		e.program.Tasks[v.Task].Executions += x.share
		for k, n := range x.caps {
			v.Caps = append(v.Caps, program.Cap{Extent: k, Max: n})
		}
		list = append(list, v)
	}
	return list, all.share, nil
}

// capped returns the workload for extents up to caps, with the same arguments in memory. An extent whose cap equals
// its minimum is no longer open.
func (g *general) capped(w *expr.Workload, caps []int64) (*expr.Workload, error) {
	c := &capping{general: g, caps: caps, tensors: map[*expr.Tensor]*expr.Tensor{}, vars: map[*expr.Var]expr.Expr{}}
	var args, outputs []*expr.Tensor
	for _, t := range slices.Concat(w.Inputs, w.Constants) {
		args = append(args, c.argument(t))
	}
	for _, t := range w.Stages {
		c.stage(t, slices.Contains(w.Outputs, t))
	}
	for _, t := range w.Outputs {
		outputs = append(outputs, c.tensors[t])
	}
	return expr.NewWorkload(outputs, args...)
}

type capping struct {
	*general
	caps    []int64
	tensors map[*expr.Tensor]*expr.Tensor
	vars    map[*expr.Var]expr.Expr
}

// argument returns an input restricted to the part below the caps, at the same place.
func (c *capping) argument(t *expr.Tensor) *expr.Tensor {
	c.tensors[t] = t
	if t.Role != expr.Input {
		return t
	}
	cut := *t
	if k := slices.Index(c.counts, t); k >= 0 {
		cut.Max = c.caps[k]
		c.tensors[t] = &cut
		return &cut
	}
	cut.Shape = slices.Clone(t.Shape)
	for d := range t.Shape {
		sizes := make([]int64, len(c.samples))
		for s := range c.samples {
			sizes[s] = c.samples[s].list[c.number[t]].Shape[d]
		}
		if size, ok := c.fit(sizes); ok {
			cut.Shape[d] = size.At(c.caps)
		}
	}
	cut.Strides = stridesIn(&cut, t)
	c.tensors[t] = &cut
	return &cut
}

// stridesIn returns the strides of a tensor that occupies part of a larger one.
func stridesIn(part, whole *expr.Tensor) []int64 {
	strides := whole.MemoryStrides()
	if whole.Strides == nil && slices.Equal(strides, expr.RowMajorStrides(part.Shape)) {
		return nil
	}
	return strides
}

func (c *capping) stage(t *expr.Tensor, isOutput bool) {
	cut := *t
	cut.Axes, cut.Reduce = c.variables(t.Axes), c.variables(t.Reduce)
	cut.Shape = make([]int64, len(cut.Axes))
	for k, v := range cut.Axes {
		cut.Shape[k] = v.Extent
	}
	if isOutput {
		cut.Strides = stridesIn(&cut, t)
	}
	cut.Body = expr.Rewrite(t.Body, c.rewritten)
	c.tensors[t] = &cut
}

func (c *capping) variables(vars []*expr.Var) []*expr.Var {
	list := make([]*expr.Var, len(vars))
	for k, v := range vars {
		x := *v
		if v.Limit != nil {
			x.Extent, x.Limit = c.elements(v, c.caps), expr.Rewrite(v.Limit, c.rewritten)
			if _, isNumber := x.Limit.(*expr.Int); isNumber {
				x.Limit = nil
			}
		}
		list[k], c.vars[v] = &x, &x
	}
	return list
}

func (c *capping) rewritten(e expr.Expr) expr.Expr {
	switch n := e.(type) {
	case *expr.Var:
		if x := c.vars[n]; x != nil {
			return x
		}
	case *expr.Load:
		if k := slices.Index(c.counts, n.Tensor); k >= 0 && c.caps[k] == c.extents[k].Min {
			return expr.I(c.caps[k])
		}
		if t := c.tensors[n.Tensor]; t != nil {
			return &expr.Load{Tensor: t, Index: n.Index}
		}
	}
	return e
}
