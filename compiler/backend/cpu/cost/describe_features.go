package cost

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/features"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// FeatureSet is the columns. docs/features.md says what each means.
var FeatureSet = features.NewSet("tilth-features-4", names(), "cost_cycles")

func names() []string {
	list := make([]string, len(columns))
	for k, c := range columns {
		list[k] = c.name
	}
	return list
}

// Describe is the row of a candidate on a target. Cycles is the space's analytic cost; NaN when it is not known. The
// schedule is only read. It may be called by several goroutines at a time.
func Describe(s *schedule.Schedule, t *target.Target, cycles float64) features.Row {
	a := analysed(s, t, cycles)
	defer a.done()
	values := make([]float32, len(columns))
	for k, c := range columns {
		values[k] = features.Finite(c.value(a))
	}
	return features.Row{Set: FeatureSet, Values: values}
}

// DescribeCode is about how many instructions the source of a candidate has, to which a compiler's time is
// proportional.
func DescribeCode(s *schedule.Schedule, t *target.Target) float64 {
	a := analysed(s, t, math.NaN())
	defer a.done()
	return a.Code()
}
