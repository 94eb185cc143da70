package space

import "github.com/tilth-dev/tilth/compiler/schedule"

// Family is candidates that have the same knobs: the schedules of a sketch, or others, such as kernels that somebody
// wrote by hand. Values are one for each of its knobs, in their order. Methods may be called by several goroutines at
// a time.
type Family interface {
	// Algorithms are what its candidates compute by, in ascending order of their numbers. There is at least one.
	Algorithms() []Algorithm
	// Knobs are the numbers that are left open.
	Knobs() []Knob
	// Legal says why a candidate breaks a constraint that is known before compiling; nil when it breaks none.
	Legal(by Algorithm, values []int64) error
	// Cost is a rough estimate of the run time of a legal candidate, in cycles of one core.
	Cost(by Algorithm, values []int64) float64
	// Apply schedules a workload as a legal candidate says.
	Apply(s *schedule.Schedule, by Algorithm, values []int64) error
	// Reconcile changes values that were drawn or mixed so that they agree with one another. The nearest choices are
	// taken then.
	Reconcile(by Algorithm, values []int64)
	// Seeds are candidates that are known to be good, and may be none of the space: again the nearest choices are
	// taken.
	Seeds() []Seed
	// Tiled are the values that knobs should have for tiles that another compiler chose; none where the family has no
	// such tiles.
	Tiled(t Tiling) []Wish
}

// Seed is a candidate of a family by its values.
type Seed struct {
	By     Algorithm
	Values []int64
}

// Algorithm is a way to compute a workload.
type Algorithm struct {
	// Name is the field's word for it.
	Name string
	// Number is what texts of points, and so records and logs, call it.
	Number int64
}

// Direct computes every sum as it is written.
var Direct = Algorithm{"direct", 0}
