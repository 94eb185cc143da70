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

// begin returns the offset of a value in its containing memory, in elements, for the given extents.
func begin(v program.Value, extents []int64) int64 {
	at := v.Offset
	for k, n := range v.Moves {
		at += n * extents[k]
	}
	return at
}

// extentsOf derives the extents from the shapes of the named inputs. The error names the input with an invalid or
// inconsistent shape.
func extentsOf(p *program.Program, inputs map[string]*array.Array) ([]int64, error) {
	var axes []program.Axis
	for _, in := range p.Inputs {
		for axis := range p.Values[in].Shape {
			c := program.Axis{Input: p.Values[in].Name, Axis: axis}
			c.Times, c.Plus = p.Times(in, axis)
			if a := inputs[c.Input]; a != nil && axis < len(a.Shape) && slices.ContainsFunc(c.Times, isPositive) {
				c.Elements = a.Shape[axis]
				axes = append(axes, c)
			}
		}
	}
	return program.Solve(p.Extents, axes)
}

func isPositive(n int64) bool { return n > 0 }

// check returns an error if an element of an input is out of range, for the given extents.
func check(p *program.Program, c program.IndexCheck, a *array.Array, extents []int64) error {
	n := c.Plus
	for k, times := range c.Times {
		n += times * extents[k]
	}
	for k := c.First; k < a.Len(); k += c.Step {
		i := int64(a.Float(k))
		if !a.DType.IsFloat() {
			i = a.Int(k)
		}
		if i < -n || i >= n {
			return fmt.Errorf("input \"%s\" has the index %d, which is outside of %d..%d", p.Values[p.Inputs[c.Input]].Name, i, -n, n-1)
		}
	}
	return nil
}
