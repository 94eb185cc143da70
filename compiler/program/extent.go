package program

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Extent is a number of elements along axes that each execution chooses.
type Extent struct {
	// Name is the symbol that the model gives it.
	Name string
	// Least and Most bound it.
	Least, Most int64
	// Caps are the numbers, ascending and less than Most, up to which there are kernels of their own. Shares are how
	// often an execution needs the kernels for each of them, and those for all, of all executions.
	Caps   []int64
	Shares []float64
	// Value is an index in Values, of a scalar of type i64.
	Value int
}

// Varying says that an input or output has on one axis as many elements as an extent is multiplied and added: Times *
// extent + Plus. Where several say so of one axis, their sum is meant. Elements lie where they would lie in a tensor
// of the shape that Program.MemoryOf says.
type Varying struct {
	// Value is an index in Values, Axis one in its shape, and Extent one in Extents.
	Value, Axis, Extent int
	Times, Plus         int64
}

// Elements is how many elements there are along the axis.
func (v Varying) Elements(extent int64) int64 { return v.Times*extent + v.Plus }

// ShapeOf is the shape of an input or output in an execution with given extents, in their order.
func (p *Program) ShapeOf(value int, extents []int64) []int64 {
	shape := slices.Clone(p.Values[value].Shape)
	for _, v := range p.Varying {
		if v.Value == value {
			shape[v.Axis] = 0
		}
	}
	for _, v := range p.Varying {
		if v.Value == value {
			shape[v.Axis] += v.Elements(extents[v.Extent])
		}
	}
	return shape
}

// MemoryOf is the shape in which the elements of an input or output lie: its own with the most of each extent, or, of
// an input that an output continues, that of the output.
func (p *Program) MemoryOf(value int) []int64 {
	if v := p.Values[value]; v.Alias >= 0 && slices.Contains(p.Inputs, value) {
		return p.Values[v.Alias].Shape
	}
	return p.Values[value].Shape
}

// Continues is the index in Inputs of the input that lies at the beginning of an output, by its index in Outputs; -1
// for none. An execution leaves that part as it is, so that the next one can go on with all of the output as its
// input.
func (p *Program) Continues(output int) int {
	return slices.IndexFunc(p.Inputs, func(in int) bool { return p.Values[in].Alias == p.Outputs[output] })
}

// Begin is where a value begins in the memory that it lies in, in elements, with given extents.
func (v Value) Begin(extents []int64) int64 {
	at := v.Offset
	for k, n := range v.Moves {
		at += n * extents[k]
	}
	return at
}

// ExtentsOf are the extents that the shapes of inputs, by name, speak of. The error names the input that has another
// shape than it may have, or speaks of another extent than the inputs before it.
func (p *Program) ExtentsOf(inputs map[string]*array.Array) ([]int64, error) {
	var axes []Axis
	for _, in := range p.Inputs {
		for axis := range p.Values[in].Shape {
			c := Axis{Input: p.Values[in].Name, Axis: axis}
			c.Times, c.Plus = p.times(in, axis)
			if a := inputs[c.Input]; a != nil && axis < len(a.Shape) && slices.ContainsFunc(c.Times, isPositive) {
				c.Elements = a.Shape[axis]
				axes = append(axes, c)
			}
		}
	}
	return Solve(p.Extents, axes)
}

// times are the factors of all extents for the elements on an axis of an input or output, and what is added.
func (p *Program) times(value, axis int) (times []int64, plus int64) {
	times = make([]int64, len(p.Extents))
	for _, v := range p.Varying {
		if v.Value == value && v.Axis == axis {
			times[v.Extent] += v.Times
			plus += v.Plus
		}
	}
	return times, plus
}

func isPositive(n int64) bool { return n > 0 }

// Axis is one of an input that is given: it has Elements, which are Plus and, of each extent, as many as Times says.
type Axis struct {
	Input    string
	Axis     int
	Elements int64
	Times    []int64
	Plus     int64
}

// Solve finds the extents, of which it looks at names and bounds, that the axes of inputs speak of. The error names
// the input that has another shape than it may have, or than the inputs before it say.
func Solve(extents []Extent, axes []Axis) ([]int64, error) {
	found, known := make([]int64, len(extents)), make([]bool, len(extents))
	for range len(extents) + 1 { // each round finds one more, and the last one compares
		for _, a := range axes {
			left, unknown := a.Elements-a.Plus, -1
			for k, t := range a.Times {
				switch {
				case t == 0:
				case known[k]:
					left -= t * found[k]
				case unknown >= 0:
					left, unknown = 0, len(extents) // more than one
				default:
					unknown = k
				}
			}
			switch {
			case unknown < 0 && left != 0:
				return nil, fmt.Errorf("input %q has %d elements on axis %d, and other inputs say that it has %d", a.Input, a.Elements, a.Axis, a.Elements-left)
			case unknown < 0 || unknown == len(extents):
				continue
			}
			e := extents[unknown]
			n := left / a.Times[unknown]
			if n*a.Times[unknown] != left || n < e.Least || n > e.Most {
				return nil, fmt.Errorf("input %q has %d elements on axis %d, which none of %s in %d..%d has", a.Input, a.Elements, a.Axis, e.Name, e.Least, e.Most)
			}
			found[unknown], known[unknown] = n, true
		}
	}
	for k, e := range extents {
		if !known[k] {
			return nil, fmt.Errorf("no input says what %s is", e.Name)
		}
	}
	return found, nil
}
