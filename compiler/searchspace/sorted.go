package searchspace

import "slices"

// sorted orders points by analytic cost, lowest first, in a stable way.
func (s *Space) sorted(points []Point) []Point {
	type priced struct {
		p    Point
		cost float64
	}
	list := make([]priced, len(points))
	for k, p := range points {
		list[k] = priced{p, s.Cost(p)}
	}
	slices.SortStableFunc(list, func(a, b priced) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
	for k := range list {
		points[k] = list[k].p
	}
	return points
}

// Sort orders points by analytic cost, lowest first.
func (s *Space) Sort(points []Point) { s.sorted(points) }
