package frontend_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// openMatrix returns a model with the input x of shape (n, m), where each named axis is open.
func openMatrix(n, m string) modeltest.Model {
	s := modeltest.New().Opset(18).Input("x", 7, 5)
	for axis, name := range []string{n, m} {
		if name != "" {
			s = s.Open("x", axis, name)
		}
	}
	return s
}

func floats(v ...float64) *array.Array {
	a := array.New(array.Float32, int64(len(v)))
	for k, x := range v {
		a.SetFloat(int64(k), x)
	}
	return a
}

func text(name, v string) *onnx.Attribute {
	return &onnx.Attribute{Name: name, Type: onnx.AttrString, String: v}
}

// TestIndicesOfOpenAxes runs operators that number the elements of axes, with each sensible axis open.
func TestIndicesOfOpenAxes(t *testing.T) {
	integer := modeltest.Int
	for name, build := range map[string]func(s modeltest.Model) *onnx.Model{
		"argmax of rows":    func(s modeltest.Model) *onnx.Model { return s.Node("y = ArgMax x", integer("axis", 0)).Output("y") },
		"argmin of columns": func(s modeltest.Model) *onnx.Model { return s.Node("y = ArgMin x", integer("axis", 1)).Output("y") },
		"last argmax": func(s modeltest.Model) *onnx.Model {
			return s.Node("r = Round x").Node("y = ArgMax r", integer("axis", 0), integer("select_last_index", 1), integer("keepdims", 0)).Output("y")
		},
		"first argmin": func(s modeltest.Model) *onnx.Model {
			return s.Node("r = Round x").Node("y = ArgMin r", integer("axis", 0)).Output("y")
		},
		"hardmax of rows": func(s modeltest.Model) *onnx.Model {
			return s.Node("r = Round x").Node("y = Hardmax r", integer("axis", 0)).Output("y")
		},
		"hardmax of columns": func(s modeltest.Model) *onnx.Model { return s.Node("y = Hardmax x", integer("axis", 1)).Output("y") },
		"hardmax of all": func(s modeltest.Model) *onnx.Model {
			return s.Opset(11).Node("y = Hardmax x", integer("axis", 0)).Output("y")
		},
		"sum of rows so far": func(s modeltest.Model) *onnx.Model {
			return s.Known("a", array.Scalar(array.Int64, 0)).Node("y = CumSum x a").Output("y")
		},
		"sum of columns so far": func(s modeltest.Model) *onnx.Model {
			return s.Known("a", array.Scalar(array.Int64, 1)).Node("y = CumSum x a", integer("exclusive", 1)).Output("y")
		},
		"sum from the end": func(s modeltest.Model) *onnx.Model {
			return s.Known("a", array.Scalar(array.Int64, 0)).Node("y = CumSum x a", integer("reverse", 1)).Output("y")
		},
		"sum after each": func(s modeltest.Model) *onnx.Model {
			return s.Known("a", array.Scalar(array.Int64, -1)).Node("y = CumSum x a", integer("reverse", 1), integer("exclusive", 1)).Output("y")
		},
		"upper triangle": func(s modeltest.Model) *onnx.Model { return s.Node("y = Trilu x").Output("y") },
		"lower triangle": func(s modeltest.Model) *onnx.Model {
			return s.Known("k", array.Scalar(array.Int64, -1)).Node("y = Trilu x k", integer("upper", 0)).Output("y")
		},
		"triangle from an extent": func(s modeltest.Model) *onnx.Model {
			return s.Node("h = Shape x", integer("end", 1)).Known("two", numbers(2)).Node("k = Sub two h").Node("y = Trilu x k").Output("y")
		},
		"identity": func(s modeltest.Model) *onnx.Model {
			return s.Node("e = EyeLike x", integer("k", 1)).Node("y = Add e x").Output("y")
		},
		"identity below": func(s modeltest.Model) *onnx.Model {
			return s.Node("y = EyeLike x", integer("k", -2), integer("dtype", 7)).Output("y")
		},
		"top 2 of rows": func(s modeltest.Model) *onnx.Model {
			return s.Known("k", numbers(2)).Node("v i = TopK x k", integer("axis", 0)).Output("v", "i")
		},
		"least 2 of columns": func(s modeltest.Model) *onnx.Model {
			return s.Known("k", numbers(2)).Node("r = Round x").Node("v i = TopK r k", integer("axis", 1), integer("largest", 0)).Output("v", "i")
		},
		"all in order": func(s modeltest.Model) *onnx.Model {
			return s.Node("k = Shape x", integer("end", 1)).Node("r = Round x").Node("v i = TopK r k", integer("axis", 0)).Output("v", "i")
		},
		"all in falling order": func(s modeltest.Model) *onnx.Model {
			return s.Node("k = Shape x", integer("start", 1)).Node("v i = TopK x k", integer("axis", 1), integer("largest", 0)).Output("v", "i")
		},
		"up to 4": func(s modeltest.Model) *onnx.Model {
			return s.Node("h = Shape x", integer("end", 1)).Known("four", numbers(4)).Node("k = Min h four").Node("v i = TopK x k", integer("axis", 0)).Node("y = ReduceSum v").Node("z = ReduceSum i").Output("y", "z")
		},
		"product with itself": func(s modeltest.Model) *onnx.Model {
			return s.Node("y = Einsum x x", text("equation", "nm,km->nk")).Output("y")
		},
		"product over rows": func(s modeltest.Model) *onnx.Model {
			return s.Node("y = Einsum x x", text("equation", "nm,nk->mk")).Output("y")
		},
		"outer product": func(s modeltest.Model) *onnx.Model {
			return s.Constant("w", 3).Node("y = Einsum x w", text("equation", "...,k->...k")).Output("y")
		},
		"diagonal sums": func(s modeltest.Model) *onnx.Model {
			return s.Constant("w", 2, 1, 1).Node("y = Einsum w x", text("equation", "k...,...->k")).Output("y")
		},
		"sum by einsum": func(s modeltest.Model) *onnx.Model {
			return s.Node("y = Einsum x", text("equation", "nm->m")).Output("y")
		},
		"tuples": func(s modeltest.Model) *onnx.Model {
			return s.Known("i", array.FromInt64([]int64{0, -1, 1, 0}, 2, 2)).Node("y = GatherND x i").Output("y")
		},
		"last row by tuple": func(s modeltest.Model) *onnx.Model {
			return s.Known("i", array.FromInt64([]int64{-1}, 1, 1)).Node("y = GatherND x i").Output("y")
		},
		"gathered by rank": func(s modeltest.Model) *onnx.Model {
			return s.Node("k = Shape x", integer("end", 1)).Node("v i = TopK x k", integer("axis", 0)).Node("y = GatherElements x i", integer("axis", 0)).Output("y")
		},
		"rows by index": func(s modeltest.Model) *onnx.Model {
			return s.Node("i = ArgMax x", integer("axis", 0), integer("keepdims", 0)).Node("y = Gather x i").Output("y")
		},
		"rows in order": func(s modeltest.Model) *onnx.Model {
			return s.Node("n = Size x").Node("m = Shape x", integer("start", 1)).Node("h = Div n m").Known("axis", numbers(0)).Node("l = Squeeze h axis").
				Known("zero", array.Scalar(array.Int64, 0)).Known("one", array.Scalar(array.Int64, 1)).Node("i = Range zero l one").Node("y = Gather x i").Output("y")
		},
		"tuples of computed": func(s modeltest.Model) *onnx.Model {
			return s.Node("i = ArgMax x", integer("axis", 1)).Node("y = GatherND x i", integer("batch_dims", 1)).Output("y")
		},
		"scattered by rank": func(s modeltest.Model) *onnx.Model {
			return s.Node("k = Shape x", integer("end", 1)).Node("v i = TopK x k", integer("axis", 0)).Node("y = ScatterElements x i v", integer("axis", 0)).Output("y")
		},
		"added at the argmax": func(s modeltest.Model) *onnx.Model {
			return s.Node("i = ArgMax x", integer("axis", 0)).Node("m = ReduceMax x", modeltest.Ints("axes", 0)).Opset(11).Node("y = ScatterElements x i m", integer("axis", 0)).Output("y")
		},
		"scattered into a constant": func(s modeltest.Model) *onnx.Model {
			return s.Constant("c", 9, 9).Node("i = ArgMax x", integer("axis", 0)).Node("v = Slice x zero one zero").Known("zero", numbers(0)).Known("one", numbers(1)).Node("y = ScatterElements c i v", integer("axis", 0)).Output("y")
		},
		"known places": func(s modeltest.Model) *onnx.Model {
			return s.Known("i", array.FromInt64([]int64{-1, 0}, 1, 2)).Constant("v", 1, 2).Node("y = ScatterElements x i v", integer("axis", 1)).Output("y")
		},
		"known rows": func(s modeltest.Model) *onnx.Model {
			return s.Known("i", array.FromInt64([]int64{1, -1}, 2, 1)).Known("zero", numbers(0)).Known("two", numbers(2)).Node("v = Slice x zero two zero").Node("a = Neg v").Node("y = ScatterND x i a", text("reduction", "add")).Output("y")
		},
		"every row": func(s modeltest.Model) *onnx.Model {
			return s.Node("i = ArgMax x", integer("axis", 1)).Node("v = Neg x").Known("nine", numbers(9)).Node("h = Shape x", integer("start", 1)).Node("s = Concat nine h", integer("axis", 0)).Node("c = ConstantOfShape s").Node("y = ScatterND c i v").Output("y")
		},
		"one hot": func(s modeltest.Model) *onnx.Model {
			return s.Node("i = ArgMax x", integer("axis", 1), integer("keepdims", 0)).Node("d = Shape x", integer("start", 1)).Known("v", floats(-1, 2)).Node("y = OneHot i d v").Output("y")
		},
		"one hot of rows": func(s modeltest.Model) *onnx.Model {
			return s.Node("i = ArgMax x", integer("axis", 0), integer("keepdims", 0)).Node("d = Shape x", integer("end", 1)).Known("v", floats(-1, 2)).Node("y = OneHot i d v", integer("axis", 0)).Output("y")
		},
		"reversed": func(s modeltest.Model) *onnx.Model {
			return s.Node("l = ArgMax x", integer("axis", 0), integer("keepdims", 0)).Node("y = ReverseSequence x l").Output("y")
		},
		"reversed rows": func(s modeltest.Model) *onnx.Model {
			return s.Node("l = ArgMax x", integer("axis", 1), integer("keepdims", 0)).Node("y = ReverseSequence x l", integer("time_axis", 1), integer("batch_axis", 0)).Output("y")
		},
		"compressed": func(s modeltest.Model) *onnx.Model {
			return s.Known("c", bools(false, true)).Node("y = Compress x c", integer("axis", 1)).Output("y")
		},
		"compressed rows": func(s modeltest.Model) *onnx.Model {
			return s.Known("c", bools(false, true)).Node("y = Compress x c", integer("axis", 0)).Output("y")
		},
		"compressed elements": func(s modeltest.Model) *onnx.Model {
			return s.Known("c", bools(false, true, false, true)).Node("y = Compress x c").Output("y")
		},
		"rest": func(s modeltest.Model) *onnx.Model {
			return s.Known("a", numbers(2)).Known("zero", numbers(0)).Node("h = Shape x", integer("end", 1)).Node("r = Slice x a h zero").Node("v = Softmax r").Node("y = ReduceSum v").Output("y")
		},
		"nothing": func(s modeltest.Model) *onnx.Model {
			return s.Known("zero", numbers(0)).Known("one", numbers(1)).Node("f = Slice x zero zero zero").Node("l = Slice x zero zero one").Node("g = Neg x").Output("f", "l", "g")
		},
		"positions of nonzeros": func(s modeltest.Model) *onnx.Model {
			return s.Known("c", floats(0, 1, 1)).Node("p = NonZero c").Node("q = Cast p", integer("to", 1)).Node("r = ReduceSum q").Node("y = Add x r").Output("y")
		},
	} {
		for _, axes := range [][2]string{{"n", ""}, {"", "m"}, {"n", "m"}} {
			t.Run(fmt.Sprint(name, axes), func(t *testing.T) {
				open, sizes := map[string]frontend.Bounds{}, []map[string]int64{{}, {}, {}}
				for k, name := range axes {
					if name != "" {
						open[name] = frontend.Bounds{Min: 2, Max: 9}
						sizes[0][name], sizes[1][name], sizes[2][name] = 2, int64(5+2*k), 9
					}
				}
				modeltest.CheckOpen(t, build(openMatrix(axes[0], axes[1])), open, sizes...)
			})
		}
	}
}

