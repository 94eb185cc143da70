package knowledge

import (
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/costmodel"
)

// Row describes a point for the model: its features.
type Row = features.Row

// Describe is the row of a legal point of s, whose schedule is sch. It is empty, and no model takes it, where the
// target's backend is not known.
func Describe(s *space.Space, p space.Point, sch *schedule.Schedule) Row {
	b, err := registry.Of(s.Target)
	if err != nil {
		return Row{}
	}
	return b.Features().Describe(sch, s.Target, s.Cost(p))
}

// Costs are the logarithms, base 2, of the analytic costs of rows.
func Costs(rows []Row) []float64 {
	var analytic *costmodel.Model
	costs, _ := analytic.Times(rows) // which needs no features of a model
	return costs
}
