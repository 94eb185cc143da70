package program

import "slices"

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
