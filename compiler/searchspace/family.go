package searchspace

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Family is a set of candidates with the same knobs: the schedules of a sketch, or others, such as user kernels.
// Values are in knob order. Implementations must be safe for concurrent use.
type Family interface {
	// Algorithms returns the algorithms of its candidates, at least one, in ascending order of their numbers.
	Algorithms() []Algorithm
	// Knobs returns the open numbers.
	Knobs() []Knob
	// Legal returns an error if a candidate violates a constraint that is known before compilation.
	Legal(by Algorithm, values []int64) error
	// Cost returns a rough estimate of a legal candidate's run time, in cycles of one core.
	Cost(by Algorithm, values []int64) float64
	// Apply applies a legal candidate to a schedule.
	Apply(s *schedule.Schedule, by Algorithm, values []int64) error
	// Reconcile modifies drawn or mixed values so that they are consistent. The nearest choices are then used.
	Reconcile(by Algorithm, values []int64)
	// Seeds returns candidates that are known to be good. They may lie outside the space; the nearest choices are
	// used.
	Seeds() []Seed
	// Tiled returns the knob values for tiles chosen by another compiler; none if the family has no such tiles.
	Tiled(t Tiling) []Wish
}

// Seed is a candidate of a family by its values.
type Seed struct {
	By     Algorithm
	Values []int64
}

// Algorithm is a way to compute a workload.
type Algorithm struct {
	// Name is the usual name of the algorithm.
	Name string
	// Number identifies it in texts of points, and thus in records and logs.
	Number int64
}

// Direct computes every sum as it is written.
var Direct = Algorithm{"direct", 0}

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
