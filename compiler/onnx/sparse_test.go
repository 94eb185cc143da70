package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
)

// sparse encodes a model with a sparse initializer.
func sparse(values, indices *array.Array, shape ...int64) []byte {
	var tensor, graph, model message
	tensor.message(1, (&Tensor{Name: "w", Value: values}).encode())
	if indices != nil {
		tensor.message(2, (&Tensor{Value: indices}).encode())
	}
	for _, e := range shape {
		tensor.int(3, e)
	}
	graph.message(15, &tensor)
	model.message(7, &graph)
	return model.encoded()
}

func TestSparseTensorsAreReadDense(t *testing.T) {
	values := array.FromFloat32([]float32{1, 2}, 2)
	for name, c := range map[string]struct {
		model []byte
		want  []float32
		err   string
	}{
		"positions":    {sparse(values, array.FromInt64([]int64{1, 5}, 2), 2, 3), []float32{0, 1, 0, 0, 0, 2}, ""},
		"rows":         {sparse(values, array.FromInt64([]int64{0, 1, 1, 2}, 2, 2), 2, 3), []float32{0, 1, 0, 0, 0, 2}, ""},
		"no values":    {sparse(array.New(array.Float32, 0), nil, 2), []float32{0, 0}, ""},
		"beyond":       {sparse(values, array.FromInt64([]int64{1, 6}, 2), 2, 3), nil, `sparse tensor "w": index 6 is outside of 0..5`},
		"beyond a row": {sparse(values, array.FromInt64([]int64{0, 1, 0, 3}, 2, 2), 2, 3), nil, "index 3 is outside of 0..2"},
		"negative":     {sparse(values, array.FromInt64([]int64{0, -1}, 2), 2, 3), nil, "index -1 is outside"},
		"one index":    {sparse(values, array.FromInt64([]int64{0}, 1), 2, 3), nil, "do not fit 2 values"},
		"huge":         {sparse(values, array.FromInt64([]int64{0, 1}, 2), 1<<20, 1<<20), nil, "over the limit of 268435456 bytes"},
	} {
		m, err := Read(c.model)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		case c.err != "":
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if w := m.Graph.Initializers[0]; w.Name != "w" || !slices.Equal(w.Value.Float32s(), c.want) {
				t.Errorf("%s: %s %v, want %v", name, w.Name, w.Value.Float32s(), c.want)
			}
		}
	}
}
