package searchspace

import "slices"

// Seeds returns the points that the families consider good, sorted by analytic cost: a search measures them first.
func (s *Space) Seeds() []Point {
	var list []Point
	seen := map[string]bool{}
	for i := range s.families {
		for _, seed := range s.families[i].Seeds() {
			if p, ok := s.nearestPoint(&s.families[i], seed); ok && !seen[p.Key()] {
				seen[p.Key()] = true
				list = append(list, p)
			}
		}
	}
	return s.sorted(list)
}

// nearestPoint returns the point with the nearest choices to a seed's values; ok is false if it is not legal.
func (s *Space) nearestPoint(f *member, seed Seed) (p Point, ok bool) {
	p = make(Point, len(s.Knobs))
	if s.chooses() {
		if p[0] = slices.Index(s.Knobs[0].Values, seed.By.Number); p[0] < 0 {
			return nil, false
		}
	}
	for k, v := range seed.Values {
		p[f.first+k] = nearest(s.Knobs[f.first+k].Values, v)
	}
	p = s.reconciled(p)
	return p, s.Legal(p) == nil
}
