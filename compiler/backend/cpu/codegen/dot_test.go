package codegen

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// dotModes lists the modes whose targets have instructions for small integers that other modes lack.
var dotModes = []mode{
	{name: "vnni", target: "x86-64-v4", features: []string{"avx512vnni", "avx512vbmi"}, compiler: "clang-19", flags: []string{"-O1"}},
	{name: "dotprod", target: "arm64", features: []string{"dotprod", "i8mm"}, compiler: "clang-19",
		flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"},
}

// pairModes does the same for pairs of bfloat16.
var pairModes = []mode{
	{name: "avx512bf16", target: "x86-64-v4", features: []string{"avx512bf16"}, compiler: "clang-19", flags: []string{"-O1"}},
	{name: "avx512bf16 of gcc", target: "x86-64-v4", features: []string{"avx512bf16"}, compiler: "gcc", flags: []string{"-O1"}},
	{name: "bf16", target: "arm64", features: []string{"bf16"}, compiler: "clang-19",
		flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"},
}

// drawPointOf draws a workload and a point of its space.
func drawPointOf(t *rapid.T, draw func(*rapid.T) *expr.Workload, d *target.Target, numerics schedule.Numerics) kerneltest.Case {
	w := draw(t).Merge()
	s := sketch.New(w, d, numerics)
	p := s.Default()
	if q, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))); ok && rapid.Bool().Draw(t, "random") {
		p = q
	}
	return kerneltest.Case{Workload: w, Schedule: applied(t, s, p), Workers: rapid.IntRange(1, 2).Draw(t, "workers"), Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
}

// TestProductsOfSmallIntegersAreExact checks that such products are exact with every kind of instruction.
func TestProductsOfSmallIntegersAreExact(t *testing.T) {
	checkDrawn(t, quick(slices.Concat(modes, dotModes, []mode{sve}), "vnni", "dotprod"), 6, func(t *rapid.T, d *target.Target) kerneltest.Case {
		return drawPointOf(t, kerneltest.DrawIntegerProduct, d, schedule.Strict)
	})
}

// TestWindowsOfBytesAreExact checks depthwise convolutions, whose terms are interleaved in registers if instructions
// multiply bytes.
func TestWindowsOfBytesAreExact(t *testing.T) {
	vnni := []mode{
		{name: "vnni of gcc", target: "x86-64-v4", features: []string{"avx512vnni", "avx512vbmi"}, compiler: "gcc", flags: []string{"-O1"}},
		{name: "vnni without vbmi", target: "x86-64-v4", features: []string{"avx512vnni"}, compiler: "clang-19", flags: []string{"-O1"}},
		{name: "avxvnni", target: "x86-64-v3", features: []string{"avxvnni"}, compiler: "clang-19", flags: []string{"-O1"}},
	}
	checkDrawn(t, quick(slices.Concat(modes[1:2], dotModes, vnni), "avxvnni", "dotprod"), 10, func(t *rapid.T, d *target.Target) kerneltest.Case {
		return drawPointOf(t, kerneltest.DrawByteWindows, d, schedule.Strict)
	})
}

// TestProductsOfNarrowFloatsKeepTheMeaning compares products with the evaluator, for every 16-bit storage of operands
// and every kind of instruction.
func TestProductsOfNarrowFloatsKeepTheMeaning(t *testing.T) {
	checkDrawn(t, quick(slices.Concat(modes, pairModes, []mode{sve}), "avx512bf16", "bf16"), 6, func(t *rapid.T, d *target.Target) kerneltest.Case {
		return drawPointOf(t, kerneltest.DrawNarrowProduct, d, schedule.Fast)
	})
}

// TestProductsWithWeightsInBlocksKeepTheMeaning covers all codes, scales and zero points, with data quantised where a
// machine gains by it.
func TestProductsWithWeightsInBlocksKeepTheMeaning(t *testing.T) {
	checkDrawn(t, quick(slices.Concat(modes[1:2], dotModes), "vnni"), 2, func(t *rapid.T, d *target.Target) kerneltest.Case {
		numerics := rapid.SampledFrom([]schedule.Numerics{schedule.Strict, schedule.Fast}).Draw(t, "numerics")
		return drawPointOf(t, kerneltest.DrawBlockProduct, d, numerics)
	})
}

// TestExtremesOfSmallIntegersDoNotSaturate checks pairs of products of the largest magnitudes, which pmaddubsw would
// saturate.
func TestExtremesOfSmallIntegersDoNotSaturate(t *testing.T) {
	w := integerMatMul(t, array.Uint8, array.Int8)
	args := kerneltest.Fill(w, 1)
	for i := range args[0].Len() {
		args[0].SetInt(i, 255)
	}
	for i := range args[1].Len() {
		args[1].SetInt(i, 127-255*(i/24%2))
	}
	for _, m := range quick(slices.Concat(modes, dotModes), "avx512", "dotprod") {
		t.Run(m.name, func(t *testing.T) {
			s := sketch.New(w, m.description(t), schedule.Strict)
			applied, err := s.Apply(s.Default())
			if err != nil {
				t.Fatal(err)
			}
			checkCases(t, t, m, []kerneltest.Case{{Workload: w, Schedule: applied, Workers: 1, Args: args}})
		})
	}
}

// integerMatMul returns a product of integers that is accumulated in 32 bits.
func integerMatMul(t *testing.T, data, weights array.DType) *expr.Workload {
	t.Helper()
	return matMul(t, data, weights, array.Int32)
}

// matMul returns a product of [6,32] by constant [32,24], accumulated in another type.
func matMul(t *testing.T, data, weights, added array.DType) *expr.Workload {
	t.Helper()
	a, b := expr.NewInput("a", data, 6, 32), expr.NewConstant("b", weights, 32, 24)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("mm", expr.Sum, []int64{6, 24}, []int64{32}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(added, a.At(i[0], r[0])), expr.To(added, b.At(r[0], i[1])))
	})})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
