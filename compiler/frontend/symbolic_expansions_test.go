package frontend_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// openIn returns a model with inputs given as "name n 4 m": letters are open extents, of at most 8 each.
func openIn(opset int64, inputs ...string) modeltest.Model {
	s := modeltest.New().Opset(opset)
	for _, text := range inputs {
		fields := strings.Fields(text)
		shape := make([]int64, len(fields)-1)
		for axis, f := range fields[1:] {
			if shape[axis] = 8; f[0] >= '0' && f[0] <= '9' {
				shape[axis] = int64(f[0] - '0')
			}
		}
		s = s.Input(fields[0], shape...)
		for axis, f := range fields[1:] {
			if f[0] > '9' {
				s = s.Open(fields[0], axis, f)
			}
		}
	}
	return s
}

// typed sets the type of an input.
func typed(s modeltest.Model, input string, d array.DType) modeltest.Model {
	for _, in := range s.Graph.Inputs {
		if in.Name == input {
			in.DType = d
		}
	}
	return s
}

// ofRuntime puts the last node into ONNX Runtime's domain.
func ofRuntime(s modeltest.Model) modeltest.Model {
	s.Graph.Nodes[len(s.Graph.Nodes)-1].Domain = "com.microsoft"
	return s
}

// openOf returns the bounds of a model's open extents.
func openOf(m *onnx.Model) map[string]frontend.Bounds {
	open := map[string]frontend.Bounds{}
	for _, in := range m.Graph.Inputs {
		for _, d := range in.Shape {
			if d.Param != "" {
				open[d.Param] = frontend.Bounds{Min: 1, Max: 8}
			}
		}
	}
	return open
}

// checkOpenIn compares models with the extents n and m, as far as they have them, with models of fixed shapes.
func checkOpenIn(t *testing.T, models map[string]*onnx.Model) {
	t.Helper()
	for name, m := range models {
		t.Run(name, func(t *testing.T) {
			open := openOf(m)
			sizes := []map[string]int64{{"n": 1, "m": 8}, {"n": 3, "m": 5}, {"n": 8, "m": 1}, {"n": 8, "m": 8}}
			for _, size := range sizes {
				for name := range size {
					if _, ok := open[name]; !ok {
						delete(size, name)
					}
				}
			}
			modeltest.CheckOpen(t, m, open, sizes...)
		})
	}
}

func floatOf(name string, v float32) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrFloat, Float: v}
}

func stringOf(name, v string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrString, String: v}
}

func bytesOf(d array.DType, shape ...int64) *array.Array {
	a := array.New(d, shape...)
	for i := range a.Len() {
		a.SetInt(i, i*7%23)
	}
	return a
}

func TestNormsOfOpenExtents(t *testing.T) {
	group := func() modeltest.Model { return openIn(21, "x n 4 m 3").Constant("s", 4).Constant("b", 4) }
	checkOpenIn(t, map[string]*onnx.Model{
		"GroupNormalization":            group().Node("y = GroupNormalization x s b", modeltest.Int("num_groups", 2)).Output("y"),
		"GroupNormalization of a batch": openIn(21, "x n 4 3 3").Constant("s", 4).Constant("b", 4).Node("y = GroupNormalization x s b", modeltest.Int("num_groups", 2)).Output("y"),
		"GroupNormalization per group":  openIn(18, "x n 4 m 3").Constant("s", 2).Constant("b", 2).Node("y = GroupNormalization x s b", modeltest.Int("num_groups", 2)).Output("y"),
		"InstanceNormalization":         group().Node("y = InstanceNormalization x s b").Output("y"),
		"LayerNormalization":            openIn(18, "x n m 4").Constant("s", 4).Constant("b", 4).Node("y = LayerNormalization x s b").Output("y"),
		"RMSNormalization":              openIn(23, "x n m 4").Constant("s", 4).Node("y = RMSNormalization x s").Output("y"),
		"MeanVarianceNormalization":     openIn(18, "x n 4 m 3").Node("y = MeanVarianceNormalization x").Output("y"),
		"LpNormalization":               openIn(18, "x n m").Node("y = LpNormalization x").Node("z = LpNormalization x", modeltest.Int("p", 1), modeltest.Int("axis", 0)).Output("y", "z"),
		"BatchNormalization in training": openIn(18, "x n 4 m").Constant("s", 4).Constant("b", 4).Constant("mean", 4).Constant("var", 4).
			Node("y u v = BatchNormalization x s b mean var", modeltest.Int("training_mode", 1)).Output("y", "u", "v"),
		"Dropout":                      openIn(18, "x n m").Node("y mask = Dropout x").Node("z = Where mask y x").Output("z"),
		"Gelu":                         openIn(20, "x n m").Node("y = Gelu x").Node("z = Gelu x", stringOf("approximate", "tanh")).Output("y", "z"),
		"SimplifiedLayerNormalization": ofRuntime(openIn(18, "x n m 4").Constant("s", 4).Node("y = SimplifiedLayerNormalization x s")).Output("y"),
		"SkipSimplifiedLayerNormalization": ofRuntime(openIn(18, "x n m 4", "r n m 4").Constant("s", 4).
			Node("y _ _ sum = SkipSimplifiedLayerNormalization x r s")).Output("y", "sum"),
	})
}

