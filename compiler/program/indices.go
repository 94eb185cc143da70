package program

import "reflect"

// IndexCheck requires that elements of an input index an axis of Extent elements: they are at least -Extent and less
// than Extent. The elements are a strided view of the memory of the input.
type IndexCheck struct {
	// Input is an index in Inputs.
	Input int
	// First is the first element. Along each axis, the view has Count elements that are Stride apart.
	First  Form
	Axes   []StridedAxis
	Extent Form
}

// StridedAxis is an axis of a view.
type StridedAxis struct {
	Count  Form
	Stride int64
}

// AddCheck adds a check, unless another one of the same elements implies it.
func (p *Program) AddCheck(c IndexCheck) {
	for k := range p.Checks {
		other := p.Checks[k]
		other.Extent.Plus = c.Extent.Plus
		if reflect.DeepEqual(c, other) {
			p.Checks[k].Extent.Plus = min(c.Extent.Plus, p.Checks[k].Extent.Plus)
			return
		}
	}
	p.Checks = append(p.Checks, c)
}
