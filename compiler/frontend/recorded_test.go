package frontend_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

func TestOperatorsComputeWhatONNXRuntimeDoes(t *testing.T) {
	cases, err := modeltest.RecordedCases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { checkRecorded(t, c) })
	}
}

func checkRecorded(t *testing.T, c *modeltest.Case) {
	m, inputs, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(m, frontend.Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	outs, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	for k, out := range c.Outputs {
		want, err := out.Array()
		if err != nil {
			t.Fatal(err)
		}
		if err := near(outs[fmt.Sprintf("y%d", k)], want); err != nil {
			t.Errorf("result %d: %v", k, err)
		}
	}
}

// near allows the rounding errors of sums that cancel, which are relative to the largest result.
func near(got, want *array.Array) error {
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("got %v%v, want %v%v", got.DType, got.Shape, want.DType, want.Shape)
	}
	largest := 0.0
	for i := range want.Len() {
		if v := math.Abs(want.Float(i)); !math.IsInf(v, 0) {
			largest = max(largest, v)
		}
	}
	for i := range want.Len() {
		g, w := got.Float(i), want.Float(i)
		if g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(want.DType.IsFloat() && math.Abs(g-w) <= 1e-5*largest) {
			return fmt.Errorf("element %d is %g, want %g", i, g, w)
		}
	}
	return nil
}