func TestAttentionOfOpenExtents(t *testing.T) {
	heads := []*onnx.Attribute{modeltest.Int("q_num_heads", 4), modeltest.Int("kv_num_heads", 2)}
	causal := modeltest.Int("is_causal", 1)
	queries := func(inputs ...string) modeltest.Model {
		return openIn(23, append([]string{"q m n 8", "k m n 4", "v m n 6"}, inputs...)...)
	}
	checkOpenIn(t, map[string]*onnx.Model{
		"Attention":                    queries().Node("y = Attention q k v", heads...).Output("y"),
		"causal Attention":             queries().Node("y = Attention q k v", append(heads, causal)...).Output("y"),
		"Attention with a mask":        queries("mask n n").Node("y = Attention q k v mask", heads...).Output("y"),
		"Attention with a bool mask":   queries("mask m 1 n n").Known("b", array.FromFloat32([]float32{0})).Node("seen = Greater mask b").Node("y = Attention q k v seen", heads...).Output("y"),
		"Attention with a short mask":  openIn(23, "q 1 n 8", "k 1 8 8", "v 1 8 8", "mask n m").Node("y = Attention q k v mask", modeltest.Int("q_num_heads", 2), modeltest.Int("kv_num_heads", 2)).Output("y"),
		"Attention and its scores":     openIn(23, "q 1 4 n 2", "k 1 2 m 2", "v 1 2 m 3").Node("y _ _ s = Attention q k v", modeltest.Int("qk_matmul_output_mode", 3), floatOf("softcap", 3)).Output("y", "s"),
		"Attention of four axes":       openIn(23, "q n 4 m 2", "k n 4 m 2", "v n 4 m 3").Node("y = Attention q k v", causal).Output("y"),
		"Attention with a past":        openIn(23, "q 2 n 8", "k 2 n 4", "v 2 n 4", "pk 2 2 m 2", "pv 2 2 m 2").Node("y keys values = Attention q k v _ pk pv", append(heads, causal)...).Output("y", "keys", "values"),
		"Attention with lengths":       typed(openIn(24, "q n 2 3 4", "k n 2 3 4", "v n 2 3 4", "lengths n"), "lengths", array.Int64).Node("y = Attention q k v _ _ _ lengths", causal).Output("y"),
		"MultiHeadAttention":           ofRuntime(queries().Node("y = MultiHeadAttention q q q", modeltest.Int("num_heads", 2))).Output("y"),
		"MultiHeadAttention with bias": ofRuntime(openIn(23, "q m n 8").Constant("b", 24).Node("y = MultiHeadAttention q q q b", modeltest.Int("num_heads", 2))).Output("y"),
		"MultiHeadAttention with padding": ofRuntime(typed(openIn(23, "q m n 8", "mask m n"), "mask", array.Int32).
			Node("y = MultiHeadAttention q q q _ mask", modeltest.Int("num_heads", 2))).Output("y"),
		"MultiHeadAttention with lengths": ofRuntime(typed(openIn(23, "q m n 8", "mask m"), "mask", array.Int32).
			Node("y = MultiHeadAttention q q q _ mask", modeltest.Int("num_heads", 2))).Output("y"),
		"MultiHeadAttention across": ofRuntime(openIn(23, "q 2 n 8", "k 2 2 m 4", "v 2 2 m 4").
			Node("y = MultiHeadAttention q k v", modeltest.Int("num_heads", 2))).Output("y"),
		"projected Attention": ofRuntime(openIn(23, "x m n 4").Constant("w", 4, 24).Constant("b", 24).
			Node("y = Attention x w b", modeltest.Int("num_heads", 2), modeltest.Int("unidirectional", 1))).Output("y"),
		"projected Attention with a past": ofRuntime(openIn(23, "x 2 n 4", "past 2 2 2 m 4").Constant("w", 4, 24).Constant("b", 24).
			Node("y present = Attention x w b _ past", modeltest.Int("num_heads", 2), modeltest.Int("unidirectional", 1))).Output("y", "present"),
		"GroupQueryAttention": ofRuntime(openIn(23, "q m n 8", "k m n 4", "v m n 4").
			Node("y = GroupQueryAttention q k v", modeltest.Int("num_heads", 4), modeltest.Int("kv_num_heads", 2))).Output("y"),
		"packed GroupQueryAttention": ofRuntime(openIn(23, "q 1 n 8", "pk 1 1 m 2", "pv 1 1 m 2").Constant("cos", 16, 1).Constant("sin", 16, 1).
			Node("y keys values = GroupQueryAttention q _ _ pk pv _ _ cos sin", modeltest.Int("num_heads", 2), modeltest.Int("kv_num_heads", 1), modeltest.Int("do_rotary", 1))).Output("y", "keys", "values"),
		"GroupQueryAttention with a sink": ofRuntime(openIn(23, "q m n 8", "k m n 4", "v m n 4").Constant("sink", 4).
			Node("y = GroupQueryAttention q k v _ _ _ _ _ _ _ _ sink", modeltest.Int("num_heads", 4), modeltest.Int("kv_num_heads", 2))).Output("y"),
		"RotaryEmbedding": openIn(23, "x m n 8", "cos m n 2", "sin m n 2").Node("y = RotaryEmbedding x cos sin", modeltest.Int("num_heads", 2)).Output("y"),
		"interleaved RotaryEmbedding": openIn(23, "x m 2 n 6", "cos m n 2", "sin m n 2").
			Node("y = RotaryEmbedding x cos sin", modeltest.Int("rotary_embedding_dim", 4), modeltest.Int("interleaved", 1)).Output("y"),
		"RotaryEmbedding from a position": ofRuntime(typed(openIn(23, "x m n 8", "at 1"), "at", array.Int64).Constant("cos", 9, 2).Constant("sin", 9, 2).
			Node("y = RotaryEmbedding x at cos sin", modeltest.Int("num_heads", 2))).Output("y"),
	})
}

