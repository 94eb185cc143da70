package op_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// ofRuntimeWhere makes nodes ONNX Runtime's own whose operators ONNX does not have.
func ofRuntimeWhere(m *onnx.Model, operators ...string) *onnx.Model {
	for _, n := range m.Graph.Nodes {
		for _, o := range operators {
			if n.Op == o {
				n.Domain = "com.microsoft"
			}
		}
	}
	return m
}

// TestModelOfQuantisedOperatorsStaysInIntegers: a residual block and a classifier as ONNX Runtime's quantiser writes
// them have a kernel for each product, with the addition in one of them, and store no floats.
func TestModelOfQuantisedOperatorsStaysInIntegers(t *testing.T) {
	zero := array.New(array.Uint8)
	zero.SetInt(0, 113)
	s := modeltest.New().Input("x", 1, 8, 6, 6).Known("s", scalarOf(0.01)).Known("z", zero).Known("wide", scalarOf(0.3)).
		Known("w", numbers(array.Int8, -127, 127, 8, 8, 1, 1)).Known("v", numbers(array.Int8, -127, 127, 8, 4)).
		Known("sw", modeltest.Wave(0.02, 0.01, 8)).Known("zw", array.New(array.Int8, 8)).
		Known("one", scalarOf(0.02)).Known("none", array.New(array.Int8)).Known("bias", numbers(array.Int32, -900, 900, 4)).
		Node("q = QuantizeLinear x s z").
		Node("a = QLinearConv q s z w sw zw wide z").Node("m = MaxPool a", modeltest.Ints("kernel_shape", 2, 2)).
		Node("b = QLinearConv m wide z w sw zw wide z").Node("sum = QLinearAdd b wide z m wide z wide z").
		Node("pooled = QLinearGlobalAveragePool sum wide z s z").Node("flat = Flatten pooled").
		Node("g = QGemm flat s z v one none bias wide z").Node("y = DequantizeLinear g wide z")
	m := ofRuntimeWhere(s.Output("y"), "QLinearAdd", "QLinearGlobalAveragePool", "QGemm")
	p := modeltest.Import(t, m)
	if len(p.Calls) != 6 {
		t.Errorf("%d kernels, want one that quantises, two convolutions, two of pooling and a product", len(p.Calls))
	}
	for _, v := range p.Values {
		if v.DType == array.Float32 && v.Data == nil && v.Name != "x" && v.Name != "y" {
			t.Errorf("%s is stored as floats", v.Name)
		}
	}
}

// TestQuantisedLayersKeepTheirWeightsInBytes: recurrent layers and attention, of weights in bytes, multiply these.
func TestQuantisedLayersKeepTheirWeightsInBytes(t *testing.T) {
	s := modeltest.New().Input("x", 4, 2, 8).Known("w", numbers(array.Int8, -127, 127, 1, 8, 64)).Known("r", numbers(array.Int8, -127, 127, 1, 16, 64)).
		Known("s", modeltest.Wave(0.02, 0.01, 1)).Known("z", array.New(array.Int8, 1)).
		Node("_ h = DynamicQuantizeLSTM x w r _ _ _ _ _ s z s z", modeltest.Int("hidden_size", 16)).
		Known("one", scalarOf(0.01)).Known("point", array.New(array.Uint8)).Node("q = QuantizeLinear h one point").
		Known("v", numbers(array.Int8, -127, 127, 16, 48)).Constant("b", 48).
		Node("y = QAttention q v b one one _ point", modeltest.Int("num_heads", 2))
	p := modeltest.Import(t, ofRuntimeWhere(s.Output("y"), "DynamicQuantizeLSTM", "QAttention"))
	for _, v := range p.Values {
		if v.Data != nil && v.DType == array.Float32 && v.Data.Len() > 64 {
			t.Errorf("constant %s is stored as %v%v", v.Name, v.DType, v.Data.Shape)
		}
	}
}

func TestQuantisedOperatorsThatAreRefused(t *testing.T) {
	start := func() modeltest.Model {
		return modeltest.New().Known("s", scalarOf(0.01)).Known("z", array.New(array.Uint8)).Input("x", 1, 8, 6, 6).Node("q = QuantizeLinear x s z")
	}
	for name, c := range map[string]struct {
		model modeltest.Model
		want  string
	}{
		"order of ONNX Runtime's own": {start().Node("y = QLinearGlobalAveragePool q s z s z", modeltest.Int("channels_last", 1)), "channels_last is not supported"},
		"layer without scales": {modeltest.New().Input("x", 3, 1, 8).Known("w", numbers(array.Int8, -127, 127, 1, 8, 16)).
			Known("r", numbers(array.Int8, -127, 127, 1, 4, 16)).Node("y = DynamicQuantizeLSTM x w r"), "input 8 must be f32"},
		"layer of floats": {modeltest.New().Input("x", 3, 1, 8).Constant("w", 1, 8, 16).Constant("r", 1, 4, 16).Node("y = DynamicQuantizeLSTM x w r"),
			"input 1 is f32[1 8 16], want bytes of shape [1 8 16]"},
		"projection without weights of two axes": {start().Known("w", numbers(array.Int8, -127, 127, 1, 8, 24)).Constant("b", 24).
			Node("y = QAttention q w b s s", modeltest.Int("num_heads", 2)), "have a wrong number of axes"},
		"part without a scale": {start().Node("y = QLinearConcat s z q s z q s", modeltest.Int("axis", 1)), "7 inputs are not"},
	} {
		t.Run(name, func(t *testing.T) {
			m := ofRuntimeWhere(c.model.Output("y"), "QLinearGlobalAveragePool", "QLinearConcat", "DynamicQuantizeLSTM", "QAttention")
			if _, err := frontend.Import(m, frontend.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
