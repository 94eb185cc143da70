package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
)

// maxParameter is the largest number of elements of a floating-point input that may be an operator parameter, such
// as the scales of a resize.
const maxParameter = 16

// bound is a model with parameters bound to constants, and the remaining inputs.
type bound struct {
	program *program.Program
	inputs  map[string]*array.Array
}

// importSet imports a model for the inputs of a data set. Test models have inputs for values that exporters write
// as constants: shapes, axes, repeats. importSet binds as few integers and small vectors as possible, none if that
// suffices.
func importSet(m *onnx.Model, values map[string]*array.Array, storage array.Storage) (*bound, error) {
	b, err := bindAndImport(m, values, nil, storage)
	if err == nil {
		return b, nil
	}
	candidates := parameters(values)
	if len(candidates) == 0 {
		return nil, err
	}
	if b, err = bindAndImport(m, values, candidates, storage); err != nil {
		return nil, err
	}
	for _, name := range slices.Clone(candidates) {
		fewer := slices.DeleteFunc(slices.Clone(candidates), func(n string) bool { return n == name })
		if with, err := bindAndImport(m, values, fewer, storage); err == nil {
			b, candidates = with, fewer
		}
	}
	return b, nil
}

// parameters returns the inputs that may be parameters rather than data, largest first.
func parameters(values map[string]*array.Array) []string {
	var names []string
	for name, a := range values {
		if !a.DType.IsFloat() || len(a.Shape) <= 1 && a.Len() <= maxParameter {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if n, m := values[a].Len(), values[b].Len(); n != m {
			return int(m - n)
		}
		return strings.Compare(a, b)
	})
	return names
}

// bindAndImport turns the named inputs into initializers, gives the others the shapes of their values, and imports
// the model.
func bindAndImport(m *onnx.Model, values map[string]*array.Array, names []string, storage array.Storage) (b *bound, err error) {
	g := *m.Graph
	g.Inputs, g.Initializers = nil, slices.Clone(g.Initializers)
	b = &bound{inputs: map[string]*array.Array{}}
	for _, info := range m.Graph.Inputs {
		a := values[info.Name]
		switch {
		case a != nil && slices.Contains(names, info.Name):
			g.Initializers = append(g.Initializers, &onnx.Tensor{Name: info.Name, Value: a})
			continue
		case a != nil:
			b.inputs[info.Name] = a
			info = shaped(info, a.Shape)
		}
		g.Inputs = append(g.Inputs, info)
	}
	model := *m
	model.Graph = &g
	b.program, err = frontend.Import(&model, frontend.Options{Storage: storage})
	return b, err
}

// shaped returns an input with the shape of its value, overriding the model: it may leave extents open, and some
// test models declare other shapes.
func shaped(info *onnx.ValueInfo, shape []int64) *onnx.ValueInfo {
	fixed := *info
	fixed.HasShape, fixed.Shape = true, make([]onnx.Dim, len(shape))
	for k, e := range shape {
		fixed.Shape[k].Value = e
	}
	return &fixed
}

// feeds returns the named inputs of a data set.
func feeds(m *onnx.Model, set onnx.DataSet) (map[string]*array.Array, error) {
	infos := dataInputs(m.Graph)
	if len(set.Inputs) > len(infos) {
		infos = m.Graph.Inputs // a set may also override initializers
	}
	if len(set.Inputs) > len(infos) {
		return nil, fmt.Errorf("%s has %d inputs, the model %d", set.Name, len(set.Inputs), len(infos))
	}
	values := map[string]*array.Array{}
	for k, a := range set.Inputs {
		values[infos[k].Name] = retype(a, infos[k].DType)
	}
	return values, nil
}

// dataInputs returns the inputs without an initializer.
func dataInputs(g *onnx.Graph) []*onnx.ValueInfo {
	var infos []*onnx.ValueInfo
	for _, info := range g.Inputs {
		if !slices.ContainsFunc(g.Initializers, func(t *onnx.Tensor) bool { return t.Name == info.Name }) {
			infos = append(infos, info)
		}
	}
	return infos
}

// retype returns an array with the type that the model declares: files of older versions of ONNX store the bits of
// bfloat16 as uint16.
func retype(a *array.Array, d array.DType) *array.Array {
	if d == array.BFloat16 && a.DType == array.Uint16 {
		return &array.Array{DType: d, Shape: a.Shape, Data: a.Data}
	}
	return a
}
