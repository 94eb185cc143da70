package codegen

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// convWorkload returns a 3x3 convolution over NHWC with bias and ReLU, padded by a stage of its own.
func convWorkload(t testing.TB, size, in, out int64) *expr.Workload {
	d := array.Float32
	x, w := expr.NewInput("x", d, 1, size, size, in), expr.NewConstant("w", d, out, in, 3, 3)
	bias := expr.NewConstant("b", d, out)
	pad := expr.Compute("pad", []int64{1, size + 2, size + 2, in}, func(i []expr.Expr) expr.Expr {
		h, v := expr.SubE(i[1], expr.I(1)), expr.SubE(i[2], expr.I(1))
		ok := expr.Bin(expr.And, expr.InRange(h, 0, size), expr.InRange(v, 0, size))
		return expr.Sel(ok, x.At(i[0], h, v, i[3]), expr.Zero(d))
	})
	conv := expr.ReduceOver("conv", expr.Sum, []int64{1, size, size, out}, []int64{3, 3, in}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(pad.At(i[0], expr.AddE(i[1], r[0]), expr.AddE(i[2], r[1]), r[2]), w.At(i[3], r[2], r[0], r[1]))
	})
	act := expr.Compute("act", conv.Shape, func(i []expr.Expr) expr.Expr {
		return expr.MaxE(expr.AddE(conv.At(i...), bias.At(i[3])), expr.Zero(d))
	})
	workload, err := expr.NewWorkload([]*expr.Tensor{act})
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

// tiledConv computes pixels x vectors of 16 channels at a time in registers.
func tiledConv(t testing.TB, w *expr.Workload, pixels, vectors int64) *schedule.Schedule {
	const pad, conv, act = 0, 1, 2
	s := schedule.New(w)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	split := func(stage, it int, factor int64) (int, int) {
		o, i, err := s.Split(stage, it, factor, schedule.Peel)
		check(err)
		return o, i
	}
	tile := 16 * vectors
	check(s.Pack(0, []schedule.PackDim{{Dim: 0, Factor: tile}, {Dim: 2}, {Dim: 3}, {Dim: 1}, {Dim: 0, Factor: tile, Inner: true}}))
	xo, xi := split(act, 2, pixels)
	co, ci := split(act, 3, tile)
	check(s.Reorder(act, 0, co, 1, xo, xi, ci))
	fused, err := s.Fuse(act, 0, co)
	check(err)
	check(s.Parallel(act, fused))
	check(s.ComputeAt(conv, act, xo))
	check(s.Reorder(conv, 0, 1, 4, 5, 6, 2, 3))
	check(s.Unroll(conv, 2))
	check(s.Vectorize(conv, 3))
	check(s.Unroll(act, xi))
	check(s.Vectorize(act, ci))
	check(s.Vectorize(pad, 3))
	return s
}

func BenchmarkModule(b *testing.B) {
	pass.Verify = false // as in releases
	defer func() { pass.Verify = true }()
	w := convWorkload(b, 28, 128, 128)
	v4 := modes[0].description(b)
	s := tiledConv(b, w, 14, 2)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Module(w, []backend.Kernel{{ID: "k", Schedule: s}}, v4); err != nil {
			b.Fatal(err)
		}
	}
}
