package gpusim

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// set has the analytic cost alone: the speed of a simulation is not worth a model.
var set = features.NewSet("gpusim-features-1", []string{"cost_cycles"}, "cost_cycles")

// Features implements backend.Backend.
func (Backend) Features() backend.Features { return featureSet{} }

// featureSet implements backend.Features.
type featureSet struct{}

// Set implements backend.Features.
func (featureSet) Set() *features.Set { return set }

// Describe implements backend.Features.
func (featureSet) Describe(_ *schedule.Schedule, _ *target.Target, cycles float64) features.Row {
	return features.Row{Set: set, Values: []float32{float32(math.Log2(1 + max(0, cycles)))}}
}

// Prior implements backend.Features.
func (featureSet) Prior(*target.Target) string { return "" }

// Code implements backend.Features.
func (featureSet) Code(s *schedule.Schedule, _ *target.Target) float64 {
	return float64(len(s.Stages))
}
