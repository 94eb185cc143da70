package program

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// IndexCheck requires that elements First, First+Step, ... of an input are indices of an axis with Plus elements and
// Times per unit of each extent: at least -n and less than n.
type IndexCheck struct {
	// Input is an index in Inputs.
	Input       int
	First, Step int64
	Plus        int64
	Times       []int64
}

// AddCheck adds a check, unless another one on the same elements implies it.
func (p *Program) AddCheck(c IndexCheck) {
	for k, other := range p.Checks {
		if c.Input == other.Input && c.First == other.First && c.Step == other.Step && slices.Equal(c.Times, other.Times) {
			p.Checks[k].Plus = min(c.Plus, other.Plus)
			return
		}
	}
	p.Checks = append(p.Checks, c)
}

// check returns an error if an element of an input is out of range, for the given extents.
func (p *Program) check(c IndexCheck, a *array.Array, extents []int64) error {
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