func TestLossesAndQuantisedOperatorsOfOpenExtents(t *testing.T) {
	byte8, signed := array.New(array.Uint8), array.New(array.Int8)
	byte8.SetInt(0, 3)
	numbers := func(inputs ...string) modeltest.Model {
		s := openIn(21, inputs...).Known("scale", array.Scalar(array.Float32, 0.05)).Known("zero", byte8).Known("none", signed).
			Known("w", bytesOf(array.Int8, 4, 8)).Known("ws", modeltest.Wave(1, 0.5, 8)).Known("kernel", bytesOf(array.Int8, 4, 2, 3, 3)).Known("ks", modeltest.Wave(1, 0.5, 4)).
			Known("kz", array.New(array.Int8, 4)).Known("columns", array.New(array.Int8, 8))
		return s
	}
	loss := func() modeltest.Model {
		return typed(openIn(18, "x n 9 m", "at n m"), "at", array.Int64).Constant("weight", 9)
	}
	checkOpenIn(t, map[string]*onnx.Model{
		"NegativeLogLikelihoodLoss": loss().Node("y = NegativeLogLikelihoodLoss x at weight").Output("y"),
		"SoftmaxCrossEntropyLoss": loss().Node("y logs = SoftmaxCrossEntropyLoss x at weight", modeltest.Int("ignore_index", 1)).
			Node("z = SoftmaxCrossEntropyLoss x at", stringOf("reduction", "none")).Node("u = SoftmaxCrossEntropyLoss x at").Output("y", "logs", "z", "u"),
		"QuantizeLinear":   numbers("x n m").Node("q = QuantizeLinear x scale zero").Node("y = DequantizeLinear q scale zero").Output("y"),
		"QuantizeLinear 8": numbers("x n 8 m").Node("q = QuantizeLinear x ws columns", modeltest.Int("axis", 1)).Node("y = DequantizeLinear q ws columns", modeltest.Int("axis", 1)).Output("y"),
		"QuantizeLinear in blocks": numbers("x n 8", "s n 2").Node("q = QuantizeLinear x s", modeltest.Int("axis", 1), modeltest.Int("block_size", 4)).
			Node("y = DequantizeLinear q s", modeltest.Int("axis", 1), modeltest.Int("block_size", 4)).Output("y"),
		"DynamicQuantizeLinear": numbers("x n m").Node("q s z = DynamicQuantizeLinear x").Node("y = DequantizeLinear q s z").Output("y"),
		"MatMulInteger":         numbers("x n m 4").Node("q = QuantizeLinear x scale zero").Node("y = MatMulInteger q w zero columns").Output("y"),
		"MatMulInteger of data": numbers("x n m", "z m 4").Node("q = QuantizeLinear x scale zero").Node("r = QuantizeLinear z scale zero").Node("y = MatMulInteger q r zero zero").Output("y"),
		"QLinearMatMul":         numbers("x n m 4").Node("q = QuantizeLinear x scale zero").Node("y = QLinearMatMul q scale zero w ws columns scale zero").Output("y"),
		"ConvInteger":           numbers("x n 2 5 4").Node("q = QuantizeLinear x scale zero").Node("y = ConvInteger q kernel zero").Output("y"),
		"QLinearConv":           numbers("x n 2 5 4").Node("q = QuantizeLinear x scale zero").Node("y = QLinearConv q scale zero kernel ks kz scale zero", modeltest.Same3x3).Output("y"),
		"product of dequantised": numbers("x n m 4").Node("q = QuantizeLinear x scale zero").Node("d = DequantizeLinear q scale zero").
			Node("u = DequantizeLinear w ws columns", modeltest.Int("axis", 1)).Node("y = MatMul d u").Output("y"),
		"product of weights":    numbers("x n m 4").Node("u = DequantizeLinear w ws columns", modeltest.Int("axis", 1)).Node("y = MatMul x u").Output("y"),
		"transposed weights":    numbers("x n 8").Node("u = DequantizeLinear w ws columns", modeltest.Int("axis", 1)).Node("y = Gemm x u", modeltest.Int("transB", 1)).Output("y"),
		"DynamicQuantizeMatMul": ofRuntime(numbers("x n m 4").Node("y = DynamicQuantizeMatMul x w ws columns")).Output("y"),
		"QLinearAdd": ofRuntime(numbers("x n m", "z n m").Node("q = QuantizeLinear x scale zero").Node("r = QuantizeLinear z scale zero").
			Node("y = QLinearAdd q scale zero r scale zero scale zero")).Output("y"),
		"QLinearConcat": ofRuntime(numbers("x n 2", "z m 2").Node("q = QuantizeLinear x scale zero").Node("r = QuantizeLinear z scale zero").
			Node("y = QLinearConcat scale zero q scale zero r scale zero", modeltest.Int("axis", 0))).Output("y"),
		"QLinearSoftmax": ofRuntime(numbers("x n m").Node("q = QuantizeLinear x scale zero").Node("y = QLinearSoftmax q scale zero scale zero", modeltest.Int("opset", 13))).Output("y"),
		"QLinearMul": ofRuntime(numbers("x n m", "z m").Node("q = QuantizeLinear x scale zero").Node("r = QuantizeLinear z scale zero").
			Node("y = QLinearMul q scale zero r scale zero scale zero")).Output("y"),
		"MatMulIntegerToFloat": ofRuntime(numbers("x n m 4").Node("q = QuantizeLinear x scale zero").Node("y = MatMulIntegerToFloat q w scale ws zero columns")).Output("y"),
		"moved integers":       numbers("x n m").Node("q = QuantizeLinear x scale zero").Node("d = DequantizeLinear q scale zero").Node("t = Transpose d").Node("y = QuantizeLinear t scale zero").Output("y"),
		"QGemm":                ofRuntime(numbers("x n 4").Node("q = QuantizeLinear x scale zero").Node("y = QGemm q scale zero w ws columns _ scale zero")).Output("y"),
		"MatMulNBits": ofRuntime(openIn(21, "x n m 4").Known("codes", bytesOf(array.Uint8, 8, 1, 8)).Constant("scales", 8).
			Node("y = MatMulNBits x codes scales", modeltest.Int("K", 4), modeltest.Int("N", 8), modeltest.Int("block_size", 16))).Output("y"),
		"QAttention": ofRuntime(numbers("x m n 4").Known("all", bytesOf(array.Int8, 4, 24)).Constant("bias", 24).Node("q = QuantizeLinear x scale zero").
			Node("y = QAttention q all bias scale scale _ zero none", modeltest.Int("num_heads", 2))).Output("y"),
	})
}

