package codegen

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestDefaultSchedulesOfOperators compiles the kernels of single operators as in an untuned package.
func TestDefaultSchedulesOfOperators(t *testing.T) {
	cases, err := modeltest.RecordedCases()
	if err != nil {
		t.Fatal(err)
	}
	for k, m := range quick(append(slices.Clone(modes), squareMode), "avx2", "gcc", "i8mm") {
		if m.name == "sanitized" {
			continue // compiling them takes minutes; TestEveryPointIsRight covers each kind
		}
		t.Run(m.name, func(t *testing.T) {
			var kernels []kerneltest.Case
			seen := map[string]bool{}
			for i, c := range cases {
				if testing.Short() && i%24 != k {
					continue // each mode has other cases
				}
				kernels = append(kernels, kernelsOf(t, c, m.description(t), seen)...)
			}
			checkCases(t, t, m, kernels)
		})
	}
}

// maxKernels is the maximum number of kernels of a case that is compiled here. Cases of many operators have kernels
// like those of other cases; package conformance compiles and runs them as a whole.
const maxKernels = 2

// kernelsOf returns the unseen kernels of a case with their data.
func kernelsOf(t *testing.T, c *modeltest.Case, d *target.Target, seen map[string]bool) []kerneltest.Case {
	t.Helper()
	model, inputs, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := frontend.Import(model, frontend.Options{})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	var kernels []kerneltest.Case
	if len(p.Tasks) > maxKernels {
		return nil
	}
	_, err = evaluate.Calls(p, inputs, func(call program.Call, args, _ []*array.Array) {
		k := kerneltest.Case{Workload: p.Tasks[call.Task].Workload, Workers: 2, Args: args}
		if seen[k.Workload.Digest()] {
			return
		}
		seen[k.Workload.Digest()] = true
		s := sketch.New(k.Workload, d, schedule.Default)
		if k.Schedule, err = s.Apply(s.Default()); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		kernels = append(kernels, k)
	})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return kernels
}
