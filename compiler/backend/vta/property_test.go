package vta

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
	"pgregory.net/rapid"
)

// drawConvolution draws a convolution of bytes with any window, stride, padding by zeros, and channels, requantised in
// one of the ways of quantised models.
func drawConvolution(t *rapid.T) *expr.Workload {
	draw := func(name string, low, high int64) int64 { return rapid.Int64Range(low, high).Draw(t, name) }
	in, out, window, stride := draw("in", 1, 40), draw("out", 2, 40), draw("window", 1, 3), draw("stride", 1, 2)
	pad := draw("pad", 0, window/2)
	down, across := draw("down", 1, 6), draw("across", 1, 6)
	size := func(positions int64) int64 { return max(1, (positions-1)*stride+window-2*pad) }
	d := rapid.SampledFrom([]array.DType{array.Uint8, array.Int8}).Draw(t, "type")
	x, w := expr.NewInput("x", d, size(down), size(across), in), expr.NewConstant("w", array.Int8, window, window, in, out)
	padded := expr.Compute("padded", []int64{(down-1)*stride + window, (across-1)*stride + window, in}, func(i []expr.Expr) expr.Expr {
		y, z := expr.SubE(i[0], expr.I(pad)), expr.SubE(i[1], expr.I(pad))
		return expr.Sel(expr.Bin(expr.And, expr.InRange(y, 0, x.Shape[0]), expr.InRange(z, 0, x.Shape[1])), x.At(y, z, i[2]), expr.Zero(d))
	})
	shape := []int64{down, across, out}
	sum := expr.ReduceOver("sum", expr.Sum, shape, []int64{window, window, in}, func(i, r []expr.Expr) expr.Expr {
		at := func(k int) expr.Expr { return expr.AddE(expr.MulE(i[k], expr.I(stride)), r[k]) }
		return expr.MulE(expr.To(array.Int32, padded.At(at(0), at(1), r[2])), expr.To(array.Int32, w.At(r[0], r[1], r[2], i[2])))
	})
	last := sum
	if rapid.Bool().Draw(t, "epilogue") {
		last = drawEpilogue(t, sum)
	}
	return must(expr.NewWorkload([]*expr.Tensor{last}))
}

// drawEpilogue draws the requantisation of sums, maybe after the addition of another value.
func drawEpilogue(t *rapid.T, sum *expr.Tensor) *expr.Tensor {
	scale := expr.NewConstant("scale", array.Float32, sum.Shape[2])
	other := expr.NewInput("other", array.Uint8, sum.Shape...)
	to := rapid.SampledFrom([]array.DType{array.Uint8, array.Int8}).Draw(t, "to")
	adds, shifts := rapid.Bool().Draw(t, "adds"), rapid.Bool().Draw(t, "shifts")
	return expr.Compute("out", sum.Shape, func(i []expr.Expr) expr.Expr {
		float := func(x expr.Expr) expr.Expr { return expr.To(array.Float32, x) }
		value := expr.MulE(float(sum.At(i...)), scale.At(i[2]))
		if adds {
			value = expr.AddE(expr.MulE(float(expr.To(array.Int32, other.At(i...))), expr.F(array.Float32, 0.5)), value)
		}
		value = expr.MinE(expr.MaxE(value, expr.F(array.Float32, -100)), expr.F(array.Float32, 100))
		whole := expr.To(array.Int32, expr.Un(expr.Round, value))
		if shifts {
			whole = expr.AddE(whole, expr.F(array.Int32, 7))
		}
		return expr.To(to, whole)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// drawCase draws a convolution with a point of its space.
func drawCase(t *rapid.T) kerneltest.Case {
	w := drawConvolution(t)
	s := Backend{}.Space(w, host(t), schedule.Default)
	p := s.Default()
	for k, knob := range s.Knobs {
		q := slices.Clone(p)
		if q[k] = rapid.IntRange(0, len(knob.Values)-1).Draw(t, knob.Name); s.Legal(q) == nil {
			p = q
		}
	}
	made, err := s.Apply(p)
	if err != nil || !accelerated(made) {
		t.Fatalf("%s: %v\n%s", s.Format(p), err, w.Text())
	}
	return kerneltest.Case{Workload: w, Schedule: made, Workers: 1, Args: kerneltest.Fill(w, 1)}
}

func TestRandomConvolutionsAreExact(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cases := kerneltest.Batch(r, rapid.Custom(drawCase), 40)
		p := compiled(t, cases, func(_ int, text string) string { return text })
		outputs, err := p.run(nil)
		if err != nil {
			r.Fatal(err)
		}
		for k, c := range cases {
			if wrong := c.Wrong(outputs[k]); wrong != "" {
				r.Fatalf("%s\n%s", wrong, c.Text())
			}
		}
	})
}

// FuzzReplay feeds arbitrary workloads and traces to the lowering. Each is refused or compiled to text in bounded
// time.
func FuzzReplay(f *testing.F) {
	kerneltest.AddCases(f, 8, func(t *rapid.T) kerneltest.Case {
		if rapid.Bool().Draw(t, "other") {
			return kerneltest.DrawTiled(t)
		}
		return drawCase(t)
	})
	kerneltest.FuzzReplay(f, func(_ *expr.Workload, s *schedule.Schedule) {
		if p, err := lowered(s); err == nil {
			_ = p.text("k", nil)
		}
	})
}
