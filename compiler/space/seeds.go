package space

import "slices"

// Seeds are the points that the families know to be good: a search measures them first. The best analytic cost comes
// first.
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

// nearestPoint takes the nearest choice where a seed's value is not among a knob's; ok is false when the result is not
// legal.
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
