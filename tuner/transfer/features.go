package transfer

import (
	"github.com/tilth-dev/tilth/compiler/backend/registry"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/costmodel"
)

// Row holds the features of a point.
type Row = costfeatures.Row

// Describe returns the row of a legal point of s with schedule sch. The row is empty, and unusable by models,
// if the target's backend is unknown.
func Describe(s *searchspace.Space, p searchspace.Point, sch *schedule.Schedule) Row {
	b, err := registry.Of(s.Target)
	if err != nil {
		return Row{}
	}
	return b.Features().Describe(sch, s.Target, s.Cost(p))
}

// Costs returns the base-2 logarithms of the analytic costs of rows.
func Costs(rows []Row) []float64 {
	var analytic *costmodel.Model
	costs, _ := analytic.Times(rows) // the analytic cost needs no model features
	return costs
}
