package codegen

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/target"
)

// A multiply-add rounds once, while vmla of 32-bit arm rounds the product too.
var (
	fusedInstruction   = regexp.MustCompile(`(?m)^\s*v?fn?m(add|a|la|acc|ad)[\w.]*\s.*`)
	productInstruction = regexp.MustCompile(`(?m)^\s*(v?mul[ps]s|vmla\.f32|v?f?mul(\.f32|\.vv|\.vf|\.s)?\s+[vszqdf][at]?\d).*`)
	libraryFMA         = regexp.MustCompile(`(?m)\sfmaf?\b(@PLT)?$`)
)

// TestOnlyTheStepOfASumIsAMultiplyAdd compiles a product of matrices followed by a product and a sum. Sums of products
// use the instruction of the target, or none, but never the C library, and the operators after them are apart.
func TestOnlyTheStepOfASumIsAMultiplyAdd(t *testing.T) {
	a, b := expr.NewInput("a", array.Float32, 8, 64), expr.NewConstant("b", array.Float32, 64, 64)
	scale, shift := expr.NewConstant("scale", array.Float32, 64), expr.NewConstant("shift", array.Float32, 64)
	product := expr.ReduceOver("product", expr.Sum, []int64{8, 64}, []int64{64}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(a.At(i[0], r[0]), b.At(r[0], i[1]))
	})
	w, err := expr.NewWorkload([]*expr.Tensor{expr.Compute("y", []int64{8, 64}, func(i []expr.Expr) expr.Expr {
		return expr.AddE(expr.MulE(product.At(i...), scale.At(i[1])), shift.At(i[1]))
	})})
	if err != nil {
		t.Fatal(err)
	}
	for _, on := range []struct {
		target, compiler string
		fuses            bool
	}{
		{"x86-64-v4", "clang-19", true}, {"x86-64-v3", "gcc", true}, {"x86-64-v2", "clang-19", false}, {"x86-64-v2", "gcc", false},
		{"arm64", "clang-19", true}, {"arm64", "aarch64-linux-gnu-gcc", true}, {"neoverse-v1", "clang-19", true},
		{"arm32", "clang-19", false}, {"arm32", "arm-linux-gnueabihf-gcc", true}, {"riscv64", "clang-19", true},
		{"sifive-u74", "riscv64-linux-gnu-gcc", true}, {"cortex-m4", "clang-19", false}, {"cortex-m55", "clang-19", true},
		{"riscv32", "clang-19", true},
	} {
		t.Run(on.target+" "+on.compiler, func(t *testing.T) {
			d, err := target.Parse(on.target, 1)
			if slices.Contains(target.Boards(), on.target) {
				d, err = target.Board(on.target, "cpu", 1)
			}
			if err != nil {
				t.Fatal(err)
			}
			flags := d.CPU.ClangFlags()
			if strings.HasSuffix(on.compiler, "gcc") {
				flags = d.CPU.GCCFlags()
			}
			text := assembly(t, on.compiler, defaultModule(t, w, d), append(flags, "-ffp-contract=off", "-ffreestanding"))
			fused, products := fusedInstruction.FindAllString(text, -1), productInstruction.FindAllString(text, -1)
			if (len(fused) > 0) != on.fuses || len(products) == 0 || libraryFMA.MatchString(text) {
				t.Errorf("%d multiply-adds, %d products in\n%s", len(fused), len(products), text)
			}
		})
	}
}
