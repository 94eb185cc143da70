package knowledge

import (
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/costmodel/features"
)

// Row describes a point for the model.
type Row struct {
	features []float32
	// cycles is the analytic cost.
	cycles float64
}

// Describe is the row of a legal point of s, whose schedule is sch.
func Describe(s *space.Space, p space.Point, sch *schedule.Schedule) Row {
	cycles := s.Cost(p)
	return Row{features.Append(nil, sch, s.Target, cycles), cycles}
}
