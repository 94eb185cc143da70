package searchspace

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// MinOwn is the smallest number of a user-written algorithm. Texts of points with such a number are meaningless
// in spaces without it.
const MinOwn = 1 << 40

// With returns the space with further families, of algorithms from MinOwn on. The starting point of a search, the
// default, remains that of s.
func (s *Space) With(families ...Family) *Space {
	if len(families) == 0 {
		return s
	}
	families = slices.Clone(families)
	slices.SortFunc(families, func(a, b Family) int { return cmp.Compare(a.Algorithms()[0].Number, b.Algorithms()[0].Number) })
	var all []Family
	for i := range s.families {
		all = append(all, s.families[i].Family)
	}
	larger := New(s.Workload, s.Target, append(all, families...)...)
	larger.base = s
	return larger
}

// Own reports whether a point uses a user-written algorithm.
func (s *Space) Own(p Point) bool { return s.Algorithm(p).Number >= MinOwn }

// extendedDefaults returns the defaults of the base space, and the first seed of each further family.
func (s *Space) extendedDefaults() (list []Point) {
	for _, p := range s.base.Defaults() {
		list = append(list, s.lifted(p))
	}
	for i := len(s.base.families); i < len(s.families); i++ {
		for _, seed := range s.families[i].Seeds() {
			if p, ok := s.nearestPoint(&s.families[i], seed); ok {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

// InitialOwnPoints returns up to n legal points of each user-written algorithm: its first seed and random ones,
// possibly repeated. A search has no other prior knowledge of these algorithms.
func (s *Space) InitialOwnPoints(rng *rand.Rand, n int) (list []Point) {
	if s.base == nil || n < 1 {
		return nil
	}
	for i := len(s.base.families); i < len(s.families); i++ {
		f := &s.families[i]
		for _, seed := range f.Seeds() {
			if p, ok := s.nearestPoint(f, seed); ok {
				list = append(list, p)
			}
		}
		for range n - 1 {
			p := make(Point, len(s.Knobs))
			p[0] = slices.Index(s.Knobs[0].Values, f.algorithms[0].Number)
			for range 50 {
				for k := f.first; k < f.end; k++ {
					p[k] = rng.IntN(len(s.Knobs[k].Values))
				}
				if s.Legal(p) == nil {
					list = append(list, p)
					break
				}
			}
		}
	}
	return list
}

// Owns returns the number of user-written algorithms.
func (s *Space) Owns() int {
	if s.base == nil {
		return 0
	}
	return len(s.families) - len(s.base.families)
}

// lifted returns a point of the base in this space.
func (s *Space) lifted(p Point) Point {
	q := make(Point, 0, len(s.Knobs))
	if !s.base.chooses() {
		q = append(q, slices.Index(s.Knobs[0].Values, s.base.Algorithm(p).Number))
	}
	q = append(q, p...)
	return append(q, make(Point, len(s.Knobs)-len(q))...)
}
