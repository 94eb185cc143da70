package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Features describes candidates for GPUs to a learned cost model. It implements backend.Features. The columns come
// from the analysis. Values with a wide range are logarithms. Values that depend on the GPU are relative to its
// capability, so that one model serves GPUs of one make. docs/features.md documents each column.
type Features struct{}

var _ backend.Features = Features{}

var set = costfeatures.NewSet("tilth-gpu-features-2", names(), costColumn)

func names() []string {
	list := make([]string, len(columns))
	for k, c := range columns {
		list[k] = c.name
	}
	return list
}

// Set implements backend.Features.
func (Features) Set() *costfeatures.Set { return set }

// Describe implements backend.Features.
func (Features) Describe(s *schedule.Schedule, t *target.Target, cycles float64) costfeatures.Row {
	c := describeAnalysed(s, t, cycles)
	values := make([]float32, len(columns))
	for k, column := range columns {
		values[k] = costfeatures.Finite(column.value(c))
	}
	return costfeatures.Row{Set: set, Values: values}
}

// Prior implements backend.Features. There were no GPU measurements to train a model on.
func (Features) Prior(*target.Target) string { return "" }

// Code implements backend.Features.
func (Features) Code(s *schedule.Schedule, t *target.Target) (instructions float64) {
	for _, l := range describeAnalysed(s, t, math.NaN()).Launches {
		instructions += l.Code
	}
	return instructions
}
