package codegen

import (
	"maps"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	model "github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// bytesModel returns a model whose input x and weights w are bytes, with zero points of the same types and scales.
func bytesModel(data, weights array.DType, x, w []int64) model.Model {
	filled := func(d array.DType, step int64, shape ...int64) *array.Array {
		a := array.New(d, shape...)
		for i := range a.Len() {
			a.SetInt(i, i*step%101+3)
		}
		return a
	}
	m := model.New()
	in := model.Info("x", x)
	in.DType = data
	m.Graph.Inputs = append(m.Graph.Inputs, in)
	return m.Known("w", filled(weights, 37, w...)).Known("xz", filled(data, 0)).Known("wz", filled(weights, 0)).Known("yz", filled(array.Uint8, 0)).
		Known("xs", model.Wave(0.02, 0)).Known("ws", model.Wave(0.01, 0)).Known("ys", model.Wave(0.1, 0))
}

// operatorsInSquares returns integer operators whose products have enough terms.
func operatorsInSquares() map[string]*onnx.Model {
	const i8, u8 = array.Int8, array.Uint8
	rows, columns, image := []int64{10, 32}, []int64{32, 20}, []int64{2, 16, 7, 7}
	return map[string]*onnx.Model{
		"MatMulInteger":               bytesModel(u8, i8, rows, columns).Node("y = MatMulInteger x w xz").Output("y"),
		"MatMulInteger, both signed":  bytesModel(i8, i8, rows, columns).Node("y = MatMulInteger x w xz").Output("y"),
		"MatMulInteger, other signs":  bytesModel(i8, u8, rows, columns).Node("y = MatMulInteger x w").Output("y"),
		"MatMulInteger, zero points":  bytesModel(u8, u8, rows, columns).Node("y = MatMulInteger x w xz wz").Output("y"),
		"MatMulInteger, a batch":      bytesModel(u8, i8, []int64{3, 5, 24}, []int64{24, 20}).Node("y = MatMulInteger x w").Output("y"),
		"QLinearMatMul":               bytesModel(u8, i8, rows, columns).Node("y = QLinearMatMul x xs xz w ws wz ys yz").Output("y"),
		"ConvInteger":                 bytesModel(u8, i8, image, []int64{24, 16, 3, 3}).Node("y = ConvInteger x w xz", model.Same3x3).Output("y"),
		"QLinearConv":                 bytesModel(u8, i8, image, []int64{24, 16, 3, 3}).Node("y = QLinearConv x xs xz w ws wz ys yz", model.Same3x3).Output("y"),
		"QLinearConv, groups":         bytesModel(u8, i8, image, []int64{24, 8, 3, 3}).Node("y = QLinearConv x xs xz w ws wz ys yz", model.Int("group", 2)).Output("y"),
		"QLinearConv, three channels": bytesModel(u8, i8, []int64{1, 3, 9, 9}, []int64{16, 3, 3, 3}).Node("y = QLinearConv x xs xz w ws wz ys yz").Output("y"),
		"QLinearConv, strides":        bytesModel(u8, i8, image, []int64{18, 16, 1, 1}).Node("y = QLinearConv x xs xz w ws wz ys yz", model.Ints("strides", 2, 2)).Output("y"),
	}
}

// TestOperatorsInSquaresAreRight checks that the instructions compute their kernels, exactly for integers.
func TestOperatorsInSquaresAreRight(t *testing.T) {
	var cases []kerneltest.Case
	add := func(w *expr.Workload) (squares bool) {
		s, ok := inSquares(sketch.New(w, squareMode.description(t), schedule.Fast))
		if !ok {
			return false
		}
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, kerneltest.Case{Workload: w, Schedule: made, Workers: 2, Args: kerneltest.Fill(w, 1)})
		return true
	}
	models := operatorsInSquares()
	for _, name := range slices.Sorted(maps.Keys(models)) { // in the same order in every run, for the cache of programs
		found := false
		for _, task := range model.Import(t, models[name]).Tasks {
			found = add(task.Workload) || found
		}
		if !found {
			t.Errorf("%s has no squares", name)
		}
	}
	narrow := 0
	for _, w := range model.NarrowTasks(t, array.BFloat16) {
		if add(w) {
			narrow++
		}
	}
	if narrow < 5 {
		t.Errorf("%d products of bfloat16 have squares, want 5 at least", narrow)
	}
	checkCases(t, t, squareMode, cases)
}