func TestSequencesAndControlFlowOfOpenExtents(t *testing.T) {
	list := func(v ...int64) *array.Array { return array.FromInt64(v, int64(len(v))) }
	graph := func(s modeltest.Model, name string) *onnx.Attribute {
		return &onnx.Attribute{Name: name, Type: onnx.AttrGraph, Graph: s.Graph}
	}
	body := func(inputs ...string) modeltest.Model {
		s := modeltest.New()
		for _, name := range inputs {
			s.Graph.Inputs = append(s.Graph.Inputs, &onnx.ValueInfo{Name: name})
		}
		return s
	}
	then := body().Node("a = Relu x")
	then.Output("a")
	otherwise := body().Node("b = Neg x")
	otherwise.Output("b")
	turn := body("i", "go", "state").Node("on = Identity go").Node("next = Sin state").Node("part = Neg state")
	turn.Output("on", "next", "part")
	grow := body("i", "go", "state").Node("on = Identity go").Node("part = Sin state").Node("size = Shape state").Node("parts = ConstantOfShape size").
		Node("next = Add state parts")
	grow.Output("on", "next", "part")
	each := body("element").Node("done = Softmax element")
	each.Output("done")
	step := body("sum", "row").Node("more = Add sum row").Node("out = Relu more")
	step.Output("more", "out")
	checkOpenIn(t, map[string]*onnx.Model{
		"SplitToSequence": openIn(18, "x n 4").Known("one", array.FromInt64([]int64{2})).Node("s = SplitToSequence x one", modeltest.Int("axis", 1)).
			Node("y = ConcatFromSequence s", modeltest.Int("axis", 0)).Output("y"),
		"SplitToSequence of an open axis": openIn(18, "x n 4", "z m 4").Node("j = Concat x z", modeltest.Int("axis", 0)).Node("a = Shape x", modeltest.Int("end", 1)).Node("b = Shape z", modeltest.Int("end", 1)).
			Node("l = Concat a b", modeltest.Int("axis", 0)).Node("s = SplitToSequence j l").Known("at", array.FromInt64([]int64{1})).Node("y = SequenceAt s at").Output("y"),
		"stacked sequence": openIn(18, "x n m").Node("s = SequenceConstruct x x").Node("y = ConcatFromSequence s", modeltest.Int("axis", 1), modeltest.Int("new_axis", 1)).Output("y"),
		"If": openIn(18, "x n m").Known("none", array.FromFloat32([]float32{1})).Node("sum = ReduceSum x", modeltest.Int("keepdims", 0)).Node("c = Greater sum none").
			Node("y = If c", graph(then, "then_branch"), graph(otherwise, "else_branch")).Output("y"),
		"Loop":            openIn(18, "x n m").Known("trips", array.FromInt64([]int64{3})).Node("y parts = Loop trips _ x", graph(turn, "body")).Output("y", "parts"),
		"Scan":            openIn(18, "x n 3 m", "s n m").Node("y all = Scan s x", graph(step, "body"), modeltest.Int("num_scan_inputs", 1), modeltest.Ints("scan_input_axes", 1)).Output("y", "all"),
		"Loop that grows": openIn(18, "x n m").Known("trips", array.FromInt64([]int64{2})).Node("y parts = Loop trips _ x", graph(grow, "body")).Output("y", "parts"),
		"If on an extent": openIn(18, "x n m").Known("three", array.FromInt64([]int64{3})).Node("s = Size x").Node("c = Greater s three").
			Node("y = If c", graph(then, "then_branch"), graph(otherwise, "else_branch")).Output("y"),
		"SequenceMap": openIn(18, "x n 4", "z m 3").Node("s = SequenceConstruct x z").Node("u = SequenceMap s", graph(each, "body")).Known("at", array.FromInt64([]int64{1})).
			Node("y = SequenceAt u at").Output("y"),
		"legacy broadcast": openIn(6, "x 2 n m", "b n").Node("y = Add x b", modeltest.Int("broadcast", 1), modeltest.Int("axis", 1)).Output("y"),
		"legacy reshape":   openIn(4, "x n 2 3").Node("y = Reshape x", modeltest.Ints("shape", 0, 6)).Output("y"),
		"Momentum": func() *onnx.Model {
			s := openIn(18, "x n m", "g n m", "v n m").Known("rate", array.Scalar(array.Float32, 0.1)).Known("count", list(1)).
				Node("y u = Momentum rate count x g v", stringOf("mode", "standard"), floatOf("alpha", 0.9), floatOf("beta", 1), floatOf("norm_coefficient", 0.1))
			s.Graph.Nodes[0].Domain = "ai.onnx.preview.training"
			return s.Output("y", "u")
		}(),
	})
}

