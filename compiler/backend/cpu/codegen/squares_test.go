package codegen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
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
	"pgregory.net/rapid"
)

// squareMode compiles kernels for a processor that multiplies two rows by two columns of bytes and of bfloat16.
var squareMode = mode{name: "i8mm", target: "arm64", features: []string{"dotprod", "i8mm", "bf16"}, compiler: "clang-19",
	flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"}

// plainSquares lists modes without such instructions, in which plain C computes the same schedules.
var plainSquares = []mode{
	{name: "without", target: "arm64", features: []string{"dotprod"}, compiler: "clang-19",
		flags: []string{"-O1", "-static", "--ld-path=/usr/bin/ld.lld-19"}, emulator: "qemu-aarch64"},
	{name: "sanitized", target: "x86-64-v3", compiler: "clang-19", flags: []string{"-O1", "-g1", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=undefined", "-fno-sanitize=alignment"}},
	{name: "gcc", target: "x86-64-v3", compiler: "gcc", flags: []string{"-O1"}},
}

// inSquares returns the part of a space that multiplies squares. Without one it returns the whole space and false.
func inSquares(s *searchspace.Space) (part *searchspace.Space, ok bool) {
	for _, a := range s.Algorithms() {
		if strings.HasPrefix(a.Name, "MMLA") {
			return s.Of(a), true
		}
	}
	return s, false
}

// fourLanes matches the name of a function for four lanes outside squares.
var fourLanes = regexp.MustCompile(`tilth_dot_\w+_x4_\dterms`)

// drawSquares draws a product of bytes or of bfloat16, as it is or in groups.
func drawSquares(t *rapid.T) *expr.Workload {
	draws := []func(*rapid.T) *expr.Workload{kerneltest.DrawTiles, kerneltest.DrawIntegerProduct, kerneltest.DrawNarrowProduct, kerneltest.DrawGroups}
	return draws[rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "kind")](t).Merge()
}

// drawSquarePoint draws a workload and, if possible, a point of its space that multiplies squares, for a processor
// with the instructions. Any mode may run it.
func drawSquarePoint(t *rapid.T, d *target.Target) (c kerneltest.Case, squares bool) {
	w := drawSquares(t)
	s, squares := inSquares(sketch.New(w, d, schedule.Fast))
	p := s.Default()
	if q, ok := s.Random(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))); ok && rapid.IntRange(0, 3).Draw(t, "random") > 0 {
		p = q
	}
	return kerneltest.Case{Workload: w, Schedule: applied(t, s, p), Workers: rapid.IntRange(1, 2).Draw(t, "workers"),
		Args: kerneltest.Fill(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}, squares
}

// TestProductsOfSquaresAreRight covers all types, shapes and points of the space, for compilers with and without the
// instructions. Integers are exact.
func TestProductsOfSquaresAreRight(t *testing.T) {
	squares := squareMode.description(t)
	checkDrawn(t, quick(append([]mode{squareMode, sve}, plainSquares...), "i8mm", "gcc"), 8, func(t *rapid.T, on *target.Target) kerneltest.Case {
		if !on.CPU.Has("i8mm") {
			on = squares
		}
		c, _ := drawSquarePoint(t, on)
		return c
	})
}

// TestPointsOfSquaresMultiplySquares checks that points with the algorithm use the instructions for all vectors of
// four sums.
func TestPointsOfSquaresMultiplySquares(t *testing.T) {
	d, seen := squareMode.description(t), 0
	rapid.Check(t, func(t *rapid.T) {
		for range 40 {
			c, squares := drawSquarePoint(t, d)
			if !squares {
				continue
			}
			seen++
			source, err := Module(c.Workload, []backend.Kernel{{ID: "k", Schedule: c.Schedule}}, d)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(source, "  tilth_squares_") {
				t.Fatalf("no squares are multiplied\n%s", c.Text())
			}
			if left := fourLanes.FindString(source); left != "" {
				t.Fatalf("four lanes are multiplied by plain arithmetic, %s\n%s", left, c.Text())
			}
		}
	})
	if seen == 0 {
		t.Error("no workload has squares")
	}
}

// squareProducts lists products by constants of the types that the instructions multiply.
var squareProducts = []struct{ data, weights array.DType }{
	{array.Int8, array.Int8}, {array.Uint8, array.Uint8}, {array.Uint8, array.Int8}, {array.Int8, array.Uint8},
	{array.BFloat16, array.BFloat16},
}

// squareProduct returns a product of 64 x 64 x 64 elements.
func squareProduct(t *testing.T, data, weights array.DType) *expr.Workload {
	t.Helper()
	added := array.Int32
	if data.IsFloat() {
		added = array.Float32
	}
	w, err := expr.Parse(fmt.Sprintf("tilth-workload 1\ninput t0 %[1]v[64,64]\nconstant t1 %[2]v[64,64]\n"+
		"sum t2 %[3]v[64,64] over 64 = (mul (cast %[3]v [t0 i0 r0]) (cast %[3]v [t1 r0 i1]))\noutput t2\n", data, weights, added))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestSquaresOfBFloat16NeedFastNumerics exists because their sums are not rounded like those of float32.
func TestSquaresOfBFloat16NeedFastNumerics(t *testing.T) {
	d := squareMode.description(t)
	for _, c := range squareProducts {
		for _, numerics := range []schedule.Numerics{schedule.Strict, schedule.Default, schedule.Fast} {
			_, ok := inSquares(sketch.New(squareProduct(t, c.data, c.weights), d, numerics))
			if want := !c.data.IsFloat() || numerics == schedule.Fast; ok != want {
				t.Errorf("%v by %v, %v: squares %v", c.data, c.weights, numerics, ok)
			}
		}
	}
}

// TestExtremesOfSquaresDoNotSaturate accumulates products of the largest magnitudes.
func TestExtremesOfSquaresDoNotSaturate(t *testing.T) {
	d := squareMode.description(t)
	var cases []kerneltest.Case
	for _, c := range squareProducts[:4] {
		w := squareProduct(t, c.data, c.weights)
		args := kerneltest.Fill(w, 1)
		for _, a := range args {
			largest := int64(-128)
			if a.DType == array.Uint8 {
				largest = 255
			}
			for i := range a.Len() {
				a.SetInt(i, largest)
			}
		}
		s, ok := inSquares(sketch.New(w, d, schedule.Strict))
		if !ok {
			t.Fatalf("%v by %v has no squares", c.data, c.weights)
		}
		made, err := s.Apply(s.Default())
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: args})
	}
	checkCases(t, t, squareMode, cases)
}
