package space

import (
	"math"
	"math/rand/v2"
	"slices"
)

// defaultDraws is how many random points the choice of a default looks at, beside the hand-written ones and those near
// the best: so that a model of many tasks waits a few milliseconds for each.
const defaultDraws = 192

// maxDescent is how many knobs a descent changes at most, one after the other.
const maxDescent = 64

// Default is the legal point of least analytic cost among the seeds, a fixed sample and what lies downhill from the
// best of each algorithm: the schedule for when nothing was ever measured.
func (s *Space) Default() Point {
	return s.cheapest(s.Defaults())
}

// Defaults are what Default would be if the space had one algorithm only, for each that has a legal point: the direct
// sum first, others in the order of their knob. There is at least one.
func (s *Space) Defaults() []Point {
	if s.base != nil {
		return s.extendedDefaults()
	}
	if !s.chooses() {
		return []Point{s.descend(s.cheapest(s.drafts()))}
	}
	drafts := make([][]Point, len(s.Knobs[0].Values))
	for _, p := range s.drafts() {
		drafts[p[0]] = append(drafts[p[0]], p)
	}
	var list []Point
	for _, points := range drafts {
		if len(points) > 0 {
			list = append(list, s.descend(s.cheapest(points)))
		}
	}
	if len(list) == 0 {
		list = append(list, make(Point, len(s.Knobs)))
	}
	return list
}

// DefaultWhere is a default among the points that suit: the one of least analytic cost among the seeds and a fixed
// sample, and what lies downhill from it; ok is false where none of those suits.
func (s *Space) DefaultWhere(suits func(Point) bool) (p Point, ok bool) {
	first := func(points []Point, below float64) (Point, bool) {
		s.Sort(points)
		for _, q := range points {
			if s.Cost(q) >= below {
				break
			}
			if suits(q) {
				return q, true
			}
		}
		return nil, false
	}
	p, ok = first(s.drafts(), math.Inf(1))
	for step := 0; ok && step < maxDescent; step++ {
		q, cheaper := first(s.Neighbours(p), s.Cost(p))
		if !cheaper {
			break
		}
		p = q
	}
	return p, ok
}

// drafts are the seeds and a fixed sample of legal points.
func (s *Space) drafts() []Point {
	rng := rand.New(rand.NewPCG(1, 2))
	points := s.Seeds()
	for range defaultDraws {
		if p, ok := s.Random(rng); ok {
			points = append(points, p)
		}
	}
	return points
}

// cheapest is the first point of least analytic cost; the first of the space where there are none.
func (s *Space) cheapest(points []Point) Point {
	best, cost := make(Point, len(s.Knobs)), math.Inf(1)
	for _, p := range points {
		if c := s.Cost(p); c < cost {
			best, cost = p, c
		}
	}
	return best
}

// descend goes from a point to its cheapest neighbour with the same algorithm, as long as that is cheaper. Neighbours
// of the point with fewer steps written out count as well: beside a tile with as many as are legal, no larger one is.
func (s *Space) descend(p Point) Point {
	for range maxDescent {
		next := []Point{p}
		for _, q := range append(s.Neighbours(p), s.Neighbours(s.lessUnrolled(p))...) {
			if s.Algorithm(q) == s.Algorithm(p) {
				next = append(next, q)
			}
		}
		q := s.cheapest(next)
		if s.Cost(q) >= s.Cost(p) {
			return p
		}
		p = q
	}
	return p
}

// lessUnrolled is a point with the next smaller number of steps written out, or itself.
func (s *Space) lessUnrolled(p Point) Point {
	for k, knob := range s.Knobs {
		if knob.Unrolls && s.Active(p, k) && p[k] > 0 {
			p = slices.Clone(p)
			p[k]--
			return p
		}
	}
	return p
}