func TestRecurrentLayersOfOpenBatch(t *testing.T) {
	layer := func(gates int64, inputs ...string) modeltest.Model {
		return openIn(18, inputs...).Constant("w", 2, 3*gates, 2).Constant("r", 2, 3*gates, 3).Constant("b", 2, 6*gates)
	}
	both := stringOf("direction", "bidirectional")
	checkOpenIn(t, map[string]*onnx.Model{
		"LSTM": layer(4, "x 3 n 2").Node("y h c = LSTM x w r b", both).Output("y", "h", "c"),
		"LSTM with states": typed(layer(4, "x 3 n 2", "len n", "h0 2 n 3", "c0 2 n 3"), "len", array.Int32).
			Node("y h c = LSTM x w r b len h0 c0", both).Output("y", "h", "c"),
		"LSTM by sequence":      layer(4, "x n 3 2", "h0 n 2 3").Node("y h = LSTM x w r b _ h0", both, modeltest.Int("layout", 1)).Output("y", "h"),
		"GRU":                   layer(3, "x 3 n 2").Node("y h = GRU x w r b", both).Output("y", "h"),
		"GRU that resets after": layer(3, "x 3 n 2").Node("y h = GRU x w r b", both, modeltest.Int("linear_before_reset", 1)).Output("y", "h"),
		"RNN":                   layer(1, "x 3 n 2").Node("y h = RNN x w r", both).Output("y", "h"),
		"DynamicQuantizeLSTM": ofRuntime(typed(openIn(18, "x 3 n 2", "len n"), "len", array.Int32).Known("w", bytesOf(array.Int8, 1, 2, 12)).Known("r", bytesOf(array.Int8, 1, 3, 12)).Constant("b", 1, 24).Constant("s", 1).Known("z", array.New(array.Int8, 1)).
			Node("y h = DynamicQuantizeLSTM x w r b len _ _ _ s z s z")).Output("y", "h"),
	})
}

