package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/internal/opcases"
)

// TestDefaultSchedulesOfOperators compiles the kernels of single operators as an untuned package has them.
func TestDefaultSchedulesOfOperators(t *testing.T) {
	cases, err := opcases.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range modes {
		if m.name == "sanitized" {
			continue // the instrumented kernels take a compiler minutes; TestEveryPointIsRight has sanitized ones of each kind
		}
		t.Run(m.name, func(t *testing.T) {
			var kernels []testCase
			for _, c := range cases {
				kernels = append(kernels, kernelsOf(t, c, m.description(t))...)
			}
			checkCases(t, t, m, kernels)
		})
	}
}

// kernelsOf are the kernels of a case with the data that they run on.
func kernelsOf(t *testing.T, c *opcases.Case, d *target.Target) []testCase {
	t.Helper()
	model, inputs, err := c.Model()
	if err != nil {
		t.Fatal(err)
	}
	p, err := graph.Import(model, graph.Options{})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	data := make([]*array.Array, len(p.Values))
	for k, v := range p.Values {
		data[k] = v.Data
		if data[k] == nil {
			data[k] = inputs[v.Name]
		}
	}
	var kernels []testCase
	for _, call := range p.Calls {
		w := p.Tasks[call.Task].Workload
		known := w.Args()[:len(call.Args)-len(w.Outputs)]
		k := testCase{workload: w, workers: 2}
		for i, tensor := range known {
			k.args = append(k.args, &array.Array{DType: tensor.DType, Shape: tensor.Shape, Data: data[p.Root(call.Args[i])].Data})
		}
		outs, err := expr.Evaluate(w, k.args)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for i, out := range outs {
			data[call.Args[len(known)+i]] = out
		}
		s := space.New(w, d, schedule.Default)
		if k.schedule, err = s.Apply(s.Default()); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		kernels = append(kernels, k)
	}
	return kernels
}
