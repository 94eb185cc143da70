package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Flatten merges spatial axes of a stage: the last one runs over all their positions in axis order, and the others get
// an extent of one. Tiles of the merged axis continue from the end of a row at the start of the next, so that only the
// last tile is partial. The stage must not be an output. Flatten must precede other primitives on the stage.
func (s *Schedule) Flatten(stageID int, axes ...int) error {
	return s.replace("flatten", stageID, axes, func(g *Stage) error {
		switch {
		case g.IsOutput:
			return fmt.Errorf("stage %d is an output", stageID)
		case g.Kept != nil || s.decays(g):
			return fmt.Errorf("stage %d was already scheduled", stageID)
		case len(axes) < 2 || !slices.IsSorted(axes) || len(slices.Compact(slices.Clone(axes))) != len(axes) || axes[0] < 0 || axes[len(axes)-1] >= len(g.Axes):
			return fmt.Errorf("%v are not two or more of the %d axes of stage %d, ascending", axes, len(g.Axes), stageID)
		}
		f := newFlattening(g, axes)
		for _, x := range append(s.Consumers(g), g) {
			if f.size(x.Body) > maxBodyNodes {
				return fmt.Errorf("stage %d would make the body of stage %d larger than %d nodes", stageID, x.ID, maxBodyNodes)
			}
		}
		for _, c := range s.Consumers(g) {
			c.Body = f.rewritten(c.Body)
		}
		g.Tensor, g.Axes, g.Body = f.result, f.result.Axes, expr.Substitute(g.Body, f.values)
		g.resetNest()
		return nil
	})
}

// flattening holds the substitutions of Flatten.
type flattening struct {
	before, result *expr.Tensor
	// flat lists the axes, strides the distance between neighbouring positions along each.
	flat    []int
	strides []int64
	// values maps the stage's axes to expressions in the new ones.
	values map[*expr.Var]expr.Expr
}

func newFlattening(g *Stage, axes []int) *flattening {
	f := &flattening{before: g.Tensor, flat: axes, strides: make([]int64, len(axes)), values: map[*expr.Var]expr.Expr{}}
	shape, last := slices.Clone(g.Tensor.Shape), axes[len(axes)-1]
	total := int64(1)
	for k, axis := range slices.Backward(axes) {
		f.strides[k] = total
		total *= shape[axis]
		shape[axis] = 1
	}
	shape[last] = total
	f.result = expr.Compute(g.Tensor.Name, shape, func(i []expr.Expr) expr.Expr {
		for k, v := range g.Axes {
			f.values[v] = i[k]
		}
		for k, axis := range axes {
			x := expr.Bin(expr.FloorDiv, i[last], expr.I(f.strides[k]))
			if k > 0 {
				x = expr.Bin(expr.FloorMod, x, expr.I(g.Axes[axis].Extent))
			}
			f.values[g.Axes[axis]] = expr.Simplify(x)
		}
		return expr.Zero(g.Tensor.DType)
	})
	f.result.Body = nil
	return f
}

// rewritten returns an expression that reads the flattened tensor in place of the original.
func (f *flattening) rewritten(e expr.Expr) expr.Expr {
	return expr.RewriteLoads(e, f.before, func(l *expr.Load) expr.Expr {
		index := slices.Clone(l.Index)
		at := expr.I(0)
		for k, axis := range f.flat {
			at = expr.AddE(at, expr.MulE(l.Index[axis], expr.I(f.strides[k])))
			index[axis] = expr.I(0)
		}
		index[f.flat[len(f.flat)-1]] = expr.Simplify(at)
		return &expr.Load{Tensor: f.result, Index: index}
	})
}

// nodesAdded limits the nodes added per axis: a division, a remainder, and their operands.
const nodesAdded = 6

// size returns an upper bound for the size of a body after flattening.
func (f *flattening) size(body expr.Expr) int {
	return expr.Size(body) * nodesAdded
}
