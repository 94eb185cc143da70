package searchspace

import "github.com/tilth-dev/tilth/compiler/schedule"

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