func TestSelectionsOfOpenExtents(t *testing.T) {
	checkOpenIn(t, map[string]*onnx.Model{
		"NonZero":        openIn(18, "x n 4").Node("r = Relu x").Node("y = NonZero r").Output("y"),
		"NonZero of two": openIn(18, "x n m").Node("r = Relu x").Node("y = NonZero r").Output("y"),
		"Compress":       openIn(18, "x n 4", "c n").Known("none", array.FromFloat32([]float32{1})).Node("b = Greater c none").Node("y = Compress x b", modeltest.Int("axis", 0)).Output("y"),
		"Unique":         openIn(18, "x n").Node("r = Floor x").Node("y i j k = Unique r").Output("y", "i", "j", "k"),
		"TopK":           typed(openIn(18, "x n 4", "k 1"), "k", array.Int64).Node("y i = TopK x k").Output("y", "i"),
		"Compress of all": openIn(18, "x n 4", "c n m").Known("flat", array.FromInt64([]int64{-1}, 1)).Known("none", array.FromFloat32([]float32{1})).
			Node("g = Greater c none").Node("b = Reshape g flat").Node("j = Concat c c", modeltest.Int("axis", 0)).Node("y = Compress j b").Output("y"),
		"gathered NonZero": openIn(18, "x n 4").Node("r = Relu x").Node("at = NonZero r").Node("t = Transpose at").Node("y = GatherND x t").Output("y"),
		"TopK up to a number": openIn(18, "x n 4").Known("three", array.FromInt64([]int64{3}, 1)).Node("size = Shape x", modeltest.Int("end", 1)).Node("k = Min size three").
			Node("y i = TopK x k", modeltest.Int("axis", 0)).Output("y", "i"),
		"TopK of an open axis":         typed(openIn(18, "x n 4", "k 1"), "k", array.Int64).Node("y i = TopK x k", modeltest.Int("axis", 0)).Output("y", "i"),
		"NonMaxSuppression of classes": openIn(18, "boxes 1 n 4", "scores 1 m n").Known("most", array.FromInt64([]int64{3}, 1)).Node("y = NonMaxSuppression boxes scores most").Output("y"),
		"NonMaxSuppression":            openIn(18, "boxes m n 4", "scores m 2 n").Known("most", array.FromInt64([]int64{3}, 1)).Node("y = NonMaxSuppression boxes scores most").Output("y"),
	})
}

