package space

import (
	"fmt"
	"math/rand/v2"
)

// AlgorithmKnob is the first knob of spaces that have several algorithms, and Direct its value for direct sums. What
// other values mean, the sketch says.
const (
	AlgorithmKnob = "alg"
	Direct        = 0
)

// addAlgorithms puts the choice of the algorithm before the knobs of the direct sum and those of the others behind
// them. The knobs of an algorithm that is not chosen are at their first value, so that no two points are the same
// schedule for it.
func (s *Space) addAlgorithms(values []int64, knobs []Knob) {
	s.Knobs = append([]Knob{{AlgorithmKnob, append([]int64{Direct}, values...)}}, s.Knobs...)
	s.others = len(s.Knobs)
	s.Knobs = append(s.Knobs, knobs...)
}

// Active reports whether knob k means something at p: knobs of other algorithms than that of p do not.
func (s *Space) Active(p Point, k int) bool {
	switch {
	case s.others == 0 || k == 0:
		return true
	case s.isDirect(p):
		return k < s.others
	}
	return k >= s.others
}

// isDirect reports whether p computes direct sums, in a space that has other algorithms.
func (s *Space) isDirect(p Point) bool { return s.Knobs[0].Values[p[0]] == Direct }

// canonical puts the knobs that mean nothing at p to their first value, in place.
func (s *Space) canonical(p Point) Point {
	for k := range p {
		if !s.Active(p, k) {
			p[k] = 0
		}
	}
	return p
}

// checkCanonical refuses a second way to write a point.
func (s *Space) checkCanonical(p Point) error {
	for k, v := range p {
		if v != 0 && !s.Active(p, k) {
			return fmt.Errorf("space: knob %s is not of the algorithm that knob %s chooses", s.Knobs[k].Name, AlgorithmKnob)
		}
	}
	return nil
}

// draw is any point, legal or not; algorithms are equally likely.
func (s *Space) draw(rng *rand.Rand) Point {
	p := make(Point, len(s.Knobs))
	for k := range s.Knobs {
		if s.Active(p, k) {
			p[k] = rng.IntN(len(s.Knobs[k].Values))
		}
	}
	return s.reconciled(p)
}

// switched is p with another algorithm, if there is one: between kinds of the same the knobs stay, else they are
// drawn.
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

// Next is the point that follows p when all are counted, the last knob fastest; ok is false after the last one. Points
// need not be legal.
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
