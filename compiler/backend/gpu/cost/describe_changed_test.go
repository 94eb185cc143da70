package cost_test

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// TestFeaturesOfChangedTraces checks that arbitrary traces have finite features, whether or not they can be lowered.
func TestFeaturesOfChangedTraces(t *testing.T) {
	on, f := describeCard(t), cost.Features{}
	rapid.Check(t, func(t *rapid.T) {
		c := kerneltest.DrawTiled(t)
		for k, v := range f.Describe(c.Schedule, on, 1000).Values {
			if math.IsInf(float64(v), 0) {
				t.Fatalf("value %d is %v of\n%s", k, v, c.Text())
			}
		}
	})
}
