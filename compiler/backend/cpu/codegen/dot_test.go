package codegen

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
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

// TestProductsOfNeighboursAreInstructions checks the code of the default schedule of direct sums for machines that
// need not be available.
func TestProductsOfNeighboursAreInstructions(t *testing.T) {
	const u8, i8, bf16 = array.Uint8, array.Int8, array.BFloat16
	for _, c := range []struct {
		name, target  string
		features      []string
		data, weights array.DType
		want          string
	}{
		{"AVX2", "x86-64-v3", nil, u8, i8, "vpmaddwd"},
		{"AVX-512", "x86-64-v4", nil, i8, i8, "vpmaddwd"},
		{"AVX-VNNI", "x86-64-v3", []string{"avxvnni"}, u8, i8, "vpdpbusd"},
		{"AVX-512 VNNI", "x86-64-v4", []string{"avx512vnni"}, u8, i8, "vpdpbusd"},
		{"AVX-512 VNNI, both signed", "x86-64-v4", []string{"avx512vnni"}, i8, i8, "vpdpwssd"},
		{"arm64 dot products", "arm64", []string{"dotprod"}, i8, i8, "sdot"},
		{"arm64 dot products, both unsigned", "arm64", []string{"dotprod"}, u8, u8, "udot"},
		{"arm64 dot products, mixed signs", "arm64", []string{"dotprod", "i8mm"}, u8, i8, "usdot"},
		{"AVX-512 BF16", "x86-64-v4", []string{"avx512bf16"}, bf16, bf16, "vdpbf16ps"},
		{"arm64 BF16", "arm64", []string{"bf16"}, bf16, bf16, "bfdot"},
		{"SVE", "a64fx", nil, i8, i8, "sdot"},
		{"SVE, mixed signs", "neoverse-v1", nil, u8, i8, "usdot"},
		{"SVE BF16", "neoverse-v1", nil, bf16, bf16, "bfdot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mode{target: c.target, features: c.features}.description(t)
			added := array.Int32
			if c.data.IsFloat() {
				added = array.Float32
			}
			w := matMul(t, c.data, c.weights, added)
			source := moduleOf(t, sketch.New(w, d, schedule.Strict).Of(searchspace.Direct))
			for compiler, flags := range map[string][]string{"clang-19": d.CPU.ClangFlags(), "gcc": d.CPU.GCCFlags()} {
				if compiler == "gcc" && d.Arch() != "x86-64" {
					continue
				}
				text := assembly(t, compiler, source, flags)
				if !slices.Contains(strings.Fields(text), c.want) {
					t.Errorf("there is no %s of %s in\n%s", c.want, compiler, text)
				}
			}
		})
	}
}

// TestVectorsAreInRegistersOfSVE checks that clang keeps vectors in SVE registers and splits none.
func TestVectorsAreInRegistersOfSVE(t *testing.T) {
	a, b := expr.NewInput("a", array.Float32, 6, 64), expr.NewConstant("b", array.Float32, 64, 32)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("mm", expr.Sum, []int64{6, 32}, []int64{64}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"neoverse-v1", "a64fx"} {
		d := mode{target: name}.description(t)
		text := assembly(t, "clang-19", defaultModule(t, w, d), append(d.CPU.ClangFlags(), "-ffp-contract=off"))
		if !regexp.MustCompile(`\tfm(la|ad)\tz\d+\.s`).MatchString(text) || regexp.MustCompile(`\tfm(la|ad)\tv\d+\.4s`).MatchString(text) {
			t.Errorf("%s: no multiply-adds of whole registers in\n%s", name, text)
		}
	}
}

// blockProduct returns a product of [2,64] by 64 columns of codes with scales for blocks of 32.
func blockProduct(t *testing.T, nibbles bool) *expr.Workload {
	t.Helper()
	rows := int64(64)
	if nibbles {
		rows = 32
	}
	x, codes := expr.NewInput("x", array.Float32, 2, 64), expr.NewConstant("codes", array.Uint8, rows, 64)
	scale := expr.NewConstant("scale", array.Float32, 2, 64)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("product", expr.Sum, []int64{2, 64}, []int64{64}, func(i, r []expr.Expr) expr.Expr {
		var code expr.Expr
		if nibbles {
			code = expr.Nibble(codes.At(expr.Bin(expr.FloorDiv, r[0], expr.I(2)), i[1]), r[0])
		} else {
			code = codes.At(r[0], i[1])
		}
		value := expr.SubE(expr.To(array.Float32, code), expr.F(array.Float32, 8))
		return expr.MulE(x.At(i[0], r[0]), expr.MulE(value, scale.At(expr.Bin(expr.FloorDiv, r[0], expr.I(32)), i[1])))
	})})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestInt4CodesAreLookedUpByInstructions checks that codes are looked up in a table, or multiplied as bytes with fast
// numerics, on machines that need not be available.
func TestInt4CodesAreLookedUpByInstructions(t *testing.T) {
	for _, c := range []struct {
		name, target string
		features     []string
		nibbles      bool
		numerics     schedule.Numerics
		want, not    string
	}{
		{"table", "x86-64-v4", nil, true, schedule.Strict, "vpermps", "vcvtdq2ps"},
		{"AVX2", "x86-64-v3", nil, true, schedule.Fast, "vpmaddubsw", "vpermps"},
		{"AVX2, bytes", "x86-64-v3", nil, false, schedule.Fast, "vcvtdq2ps", "vpmaddubsw"},
		{"AVX-512 VNNI", "x86-64-v4", []string{"avx512vnni"}, true, schedule.Fast, "vpdpbusd", "vpmaddubsw"},
		{"AVX-512 VNNI, bytes", "x86-64-v4", []string{"avx512vnni"}, false, schedule.Fast, "vpdpbusd", "vpmaddubsw"},
		{"arm64 dot products", "arm64", []string{"dotprod"}, true, schedule.Fast, "sdot", "usdot"},
		{"arm64 dot products, bytes", "arm64", []string{"dotprod", "i8mm"}, false, schedule.Fast, "usdot", "udot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mode{target: c.target, features: c.features}.description(t)
			text := assembly(t, "clang-19", moduleWithin(t, blockProduct(t, c.nibbles), d, c.numerics), d.CPU.ClangFlags())
			if !strings.Contains(text, "\t"+c.want) || strings.Contains(text, "\t"+c.not) {
				t.Errorf("there is no %s, or there is %s, in\n%s", c.want, c.not, text)
			}
		})
	}
}

// defaultModule returns the source of a workload's default schedule.
func defaultModule(t *testing.T, w *expr.Workload, d *target.Target) string {
	t.Helper()
	return moduleWithin(t, w, d, schedule.Strict)
}

// moduleWithin returns the source of the default schedule that numerics allow.
func moduleWithin(t *testing.T, w *expr.Workload, d *target.Target, numerics schedule.Numerics) string {
	t.Helper()
	return moduleOf(t, sketch.New(w, d, numerics))
}

// moduleOf returns the source of a space's default schedule.
func moduleOf(t *testing.T, s *searchspace.Space) string {
	t.Helper()
	applied, err := s.Apply(s.Default())
	if err != nil {
		t.Fatal(err)
	}
	source, err := Module(s.Workload, []backend.Kernel{{ID: "k", Schedule: applied}}, s.Target)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// assembly returns the output of a compiler, or that of an earlier run with the same source.
func assembly(t *testing.T, compiler, source string, flags []string) string {
	t.Helper()
	file, err := toolchaintest.Program(t, compiler, append(flags, "-std=gnu11", "-O1", "-w", "-S"), source)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
