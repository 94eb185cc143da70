package aot

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/compiler/program"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/tolerance"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// TestWeightsInIntegersAreRightInPackages compares with the evaluator and, for fast numerics, within the error of
// 8-bit data. Constants have the size of codes and scales.
func TestWeightsInIntegersAreRightInPackages(t *testing.T) {
	tc, machine := toolchaintest.Native(t, 1)
	model := modeltest.New().Input("x", 5, 64).Known("many", array.FromFloat32([]float32{71})).Node("f = Mul x many").Node("at = Cast f", modeltest.Int("to", 7)).
		Known("w", modeltest.Wave(0, 1, 72, 64)).Constant("b", 80).Known("v", modeltest.Wave(0, 1, 64, 80)).Node("e = Gather w at").
		Node("m = ReduceMean e", modeltest.Ints("axes", 1), modeltest.Int("keepdims", 0)).Node("y = Gemm m v b").Output("y")
	inputs := map[string]*array.Array{"x": modeltest.Wave(0, 1, 5, 64)}
	programs := []*program.Program{quantisedProgram(t, model, 8), quantisedProgram(t, model, 4)}
	for level, tolerance := range map[schedule.Numerics]float64{schedule.Strict: 1e-5, schedule.Fast: 0.02} {
		o := Options{Target: machine, Toolchain: tc, Parallel: 2, Objects: openObjects(t, toolchaintest.Cache(t, "objects"))}
		outputs, err := RunOnce(t.Context(), programs, []map[string]*array.Array{inputs, inputs}, o, Defaults(machine, level))
		if err != nil {
			t.Fatal(err)
		}
		for k, p := range programs {
			evaluated, err := evaluate.Program(p, inputs)
			if err != nil {
				t.Fatal(err)
			}
			got, want := outputs[k]["y"], evaluated["y"]
			peak, off := 0.0, 0.0
			for i := range want.Len() {
				peak, off = max(peak, math.Abs(want.Float(i))), max(off, math.Abs(got.Float(i)-want.Float(i)))
			}
			if !(off <= tolerance*peak) {
				t.Errorf("%v, model %d: outputs are off by %g of their largest, %g", level, k, off, peak)
			}
		}
	}
	for k, codes := range []int{72*64 + 64*80, 72*64 + 64*80/2} {
		constants := 0
		for _, v := range programs[k].Values {
			if v.Data != nil {
				constants += len(v.Data.Data)
			}
		}
		if constants < codes || constants > codes+2048 {
			t.Errorf("model %d: constants take %d bytes, codes are %d of them", k, constants, codes)
		}
	}
}

// TestKernelsInIntegersAreRightInPackages compares direct and Winograd convolutions with the evaluator.
func TestKernelsInIntegersAreRightInPackages(t *testing.T) {
	tc, machine := toolchaintest.Native(t, 1)
	model := modeltest.New().Input("x", 1, 3, 25, 21).Known("k", modeltest.Wave(0, 1, 112, 3, 7, 7)).Constant("b", 112).
		Known("w", modeltest.Wave(0, 1, 112, 112, 3, 3)).Known("v", modeltest.Wave(0, 1, 48, 112, 3, 3)).Known("g", modeltest.Wave(0, 1, 160, 12, 3, 3)).
		Node("stem = Conv x k b", modeltest.Ints("strides", 2, 2), modeltest.Ints("pads", 3, 3, 3, 3)).Node("r = Relu stem").
		Node("c = Conv r w b", modeltest.Same3x3).Node("s = Add c r").Node("z = Relu s").
		Node("d = Conv z v", modeltest.Same3x3, modeltest.Ints("strides", 2, 2)).
		Node("y = Conv d g", modeltest.Ints("pads", 2, 2, 2, 2), modeltest.Ints("dilations", 2, 2), modeltest.Int("group", 4)).Output("y")
	inputs := map[string]*array.Array{"x": modeltest.Wave(0, 1, 1, 3, 25, 21)}
	p := quantisedProgram(t, model, 8)
	evaluated, err := evaluate.Program(p, inputs)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []schedule.Numerics{schedule.Strict, schedule.Default} {
		o := Options{Target: machine, Toolchain: tc, Parallel: 2, Objects: openObjects(t, toolchaintest.Cache(t, "objects"))}
		outputs, err := RunOnce(t.Context(), []*program.Program{p}, []map[string]*array.Array{inputs}, o, Defaults(machine, level))
		if err != nil {
			t.Fatal(err)
		}
		if off := tolerance.Relative(outputs[0]["y"], evaluated["y"]); !(off <= 1e-5) {
			t.Errorf("%v: outputs are off by %g of their largest", level, off)
		}
	}
}

func quantisedProgram(t *testing.T, m *onnx.Model, bits int64) *program.Program {
	t.Helper()
	p, err := frontend.Import(m, frontend.Options{Storage: array.Storage{WeightBits: bits}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
