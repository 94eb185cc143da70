package codegen

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"pgregory.net/rapid"
)

// dotModes are the modes whose targets have instructions for products of small integers that the other modes' targets
// have not.
var dotModes = []mode{
	{name: "vnni", target: "x86-64-v4", features: []string{"avx512vnni"}, compiler: "clang-19", flags: []string{"-O1"}},
	{name: "dotprod", target: "arm64", features: []string{"dotprod", "i8mm"}, compiler: "clang-19",
		flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"},
}

// integerProduct is a convolution or a matrix product of small integers, requantised as quantised models do.
func (g *dag) integerProduct() {
	small := []array.DType{array.Uint8, array.Int8, array.Int8, array.Int16}
	data, weights := rapid.SampledFrom(small).Draw(g.t, "data"), rapid.SampledFrom(small).Draw(g.t, "weights")
	size, kernel := g.int("size", 3, 7), g.int("kernel", 1, 3)
	in, out := g.int("in", 1, 3)*rapid.SampledFrom([]int64{1, 2, 4, 4, 8}).Draw(g.t, "channels"), g.int("out", 1, 40)
	pad := kernel / 2
	x, w := g.source(data, false, size, size, in), g.source(weights, rapid.IntRange(0, 5).Draw(g.t, "constant") > 0, kernel, kernel, in, out)
	to := size + 2*pad - kernel + 1
	padded := x
	if pad > 0 || rapid.Bool().Draw(g.t, "copied") {
		padded = g.add(expr.Compute("pad", []int64{size + 2*pad, size + 2*pad, in}, func(i []expr.Expr) expr.Expr {
			at := []expr.Expr{expr.SubE(i[0], expr.I(pad)), expr.SubE(i[1], expr.I(pad)), i[2]}
			return expr.Sel(inside(at, x.Shape), x.At(at...), expr.F(data, 3))
		}))
	}
	sum := g.add(expr.ReduceOver("sum", expr.Sum, []int64{to, to, out}, []int64{kernel, kernel, in}, func(i, r []expr.Expr) expr.Expr {
		a := padded.At(expr.AddE(i[0], r[0]), expr.AddE(i[1], r[1]), r[2])
		return expr.MulE(expr.To(array.Int32, a), expr.To(array.Int32, w.At(r[0], r[1], r[2], i[2])))
	}))
	scale, f := g.source(array.Float32, true, out), array.Float32
	to8 := rapid.SampledFrom([]array.DType{array.Uint8, array.Int8}).Draw(g.t, "to")
	low, high := expr.To(f, expr.Lowest(to8)), expr.To(f, expr.Highest(to8))
	g.add(expr.Compute("requantised", sum.Shape, func(i []expr.Expr) expr.Expr {
		scaled := expr.MulE(expr.To(f, sum.At(i...)), scale.At(i[2]))
		return expr.To(to8, expr.MinE(expr.MaxE(expr.AddE(expr.Un(expr.Round, scaled), expr.F(f, 5)), low), high))
	}))
}

// drawIntegerPoint draws a product of small integers and a point of its space.
func drawIntegerPoint(t *rapid.T, d *target.Target) testCase {
	g := &dag{t: t}
	g.integerProduct()
	w, err := expr.NewWorkload(g.tensors[len(g.tensors)-1:])
	if err != nil {
		t.Fatal(err)
	}
	w = w.Merge()
	s := sketch.New(w, d, schedule.Strict)
	p := s.Default()
	if q, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))); ok && rapid.Bool().Draw(t, "random") {
		p = q
	}
	return testCase{workload: w, schedule: applied(t, s, p), workers: rapid.IntRange(1, 2).Draw(t, "workers"), args: fillArgs(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
}

// TestProductsOfSmallIntegersAreExact: whatever instructions a machine has for them, such products come out to the
// last bit.
func TestProductsOfSmallIntegersAreExact(t *testing.T) {
	for _, m := range slices.Concat(modes, dotModes) {
		t.Run(m.name, func(t *testing.T) {
			d := m.description(t)
			draw := rapid.Custom(func(t *rapid.T) testCase { return drawIntegerPoint(t, d) })
			rapid.Check(t, func(rt *rapid.T) {
				checkCases(t, rt, m, rapid.SliceOfN(draw, 1, 6).Draw(rt, "cases"))
			})
		})
	}
}

// TestExtremesOfSmallIntegersDoNotSaturate: pairs of products of the largest magnitudes are what pmaddubsw would
// saturate.
func TestExtremesOfSmallIntegersDoNotSaturate(t *testing.T) {
	w := integerMatMul(t, array.Uint8, array.Int8)
	args := fillArgs(w, 1)
	for i := range args[0].Len() {
		args[0].SetInt(i, 255)
	}
	for i := range args[1].Len() {
		args[1].SetInt(i, 127-255*(i/24%2))
	}
	for _, m := range slices.Concat(modes, dotModes) {
		t.Run(m.name, func(t *testing.T) {
			s := sketch.New(w, m.description(t), schedule.Strict)
			applied, err := s.Apply(s.Default())
			if err != nil {
				t.Fatal(err)
			}
			checkCases(t, t, m, []testCase{{workload: w, schedule: applied, workers: 1, args: args}})
		})
	}
}

// integerMatMul is a product of [6,32] by constant [32,24].
func integerMatMul(t *testing.T, data, weights array.DType) *expr.Workload {
	a, b := expr.NewInput("a", data, 6, 32), expr.NewConstant("b", weights, 32, 24)
	w, err := expr.NewWorkload([]*expr.Tensor{expr.ReduceOver("mm", expr.Sum, []int64{6, 24}, []int64{32}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(array.Int32, a.At(i[0], r[0])), expr.To(array.Int32, b.At(r[0], i[1])))
	})})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestProductsOfSmallIntegersAreInstructions looks at what becomes of the default schedule on machines that are not at
// hand.
func TestProductsOfSmallIntegersAreInstructions(t *testing.T) {
	const u8, i8 = array.Uint8, array.Int8
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
	} {
		t.Run(c.name, func(t *testing.T) {
			d := mode{target: c.target, features: c.features}.description(t)
			w := integerMatMul(t, c.data, c.weights)
			s := sketch.New(w, d, schedule.Strict)
			applied, err := s.Apply(s.Default())
			if err != nil {
				t.Fatal(err)
			}
			source, err := Module(w, []backend.Kernel{{ID: "k", Schedule: applied}}, d)
			if err != nil {
				t.Fatal(err)
			}
			if text := assembly(t, source, d); !strings.Contains(text, "\t"+c.want+"\t") && !strings.Contains(text, "\t"+c.want+" ") {
				t.Errorf("there is no %s in\n%s", c.want, text)
			}
		})
	}
}

func assembly(t *testing.T, source string, d *target.Target) string {
	file := filepath.Join(t.TempDir(), "k.c")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("clang-19", append(d.CPU.ClangFlags(), "-std=gnu11", "-O1", "-w", "-S", "-o", "-", file)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
