package cpu

import (
	"github.com/tilth-dev/tilth/compiler/backend/cpu/cost"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// featureSet implements backend.Features.
type featureSet struct{}

// Set implements backend.Features.
func (featureSet) Set() *costfeatures.Set { return cost.FeatureSet }

// Describe implements backend.Features.
func (featureSet) Describe(s *schedule.Schedule, t *target.Target, cycles float64) costfeatures.Row {
	return cost.Describe(s, t, cycles)
}

// Prior implements backend.Features.
func (featureSet) Prior(t *target.Target) string { return cost.PriorModel(t) }

// Code implements backend.Features.
func (featureSet) Code(s *schedule.Schedule, t *target.Target) float64 {
	return cost.DescribeCode(s, t)
}
