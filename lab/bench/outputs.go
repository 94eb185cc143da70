package bench

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/tolerance"
)

// WorstError returns the largest relative error of an output; see tolerance.Relative. It is at most the maximum
// float64, which stands for infinity in JSON.
func WorstError(got, want map[string]*array.Array) (worst float64) {
	for name, w := range want {
		worst = max(worst, tolerance.Relative(got[name], w))
	}
	return min(worst, math.MaxFloat64)
}
