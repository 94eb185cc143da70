package evaluate

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/program"
)

// shapeOf returns the shape of an input or output in an execution with the given extents, in order.
func shapeOf(p *program.Program, value int, extents []int64) []int64 {
	shape := slices.Clone(p.Values[value].Shape)
	for _, v := range p.Varying {
		if v.Value == value {
			shape[v.Axis] = 0
		}
	}
	for _, v := range p.Varying {
		if v.Value == value {
			shape[v.Axis] += v.Times*extents[v.Extent] + v.Plus
		}
	}
	return shape
}

// extentsOf derives the extents from the shapes of the named inputs. The error names the input with an invalid or
// inconsistent shape.
func extentsOf(p *program.Program, inputs map[string]*array.Array) ([]int64, error) {
	var axes []program.Axis
	for _, in := range p.Inputs {
		for axis := range p.Values[in].Shape {
			c := program.Axis{Input: p.Values[in].Name, Axis: axis, Form: p.ExtentOf(in, axis)}
			if a := inputs[c.Input]; a != nil && axis < len(a.Shape) && slices.ContainsFunc(c.Times, isPositive) {
				c.Elements = a.Shape[axis]
				axes = append(axes, c)
			}
		}
	}
	return program.Solve(p.Extents, axes)
}

func isPositive(n int64) bool { return n > 0 }

// check returns an error if a checked element of an input's memory is out of range, for the given extents.
func check(p *program.Program, c program.IndexCheck, memory *array.Array, extents []int64) error {
	n := c.Extent.At(extents)
	var scan func(at int64, axes []program.StridedAxis) error
	scan = func(at int64, axes []program.StridedAxis) error {
		if len(axes) > 0 {
			for k := range axes[0].Count.At(extents) {
				if err := scan(at+k*axes[0].Stride, axes[1:]); err != nil {
					return err
				}
			}
			return nil
		}
		i := int64(memory.Float(at))
		if !memory.DType.IsFloat() {
			i = memory.Int(at)
		}
		if i < -n || i >= n {
			return fmt.Errorf("input \"%s\" has the index %d, which is outside of %d..%d", p.Values[p.Inputs[c.Input]].Name, i, -n, n-1)
		}
		return nil
	}
	return scan(c.First.At(extents), c.Axes)
}