func TestExpansionsThatNeedAFixedExtent(t *testing.T) {
	for want, m := range map[string]*onnx.Model{
		"how many parts of 2 an axis of n has": openIn(18, "x n 2").Known("two", array.FromInt64([]int64{2})).Node("s = SplitToSequence x two").
			Node("y = ConcatFromSequence s", modeltest.Int("axis", 1)).Output("y"),
		"the extent n of axis 1 is open": openIn(21, "x 2 n 3").Constant("s", 4).Node("y = GroupNormalization x s s", modeltest.Int("num_groups", 2)).Output("y"),
		"the extent n of axis 3 is open": openIn(23, "q 1 2 3 n", "k 1 2 3 n", "v 1 2 3 n").Node("y = Attention q k v").Output("y"),
		"input 6, how many tokens there are, is not m + n": ofRuntime(openIn(23, "q 1 n 4", "p 1 2 m 2").Known("total", array.FromInt64([]int64{9})).
			Node("y = GroupQueryAttention q q q p p _ total", modeltest.Int("num_heads", 2), modeltest.Int("kv_num_heads", 2))).Output("y"),
	} {
		if _, err := frontend.Import(m, frontend.Options{Open: openOf(m)}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "make_") {
			t.Errorf("got %v, want an error that names the node and says %q", err, want)
		}
	}
}
