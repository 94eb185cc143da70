package program

import (
	"fmt"
	"slices"
)

// Extent is an extent of axes that each execution chooses.
type Extent struct {
	// Name is its symbol in the model.
	Name string
	// Step divides it; zero means one. All other numbers of extents are divided by it.
	Step int64
	// Min and Max bound it.
	Min, Max int64
	// Caps lists the extents, ascending and below Max, that have kernels of their own. Points holds those with which
	// the kernels of each cap, and then of Max, are timed.
	Caps   []int64
	Points [][]int64
	// CapsGiven is set if the user gave caps, or a distribution, of some extent: kernels for all caps are tuned.
	CapsGiven bool
	// Value is an index in Values, of a scalar of type i64.
	Value int
}

// Whole returns an extent that is n times the step.
func (e Extent) Whole(n int64) int64 { return n * max(e.Step, 1) }

// Bounds returns the bounds as text, such as "32..1280, in steps of 32,".
func (e Extent) Bounds() string {
	text := fmt.Sprintf("%d..%d", e.Whole(e.Min), e.Whole(e.Max))
	if e.Step > 1 {
		text += fmt.Sprintf(", in steps of %d,", e.Step)
	}
	return text
}

// Varying gives the extent of an input's or output's axis as Times * extent + Plus. Several entries for one axis
// add up. Elements are laid out as in a tensor of shape Program.MemoryOf.
type Varying struct {
	// Value is an index in Values, Axis one in its shape, and Extent one in Extents.
	Value, Axis, Extent int
	Times, Plus         int64
}

// MemoryOf returns the memory shape of an input or output: its own with the maximum of each extent or, for an input
// that an output continues, that of the output.
func (p *Program) MemoryOf(value int) []int64 {
	if v := p.Values[value]; v.Alias >= 0 && slices.Contains(p.Inputs, value) {
		return p.Values[v.Alias].Shape
	}
	return p.Values[value].Shape
}

// Continues returns the index in Inputs of the input that shares the start of an output's memory, by the output's
// index in Outputs; -1 for none. An execution leaves that part unchanged, so that the next one can use the whole
// output as its input.
func (p *Program) Continues(output int) int {
	return slices.IndexFunc(p.Inputs, func(in int) bool { return p.Values[in].Alias == p.Outputs[output] })
}

// ExtentOf returns the form of the extent of an input's or output's axis, or that of zero if it is fixed.
func (p *Program) ExtentOf(value, axis int) Form {
	f := Form{Times: make([]int64, len(p.Extents))}
	for _, v := range p.Varying {
		if v.Value == value && v.Axis == axis {
			f.Times[v.Extent] += v.Times
			f.Plus += v.Plus
		}
	}
	return f
}

// Axis is an axis of a given input: it has Elements elements, which equal the form.
type Axis struct {
	Input    string
	Axis     int
	Elements int64
	Form
}

// Solve derives the extents, divided by their steps, from the axes of inputs. The error names the input with
// an invalid or inconsistent shape.
func Solve(extents []Extent, axes []Axis) ([]int64, error) {
	found, known := make([]int64, len(extents)), make([]bool, len(extents))
	for range len(extents) + 1 { // each round determines one more, and the last one checks
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
				return nil, fmt.Errorf("input %q has %d elements on axis %d, but %d according to other inputs", a.Input, a.Elements, a.Axis, a.Elements-left)
			case unknown < 0 || unknown == len(extents):
				continue
			}
			e := extents[unknown]
			n := left / a.Times[unknown]
			if n*a.Times[unknown] != left || n < e.Min || n > e.Max {
				return nil, fmt.Errorf("input %q has %d elements on axis %d, which none of %s in %s has", a.Input, a.Elements, a.Axis, e.Name, e.Bounds())
			}
			found[unknown], known[unknown] = n, true
		}
	}
	for k, e := range extents {
		if !known[k] {
			return nil, fmt.Errorf("no input determines %s", e.Name)
		}
	}
	return found, nil
}