// TestOutputHasOneCountOfAnAxis checks that a count that depends on data replaces the extent up to which it counts.
func TestOutputHasOneCountOfAnAxis(t *testing.T) {
	m := openMatrix("n", "m").Node("y = NonZero x").Output("y")
	p, err := frontend.Import(m, frontend.Options{Open: map[string]frontend.Bounds{"n": {Min: 1, Max: 4}, "m": {Min: 1, Max: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Open) != 1 || p.Open[0].Axis != 1 {
		t.Errorf("the output has the counts %v, want one of axis 1", p.Open)
	}
}

func bools(v ...bool) *array.Array {
	a := array.New(array.Bool, int64(len(v)))
	for k, is := range v {
		if is {
			a.SetInt(int64(k), 1)
		}
	}
	return a
}

// indexInput adds an input of type i64. The second input has elements in 0..2, and the third in 1..3.
func indexInput(s modeltest.Model, name string, shape ...int64) modeltest.Model {
	s = s.Input(name, shape...)
	s.Graph.Inputs[len(s.Graph.Inputs)-1].DType = array.Int64
	return s
}

// TestIndicesOfOpenInputs runs operators with several inputs, or with axes that are longer than the parts in which
// their kernels treat them.
func TestIndicesOfOpenInputs(t *testing.T) {
	integer := modeltest.Int
	matrix := func() modeltest.Model { return openMatrix("n", "m") }
	long := func() modeltest.Model { return modeltest.New().Opset(18).Input("x", 2, 1).Open("x", 1, "long") }
	for name, m := range map[string]*onnx.Model{
		"tuples":                  indexInput(matrix(), "i", 4, 2).Open("i", 0, "k").Node("y = GatherND x i").Output("y"),
		"tuples of batches":       indexInput(matrix(), "i", 7, 4, 1).Open("i", 0, "n").Open("i", 1, "k").Node("y = GatherND x i", integer("batch_dims", 1)).Output("y"),
		"elements":                indexInput(matrix(), "i", 7, 5).Open("i", 0, "k").Open("i", 1, "m").Node("y = GatherElements x i", integer("axis", 0)).Output("y"),
		"scattered tuples":        indexInput(matrix(), "i", 4, 1).Open("i", 0, "k").Input("u", 4, 5).Open("u", 0, "k").Open("u", 1, "m").Node("y = ScatterND x i u").Output("y"),
		"multiplied tuples":       indexInput(matrix(), "i", 4, 3, 2).Open("i", 0, "k").Open("i", 1, "n").Input("u", 4, 3).Open("u", 0, "k").Open("u", 1, "n").Node("y = ScatterND x i u", text("reduction", "mul")).Output("y"),
		"scattered elements":      indexInput(matrix(), "i", 4, 5).Open("i", 0, "k").Open("i", 1, "m").Input("u", 4, 5).Open("u", 0, "k").Open("u", 1, "m").Node("y = ScatterElements x i u", integer("axis", 0)).Output("y"),
		"added elements":          indexInput(matrix(), "i", 4, 2).Open("i", 0, "n").Input("u", 4, 2).Open("u", 0, "n").Node("y = ScatterElements x i u", integer("axis", 1), text("reduction", "add")).Output("y"),
		"elements of fewer lines": indexInput(matrix(), "i", 2, 4).Open("i", 1, "k").Input("u", 2, 4).Open("u", 1, "k").Node("y = ScatterElements x i u", integer("axis", 1), text("reduction", "max")).Output("y"),
		"reversed":                indexInput(matrix(), "l", 5).Open("l", 0, "m").Node("y = ReverseSequence x l").Output("y"),
		"one hot":                 indexInput(matrix(), "i", 4).Open("i", 0, "k").Node("d = Shape x", integer("end", 1)).Known("v", floats(-1, 2)).Node("h = OneHot i d v").Node("y = MatMul h x").Output("y"),
		"einsum":                  matrix().Input("z", 4, 5).Open("z", 0, "k").Open("z", 1, "m").Node("y = Einsum x z z", text("equation", "nm,km,kj->nj")).Output("y"),
		"einsum of an ellipsis":   matrix().Input("z", 3, 7, 1).Open("z", 1, "n").Node("y = Einsum x z", text("equation", "...,...->...")).Output("y"),
		"determinants":            modeltest.New().Opset(18).Input("x", 4, 3, 3).Open("x", 0, "k").Node("y = Det x").Output("y"),
		"transforms":              modeltest.New().Opset(18).Input("x", 4, 8, 2).Open("x", 0, "k").Node("y = DFT x").Output("y"),
		"frames":                  modeltest.New().Opset(18).Input("x", 2, 9).Open("x", 1, "n").Known("s", array.Scalar(array.Int64, 2)).Known("l", array.Scalar(array.Int64, 3)).Node("f = STFT x s _ l").Node("y = ReduceSum f one").Known("one", numbers(1)).Output("y"),
		"cache":                   matrixCache(indexInput(modeltest.New().Opset(24).Input("x", 2, 7, 3).Open("x", 1, "n"), "i", 2)).Output("y"),
		"ring":                    matrixCache(indexInput(modeltest.New().Opset(24).Input("x", 2, 7, 3).Open("x", 0, "k").Open("x", 1, "n"), "i", 2).Open("i", 0, "k"), text("mode", "circular")).Output("y"),
		"long sums":               long().Known("a", array.Scalar(array.Int64, 1)).Node("r = Round x").Node("y = CumSum r a").Output("y"),
		"long sums from the end":  long().Known("a", array.Scalar(array.Int64, 1)).Node("r = Round x").Node("y = CumSum r a", integer("reverse", 1), integer("exclusive", 1)).Output("y"),
		"long argmax":             long().Node("y = ArgMax x", integer("axis", 1)).Output("y"),
		"best of many":            long().Known("k", numbers(3)).Node("v i = TopK x k").Output("v", "i"),
		"least of many":           long().Known("k", numbers(3)).Node("r = Round x").Node("v i = TopK r k", integer("largest", 0)).Output("v", "i"),
		"share of many":           long().Known("c", numbers(200)).Node("h = Shape x", integer("start", 1)).Node("q = Div h c").Node("v i = TopK x q").Node("y = ReduceSum v").Node("z = ReduceSum i").Output("y", "z"),
	} {
		t.Run(name, func(t *testing.T) {
			open, sizes := map[string]frontend.Bounds{}, []map[string]int64{{}, {}, {}, {}}
			for _, in := range m.Graph.Inputs {
				for _, d := range in.Shape {
					switch d.Param {
					case "":
					case "long":
						open[d.Param] = frontend.Bounds{Min: 3, Max: 1100}
						sizes[0][d.Param], sizes[1][d.Param], sizes[2][d.Param], sizes[3][d.Param] = 3, 1024, 1025, 1100
					case "k":
						open[d.Param] = frontend.Bounds{Min: 0, Max: 4}
						sizes[0][d.Param], sizes[1][d.Param], sizes[2][d.Param], sizes[3][d.Param] = 1, 3, 4, 2
					default:
						open[d.Param] = frontend.Bounds{Min: 4, Max: 9}
						sizes[0][d.Param], sizes[1][d.Param], sizes[2][d.Param], sizes[3][d.Param] = 4, 5, 9, 7
					}
				}
			}
			modeltest.CheckOpen(t, m, open, sizes...)
		})
	}
}

// matrixCache writes parts of a cache.
func matrixCache(s modeltest.Model, attributes ...*onnx.Attribute) modeltest.Model {
	s = s.Input("u", 2, 2, 3)
	s.Graph.Inputs[2].Shape[0] = s.Graph.Inputs[0].Shape[0]
	return s.Node("y = TensorScatter x u i", attributes...)
}

// TestIndicesThatNeedNotFitAreRefused: the error names the extents and a remedy.
func TestIndicesThatNeedNotFitAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		model *onnx.Model
		want  string
	}{
		"more than there may be": {openMatrix("n", "").Known("k", numbers(3)).Node("v i = TopK x k", modeltest.Int("axis", 0)).Output("v"), "3 elements of n on axis 0 are wanted, which is not known to fit: fix the extents by --shape"},
		"different extents":      {openMatrix("n", "m").Node("y = Einsum x", text("equation", "ii->i")).Output("y"), `label 'i' has the extents n and m, which is not known to fit: fix the extents by --shape`},
		"condition too long":     {openMatrix("n", "").Known("c", bools(true, true, true)).Node("y = Compress x c", modeltest.Int("axis", 0)).Output("y"), "does not fit n elements, which is not known to fit: fix the extents by --shape"},
		"transform":              {modeltest.New().Opset(18).Input("x", 2, 7, 1).Open("x", 1, "n").Node("y = DFT x").Output("y"), "axis 1 of input f32[2 n 1] is open"},
		"known index":            {openMatrix("n", "").Known("i", numbers(2)).Node("y = Gather x i").Output("y"), "index 2 is outside of -2..1, which is not known to fit: fix the extents by --shape"},
	} {
		t.Run(name, func(t *testing.T) {
			open := map[string]frontend.Bounds{"n": {Min: 2, Max: 9}, "m": {Min: 2, Max: 9}}
			for name := range open {
				if !slices.ContainsFunc(c.model.Graph.Inputs[0].Shape, func(d onnx.Dim) bool { return d.Param == name }) {
					delete(open, name)
				}
			}
			_, err := frontend.Import(c.model, frontend.Options{Open: open})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
