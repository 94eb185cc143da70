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
			args[k] = p.view(arrays, v)
		}
		outs, err := expr.Evaluate(w, args)
		if err != nil {
			return nil, fmt.Errorf("evaluate %q: call %q: %w", p.Name, c.Name, err)
		}
		for k, v := range c.Args[known:] {
			arrays[v] = outs[k]
		}
	}
	outputs := map[string]*array.Array{}
	for _, k := range p.Outputs {
		outputs[p.Values[k].Name] = p.view(arrays, k)
	}
	return outputs, nil
}

// view is the array of a value, with its own shape over the bytes of its root.
func (p *Program) view(arrays []*array.Array, v int) *array.Array {
	a := arrays[p.Root(v)]
	if p.Values[v].Alias < 0 {
		return a
	}
	return &array.Array{DType: a.DType, Shape: p.Values[v].Shape, Data: a.Data}
}
