package sketch

import (
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
)

// New derives the space of a workload on a target from its sketches, with the algorithms that the numerics allow.
// The knobs are those of the heaviest nest.
func New(w *expr.Workload, t *target.Target, k Sketches) *searchspace.Space {
	p := analyse(w, k)
	u := p.heaviest()
	if u == nil {
		u = &unit{direct: &searchspace.Sketch[struct{}]{Variants: []searchspace.Variant[struct{}]{{By: searchspace.Direct, Structure: nothing{}}}}}
	}
	families := []searchspace.Family{planned{u.direct, p}}
	if u.other != nil {
		families = append(families, planned{u.other, p})
	}
	return searchspace.New(w, t, families...)
}

// planned combines schedules of a plan's heaviest unit with those of the other units.
type planned struct {
	searchspace.Family
	plan *plan
}

// Apply implements searchspace.Family.
func (f planned) Apply(s *schedule.Schedule, by searchspace.Algorithm, values []int64) error {
	return f.plan.apply(s, func() error { return f.Family.Apply(s, by, values) })
}

// nothing is the structure of a workload without units, since all stages are inlined into constants.
type nothing struct{}

// Legal implements searchspace.Structure.
func (nothing) Legal(struct{}) error { return nil }

// Cost implements searchspace.Structure.
func (nothing) Cost(struct{}) float64 { return 0 }

// Apply implements searchspace.Structure.
func (nothing) Apply(*schedule.Schedule, struct{}) error { return nil }
