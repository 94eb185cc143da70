package schedule

import (
	"fmt"
	"slices"
)

// PackDim is one dimension of a packed constant's layout. A dimension of the constant appears either once whole
// (Factor 0), or twice: as the quotient by Factor (Inner false) and as the remainder (Inner true). Quotients round
// up, and zeros fill the rest.
type PackDim struct {
	Dim    int
	Factor int64
	Inner  bool
}

// Pack changes the layout of a constant, given by its index in Workload.Constants, to dims, outermost dimension
// first. Packing happens once, at compile time. If the constant was transformed, dims refer to its replacement.
func (s *Schedule) Pack(constant int, dims []PackDim) error {
	if constant < 0 || constant >= len(s.Workload.Constants) {
		return fmt.Errorf("pack: there is no constant %d", constant)
	}
	if s.Packs[constant] != nil {
		return fmt.Errorf("pack: constant %d is already packed", constant)
	}
	shape := s.ConstantTensor(constant).Shape
	rank := len(shape)
	for d := range rank {
		if !completeDim(dims, d) {
			return fmt.Errorf("pack: layout of constant %d does not hold dimension %d once whole or once as quotient and remainder", constant, d)
		}
	}
	args, elements := []int{constant}, int64(1)
	for _, d := range dims {
		if d.Dim < 0 || d.Dim >= rank {
			return fmt.Errorf("pack: constant %d has no dimension %d", constant, d.Dim)
		}
		if elements *= paddedExtent(d, shape[d.Dim]); elements > maxPackedElements {
			return fmt.Errorf("pack: layout of constant %d has more than %d elements", constant, int64(maxPackedElements))
		}
		inner := 0
		if d.Inner {
			inner = 1
		}
		args = append(args, d.Dim, int(d.Factor), inner)
	}
	s.Packs[constant] = slices.Clone(dims)
	s.record("pack", args...)
	return nil
}

// maxPackedElements limits the size of a packed constant.
const maxPackedElements = 1 << 31

// paddedExtent returns the extent of a packed dimension; both factors of the product are at most maxPackedElements.
func paddedExtent(d PackDim, extent int64) int64 {
	switch {
	case d.Factor == 0:
		return min(extent, maxPackedElements+1)
	case d.Inner:
		return min(d.Factor, maxPackedElements+1)
	default:
		return min((extent-1)/d.Factor+1, maxPackedElements+1)
	}
}

func completeDim(dims []PackDim, d int) bool {
	var found []PackDim
	for _, x := range dims {
		if x.Dim == d {
			found = append(found, x)
		}
	}
	switch len(found) {
	case 1:
		return found[0].Factor == 0 && !found[0].Inner
	case 2:
		return found[0].Factor > 0 && found[0].Factor == found[1].Factor && found[0].Inner != found[1].Inner
	default:
		return false
	}
}

// Layouts describes the layouts of the constants. Schedules of a workload with equal descriptions pack and
// transform them identically.
func (s *Schedule) Layouts() string {
	text := ""
	for c := range s.Workload.Constants {
		text += fmt.Sprint(c, s.Packs[c])
		if t := s.Transforms[c]; t != nil {
			text += fmt.Sprint(t.Tensor.Shape)
		}
	}
	return text
}
