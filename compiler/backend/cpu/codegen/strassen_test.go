package codegen

import (
	"math/rand/v2"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/sketch"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
	"pgregory.net/rapid"
)

// drawProduct draws a product of matrices that Strassen's algorithm computes: any extents, either operand transposed,
// with or without what is before and after it, stored on the way or not.
func drawProduct(t *rapid.T) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float64}).Draw(t, "dtype")
	m, k, n := g.int("rows", 2, 40), g.int("inner", 2, 40), g.int("columns", 2, 140)
	transposed := rapid.Bool().Draw(t, "transposed")
	shape := []int64{k, n}
	if transposed {
		shape = []int64{n, k}
	}
	x, weights := g.source(d, false, m, k), g.source(d, true, shape...)
	if rapid.Bool().Draw(t, "prologue") {
		read := x
		x = expr.Compute("before", x.Shape, func(i []expr.Expr) expr.Expr { return expr.MaxE(read.At(i...), expr.Zero(d)) })
	}
	product := expr.ReduceOver("product", expr.Sum, []int64{m, n}, []int64{k}, func(i, r []expr.Expr) expr.Expr {
		if transposed {
			return expr.MulE(x.At(i[0], r[0]), weights.At(i[1], r[0]))
		}
		return expr.MulE(x.At(i[0], r[0]), weights.At(r[0], i[1]))
	})
	outs := []*expr.Tensor{product}
	if rapid.Bool().Draw(t, "epilogue") {
		bias, residual := g.source(d, true, n), g.source(d, false, m, n)
		sum := expr.Compute("sum", product.Shape, func(i []expr.Expr) expr.Expr {
			return expr.AddE(expr.AddE(product.At(i...), bias.At(i[1])), residual.At(i...))
		})
		outs = []*expr.Tensor{expr.Compute("out", product.Shape, func(i []expr.Expr) expr.Expr {
			return expr.MaxE(expr.MulE(sum.At(i...), bias.At(i[1])), expr.Zero(d))
		})}
		if rapid.Bool().Draw(t, "stored") {
			outs = append([]*expr.Tensor{sum}, outs...)
		}
	}
	workload, err := expr.NewWorkload(outs)
	if err != nil {
		t.Fatalf("the drawn workload is none: %v", err)
	}
	return workload
}

// drawStrassen draws a product and a point of its space with Strassen's algorithm, or only the primitive.
func drawStrassen(t *rapid.T, d *target.Target) testCase {
	w := drawProduct(t)
	c := testCase{workload: w, workers: rapid.IntRange(1, 3).Draw(t, "workers"), args: fillArgs(w, rapid.Uint64Range(0, 99).Draw(t, "seed"))}
	if rapid.IntRange(0, 4).Draw(t, "primitive only") == 0 {
		s := schedule.New(w)
		if _, err := s.Strassen(productStage(s), rapid.Int64Range(1, 20).Draw(t, "group"), rapid.SampledFrom([]schedule.Sums{schedule.Compiled, schedule.Computed}).Draw(t, "sums")); err != nil {
			t.Fatalf("%v\n%s", err, w.Text())
		}
		c.schedule = s
		return c
	}
	c.workload = w.Merge()
	c.args = fillArgs(c.workload, 1)
	c.schedule = drawAlgorithm(t, c.workload, d)
	return c
}

// productStage is the number of the stage that sums.
func productStage(s *schedule.Schedule) int {
	for _, g := range s.Stages {
		if g.Combiner == expr.Sum {
			return g.ID
		}
	}
	return -1
}

// drawAlgorithm is the schedule of a point whose algorithm is not the direct sum, where a few draws find one.
func drawAlgorithm(t *rapid.T, w *expr.Workload, d *target.Target) *schedule.Schedule {
	s := sketch.New(w, d, schedule.Default)
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "point"), 0))
	drawn := schedule.New(w)
	for range 100 {
		if p, ok := s.Random(rng); ok {
			if drawn = applied(t, s, p); len(drawn.Algorithms()) > 0 {
				break
			}
		}
	}
	return drawn
}

// TestStrassenIsRight: whatever the extents and the point of the space, the kernel computes the product.
func TestStrassenIsRight(t *testing.T) { checkDrawn(t, batchSize/5, drawStrassen) }
