package searchspace

import (
	"math"
	"math/rand/v2"
	"slices"
)

// defaultDraws is the number of random points considered for a default, in addition to the seeds and the neighbours
// of the best, so that a model with many tasks waits only a few milliseconds for each.
const defaultDraws = 192

// maxDescent limits the steps of a descent.
const maxDescent = 64

// Default returns the legal point of least analytic cost among the seeds, a fixed sample and the descents from the
// best of each algorithm: the schedule to use without measurements.
func (s *Space) Default() Point {
	return s.cheapest(s.Defaults())
}

// Defaults returns the default for each algorithm with a legal point, as if it were the only one: the direct sum
// first, others in knob order. There is at least one.
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

// DefaultWhere returns a default among the points that suit: the one of least analytic cost among the seeds and a
// fixed sample, improved by descent; ok is false if none of them suits.
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

// drafts returns the seeds and a fixed sample of legal points.
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

// cheapest returns the first point of least analytic cost, or the first of the space if none exist.
func (s *Space) cheapest(points []Point) Point {
	best, cost := make(Point, len(s.Knobs)), math.Inf(1)
	for _, p := range points {
		if c := s.Cost(p); c < cost {
			best, cost = p, c
		}
	}
	return best
}

// descend moves from a point to its cheapest neighbour with the same algorithm while that is cheaper. It also
// considers neighbours of the point with a smaller unroll factor, since no larger tile is legal at the largest one.
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

// lessUnrolled returns a point with the next smaller unroll factor, or p itself.
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
