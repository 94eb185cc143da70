package backend

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// costColumn is the name of the analytic cost among the features.
const costColumn = "cost_cycles"

// CostAlone returns features whose only column is the analytic cost, for backends without a learned cost model.
func CostAlone(set string) Features {
	return costAlone{costfeatures.NewSet(set, []string{costColumn}, costColumn)}
}

// costAlone implements Features.
type costAlone struct{ set *costfeatures.Set }

// Set implements Features.
func (c costAlone) Set() *costfeatures.Set { return c.set }

// Describe implements Features.
func (c costAlone) Describe(_ *schedule.Schedule, _ *target.Target, cycles float64) costfeatures.Row {
	return costfeatures.Row{Set: c.set, Values: []float32{float32(math.Log2(1 + max(0, cycles)))}}
}

// Prior implements Features.
func (costAlone) Prior(*target.Target) string { return "" }
