package searchspace

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// algorithmKnob is the name of the first knob in texts of points, for spaces with several algorithms; its values
// are the algorithms' numbers.
const algorithmKnob = "alg"

// member is a family of a space, with knobs from first up to end.
type member struct {
	Family
	algorithms []Algorithm
	first, end int
}

// Algorithms returns the algorithms that points choose among, in ascending order of their numbers.
func (s *Space) Algorithms() (all []Algorithm) {
	for _, f := range s.families {
		for _, a := range f.algorithms {
			if !s.chooses() || slices.Contains(s.Knobs[0].Values, a.Number) {
				all = append(all, a)
			}
		}
	}
	return all
}

// Algorithm returns the algorithm of a point.
func (s *Space) Algorithm(p Point) Algorithm {
	by, _ := s.chosen(p)
	return by
}

// Of returns the part of the space that uses the given algorithm.
func (s *Space) Of(a Algorithm) *Space {
	if !s.chooses() {
		return s
	}
	part := *s
	part.base = nil
	part.Knobs = slices.Clone(s.Knobs)
	part.Knobs[0].Values = []int64{a.Number}
	return &part
}

// IsAlgorithm reports whether knob k selects the algorithm.
func (s *Space) IsAlgorithm(k int) bool { return k == 0 && s.chooses() }

// chooses reports whether the first knob selects the algorithm, even if it has a single value left.
func (s *Space) chooses() bool { return len(s.families) > 0 && s.families[0].first > 0 }

// chosen returns the algorithm of a point and its family.
func (s *Space) chosen(p Point) (Algorithm, *member) {
	if !s.chooses() {
		f := &s.families[0]
		return f.algorithms[0], f
	}
	number := s.Knobs[0].Values[p[0]]
	for i := range s.families {
		f := &s.families[i]
		for _, a := range f.algorithms {
			if a.Number == number {
				return a, f
			}
		}
	}
	panic(fmt.Sprintf("space: no family has algorithm %d", number))
}

// familyOf returns the family of a point.
func (s *Space) familyOf(p Point) *member {
	_, f := s.chosen(p)
	return f
}

// Active reports whether knob k applies to p: knobs of other families do not.
func (s *Space) Active(p Point, k int) bool {
	f := s.familyOf(p)
	return s.IsAlgorithm(k) || k >= f.first && k < f.end
}

// canonical resets the knobs that do not apply to p to their first value, in place.
func (s *Space) canonical(p Point) Point {
	for k := range p {
		if !s.Active(p, k) {
			p[k] = 0
		}
	}
	return p
}

// checkCanonical rejects non-canonical points.
func (s *Space) checkCanonical(p Point) error {
	for k, v := range p {
		if v != 0 && !s.Active(p, k) {
			return fmt.Errorf("space: knob %s is not of the algorithm that knob %s chooses", s.Knobs[k].Name, algorithmKnob)
		}
	}
	return nil
}

// draw returns a random point, legal or not; algorithms are equally likely.
func (s *Space) draw(rng *rand.Rand) Point {
	p := make(Point, len(s.Knobs))
	for k := range s.Knobs {
		if s.Active(p, k) {
			p[k] = rng.IntN(len(s.Knobs[k].Values))
		}
	}
	return s.reconciled(p)
}

// switched returns p with another algorithm, if there is one: within a family it keeps the knobs, otherwise it
// draws them.
func (s *Space) switched(rng *rand.Rand, p Point) Point {
	q, algorithms := append(Point{}, p...), len(s.Knobs[0].Values)
	if algorithms == 1 {
		return q
	}
	q[0] = (q[0] + 1 + rng.IntN(algorithms-1)) % algorithms
	for k := 1; k < len(q); k++ {
		if s.Active(q, k) && !s.Active(p, k) {
			q[k] = rng.IntN(len(s.Knobs[k].Values))
		}
	}
	return s.canonical(q)
}

// Next returns the successor of p in an enumeration of all points, last knob fastest; ok is false after the last
// one. Points need not be legal.
func (s *Space) Next(p Point) (q Point, ok bool) {
	q = append(Point{}, p...)
	for k := len(q) - 1; k >= 0; k-- {
		if !s.Active(q, k) {
			continue
		}
		if q[k]++; q[k] < len(s.Knobs[k].Values) {
			return s.canonical(q), true
		}
		q[k] = 0
	}
	return nil, false
}
