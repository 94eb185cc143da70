package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/costfeatures"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// FeatureSet lists the columns. docs/features.md documents each.
var FeatureSet = costfeatures.NewSet("tilth-features-4", names(), "cost_cycles")

func names() []string {
	list := make([]string, len(columns))
	for k, c := range columns {
		list[k] = c.name
	}
	return list
}

// Describe returns the row of a candidate on a target. cycles is the space's analytic cost, or NaN if unknown.
// Describe does not change the schedule and is safe for concurrent use.
//
// The columns are numbers from the analysis, for a learned cost model. Values with a wide range are logarithms.
// Machine-dependent values are relative to the machine's capability, so that one model serves machines of one kind.
// The choice follows Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning" (OSDI
// 2020), appendix B: arithmetic by kind, annotations, buffer accesses with their reuse, and the curve of arithmetic
// intensity. Ansor extracts them from lowered programs; here they follow from the loops of each statement.
func Describe(s *schedule.Schedule, t *target.Target, cycles float64) costfeatures.Row {
	a := analysed(s, t, cycles)
	defer a.done()
	values := make([]float32, len(columns))
	for k, c := range columns {
		values[k] = costfeatures.Finite(c.value(a))
	}
	return costfeatures.Row{Set: FeatureSet, Values: values}
}

// DescribeCode returns approximately how many instructions the source of a candidate has. Compile time is
// proportional to it.
func DescribeCode(s *schedule.Schedule, t *target.Target) float64 {
	a := analysed(s, t, math.NaN())
	defer a.done()
	return a.Code()
}
