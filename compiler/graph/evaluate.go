package graph

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// Evaluate runs the program in Go, by the workloads' meaning and without any schedule. It is slow, and what compiled
// packages are compared with. inputs has an array for each input's name; the result one for each output's.
func (p *Program) Evaluate(inputs map[string]*array.Array) (map[string]*array.Array, error) {
	arrays := make([]*array.Array, len(p.Values))
	for k, v := range p.Values {
		arrays[k] = v.Data
	}
	for _, k := range p.Inputs {
		if arrays[k] = inputs[p.Values[k].Name]; arrays[k] == nil {
			return nil, fmt.Errorf("evaluate %q: input %q is missing", p.Name, p.Values[k].Name)
		}
	}
	for _, c := range p.Calls {
		w := p.Tasks[c.Task].Workload
		known := len(c.Args) - len(w.Outputs)
		args := make([]*array.Array, known)
		for k, v := range c.Args[:known] {
			args[k] = withShape(arrays[p.Root(v)], w.Args()[k].Shape)
		}
		outs, err := expr.Evaluate(w, args)
		if err != nil {
			return nil, fmt.Errorf("evaluate %q: call %q: %w", p.Name, c.Name, err)
		}
		for k, v := range c.Args[known:] {
			arrays[v] = withShape(outs[k], p.Values[v].Shape)
		}
	}
	outputs := map[string]*array.Array{}
	for _, k := range p.Outputs {
		outputs[p.Values[k].Name] = withShape(arrays[p.Root(k)], p.Values[k].Shape)
	}
	return outputs, nil
}

// withShape is an array's bytes in another shape: an alias may differ from its root, and a workload's canonical arguments
// from the program's values.
func withShape(a *array.Array, shape []int64) *array.Array {
	return &array.Array{DType: a.DType, Shape: shape, Data: a.Data}
}
