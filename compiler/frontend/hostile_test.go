package frontend_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/op"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// hostile draws nodes whose operands and attributes need not fit.
type hostile struct {
	*rand.Rand
	// last is the shape drawn before, which is drawn again often, so that some operands fit.
	last []int64
}

// attributeNames are those of many operators; a node gets a few of them, of any type.
var attributeNames = []string{
	"axis", "axes", "to", "dtype", "k", "kernel_shape", "pads", "strides", "dilations", "group", "auto_pad", "mode", "epsilon",
	"keepdims", "perm", "blocksize", "shape", "value", "size", "alpha", "beta", "num_groups", "p", "reduction", "ignore_index",
	"direction", "hidden_size", "activations", "activation_alpha", "clip", "layout", "linear_before_reset", "input_forget",
	"block_size", "output_dtype", "num_heads", "q_num_heads", "kv_num_heads", "is_causal", "softcap", "scale",
	"rotary_embedding_dim", "interleaved", "training_mode", "noop_with_empty_axes", "new_axis", "num_scan_inputs",
	"scan_input_axes", "transA", "transB", "start", "end", "fmod", "equation", "output_padding", "output_shape", "batch_dims",
	"select_last_index", "largest", "exclusive", "reverse", "upper", "time_axis", "batch_axis", "count_include_pad", "ceil_mode",
}

func (h *hostile) integer() int64 {
	return []int64{0, 1, 2, 3, 4, -1, -2, 7, 1 << 20, 1 << 40, math.MaxInt64, math.MinInt64}[h.IntN(12)]
}

func (h *hostile) shape() []int64 {
	if h.IntN(2) == 0 {
		return h.last
	}
	shape := make([]int64, h.IntN(6))
	for k := range shape {
		shape[k] = int64(1 + h.IntN(4))
		if h.IntN(20) == 0 {
			shape[k] = 0
		}
	}
	h.last = shape
	return shape
}

func (h *hostile) array() *array.Array {
	types := []array.DType{array.Float32, array.Float32, array.Float32, array.Int64, array.Int64, array.Int32, array.Bool,
		array.Float16, array.Uint8, array.Int8, array.Float64, array.Uint64}
	a := array.New(types[h.IntN(len(types))], h.shape()...)
	for i := range a.Len() {
		a.SetInt(i, h.integer())
	}
	return a
}

// stretched returns a shape in which an extent is sometimes as large as no memory is.
func (h *hostile) stretched(shape []int64) []int64 {
	if len(shape) == 0 || h.IntN(8) > 0 {
		return shape
	}
	shape = slices.Clone(shape)
	shape[h.IntN(len(shape))] = []int64{1 << 10, 1 << 24, 1 << 36}[h.IntN(3)]
	return shape
}

func (h *hostile) attribute() *onnx.Attribute {
	a := &onnx.Attribute{Name: attributeNames[h.IntN(len(attributeNames))], Float: float32(h.integer()), Int: h.integer()}
	a.String = []string{"", "mean", "bidirectional", "ij,jk->ik", "SAME_UPPER", "reflect", "cubic", "i...i", "->"}[h.IntN(9)]
	a.Type = []onnx.AttributeType{onnx.AttrInt, onnx.AttrInt, onnx.AttrFloat, onnx.AttrInts, onnx.AttrString, onnx.AttrFloats,
		onnx.AttrStrings, onnx.AttrTensor, onnx.AttrGraph}[h.IntN(9)]
	for range h.IntN(6) {
		a.Ints, a.Floats = append(a.Ints, h.integer()), append(a.Floats, float32(h.integer()))
		a.Strings = append(a.Strings, []string{"Tanh", "Relu", "", "Sigmoid"}[h.IntN(4)])
	}
	a.Tensor, a.Graph = &onnx.Tensor{Value: h.array()}, &onnx.Graph{}
	return a
}

func (h *hostile) model(names []string) *onnx.Model {
	n := &onnx.Node{Name: "n", Op: names[h.IntN(len(names))], Outputs: []string{"y", "z", "u"}[:1+h.IntN(3)]}
	m := modeltest.New()
	m.Opsets[0].Version = []int64{1, 6, 9, 11, 13, 18, 21, 24}[h.IntN(8)]
	for k := range h.IntN(8) {
		name := fmt.Sprint("x", k)
		switch h.IntN(5) {
		case 0:
			name = ""
		case 1, 2:
			m = m.Known(name, h.array())
		default:
			a := h.array()
			v := modeltest.Info(name, h.stretched(a.Shape))
			v.DType = a.DType
			m.Graph.Inputs = append(m.Graph.Inputs, v)
		}
		n.Inputs = append(n.Inputs, name)
	}
	for range h.IntN(5) {
		n.Attributes = append(n.Attributes, h.attribute())
	}
	m.Graph.Nodes = []*onnx.Node{n}
	return m.Output(n.Outputs...)
}

func TestNoNodeMakesImportPanicOrAllocateMuch(t *testing.T) {
	h := &hostile{Rand: rand.New(rand.NewPCG(1, 2))}
	var names []string
	for _, d := range slices.Concat(op.Lowered, op.Operators) {
		if d.Domain == "" && !d.Internal {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	accepted := 0
	for k := range 30000 {
		m := h.model(names)
		n := m.Graph.Nodes[0]
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("model %d: %s of set %d panics: %v", k, n.Op, m.Opsets[0].Version, r)
				}
			}()
			p, bytes, err := importCost(small, m)
			if bytes > 128<<20 {
				t.Errorf("model %d: %s of set %d allocates %d MiB: %v", k, n.Op, m.Opsets[0].Version, bytes>>20, err)
			}
			if err != nil {
				return
			}
			accepted++
			modeltest.Check(t, p)
		}()
	}
	t.Logf("%d models were accepted", accepted)
}
