package program

import (
	"fmt"

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
// extent + Plus. Its shape has the most; those of an execution lie where they would lie if it had all.
type Varying struct {
	// Value is an index in Values, Axis one in its shape, and Extent one in Extents.
	Value, Axis, Extent int
	Times, Plus         int64
}

// Elements is how many elements there are along the axis.
func (v Varying) Elements(extent int64) int64 { return v.Times*extent + v.Plus }

// ShapeOf is the shape of an input or output in an execution with given extents, in their order.
func (p *Program) ShapeOf(value int, extents []int64) []int64 {
	shape := append([]int64{}, p.Values[value].Shape...)
	for _, v := range p.Varying {
		if v.Value == value {
			shape[v.Axis] = v.Elements(extents[v.Extent])
		}
	}
	return shape
}

// ExtentsOf are the extents that the shapes of inputs, by name, speak of. The error names the input that has another
// shape than it may have, or speaks of another extent than the inputs before it.
func (p *Program) ExtentsOf(inputs map[string]*array.Array) ([]int64, error) {
	extents := make([]int64, len(p.Extents))
	for _, v := range p.Varying {
		value := p.Values[v.Value]
		a := inputs[value.Name]
		if a == nil || v.Axis >= len(a.Shape) || !p.isInput(v.Value) {
			continue // which is found out when inputs are read
		}
		e := p.Extents[v.Extent]
		n := (a.Shape[v.Axis] - v.Plus) / v.Times
		switch {
		case v.Elements(n) != a.Shape[v.Axis] || n < e.Least || n > e.Most:
			return nil, fmt.Errorf("input %q has %d elements on axis %d, which must be those of %s in %d..%d", value.Name, a.Shape[v.Axis], v.Axis, e.Name, e.Least, e.Most)
		case extents[v.Extent] != 0 && extents[v.Extent] != n:
			return nil, fmt.Errorf("input %q has a %s of %d, and another input one of %d", value.Name, e.Name, n, extents[v.Extent])
		}
		extents[v.Extent] = n
	}
	for k, e := range p.Extents {
		if extents[k] == 0 {
			return nil, fmt.Errorf("no input says what %s is", e.Name)
		}
	}
	return extents, nil
}

func (p *Program) isInput(value int) bool {
	for _, k := range p.Inputs {
		if k == value {
			return true
		}
	}
	return false
}
