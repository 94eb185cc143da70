package programgen_test

import (
	"math"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/onnx"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestWorkloadTexts pins the expressions of the operators that schedules are written for: a change alters digests,
// and so invalidates recorded measurements.
func TestWorkloadTexts(t *testing.T) {
	// pooled is an NHWC value to start from, as inside a network.
	pooled := func(c, extent int64) modeltest.Model {
		return modeltest.New().Input("x", 1, c, extent, extent).Node("p = MaxPool x", modeltest.Ints("kernel_shape", 1, 1))
	}
	end := func(s modeltest.Model) *onnx.Model { return s.Node("g = GlobalMaxPool y").Output("g") }
	for _, c := range []struct {
		name  string
		model *onnx.Model
		task  int
		want  string
	}{
		{
			"convolution with padding, bias, residual addition and activation", end(pooled(4, 6).Constant("w", 4, 4, 3, 3).Constant("b", 4).
				Node("c = Conv p w b", modeltest.Same3x3).Node("s = Add p c").Node("y = Relu s")), 1,
			`tilth-workload 1
input t0 f32[6,6,4]
constant t1 f32[3,3,4,4]
constant t2 f32[4]
map t3 f32[8,8,4] = (select (and (and (and (le 0 (sub i0 1)) (lt (sub i0 1) 6)) (le 0 (sub i1 1))) (lt (sub i1 1) 6)) [t0 (sub i0 1) (sub i1 1) i2] 0x0p+00:f32)
sum t4 f32[6,6,4] over 3,3,4 = (mul [t3 (add i0 r0) (add i1 r1) r2] [t1 r0 r1 r2 i2])
map t5 f32[6,6,4] = (max (add (add [t4 i0 i1 i2] [t2 i2]) [t0 i0 i1 i2]) 0x0p+00:f32)
output t5
`,
		},
		{
			"strided convolution of one pixel, without padding", end(pooled(4, 6).Constant("w", 8, 4, 1, 1).
				Node("y = Conv p w", modeltest.Ints("strides", 2, 2))), 1,
			`tilth-workload 1
input t0 f32[6,6,4]
constant t1 f32[4,8]
sum t2 f32[3,3,8] over 4 = (mul [t0 (mul i0 2) (mul i1 2) r0] [t1 r0 i2])
output t2
`,
		},
		{
			"depthwise convolution with clipping", end(pooled(4, 6).Constant("w", 4, 1, 3, 3).
				Known("lo", array.FromFloat32([]float32{0})).Known("hi", array.FromFloat32([]float32{6})).
				Node("c = Conv p w", modeltest.Int("group", 4)).Node("y = Clip c lo hi")), 1,
			`tilth-workload 1
input t0 f32[6,6,4]
constant t1 f32[3,3,4]
sum t2 f32[4,4,4] over 3,3 = (mul [t0 (add i0 r0) (add i1 r1) i2] [t1 r0 r1 i2])
map t3 f32[4,4,4] = (min (max [t2 i0 i1 i2] 0x0p+00:f32) 0x1.8p+02:f32)
output t3
`,
		},
		{
			"grouped convolution", end(pooled(4, 2).Constant("w", 8, 2, 1, 1).Node("y = Conv p w", modeltest.Int("group", 2))), 1,
			`tilth-workload 1
input t0 f32[4,4]
constant t1 f32[2,8]
sum t2 f32[4,8] over 2 = (mul [t0 i0 (add (mul (floordiv i1 4) 2) r0)] [t1 r0 i1])
output t2
`,
		},
		{
			"dense layer with transposed weights", modeltest.New().Input("x", 2, 6).Constant("w", 4, 6).Constant("b", 4).
				Node("y = Gemm x w b", modeltest.Int("transB", 1)).Output("y"), 0,
			`tilth-workload 1
input t0 f32[2,6]
constant t1 f32[6,4]
constant t2 f32[4]
sum t3 f32[2,4] over 6 = (mul [t0 i0 r0] [t1 r0 i1])
map t4 f32[2,4] = (add [t3 i0 i1] [t2 i1])
output t4
`,
		},
		{
			"softmax", modeltest.New().Input("x", 2, 6).Node("y = Softmax x").Output("y"), 0,
			`tilth-workload 1
input t0 f32[2,6]
max t1 f32[2] over 6 = [t0 i0 r0]
map t2 f32[2,6] = (exp (sub [t0 i0 i1] [t1 i0]))
sum t3 f32[2] over 6 = [t2 i0 r0]
map t4 f32[2] = (div 0x1p+00:f32 [t3 i0])
map t5 f32[2,6] = (mul [t2 i0 i1] [t4 i0])
output t5
`,
		},
		{
			"average pooling that does not count its padding", end(pooled(4, 4).Node("y = AveragePool p",
				modeltest.Ints("kernel_shape", 3, 3), modeltest.Ints("pads", 0, 1, 0, 1))), 1,
			`tilth-workload 1
input t0 f32[4,4,4]
map t1 f32[4,6,4] = (select (and (le 0 (sub i1 1)) (lt (sub i1 1) 4)) [t0 i0 (sub i1 1) i2] 0x0p+00:f32)
sum t2 f32[2,4,4] over 3,3 = [t1 (add i0 r0) (add i1 r1) i2]
map t3 f32[2,4,4] = (div [t2 i0 i1 i2] (cast f32 (mul 3 (sub (min 3 (add (sub 3 (sub i1 1)) 1)) (max 0 (sub 0 (sub i1 1)))))))
output t3
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := modeltest.Import(t, c.model).Tasks[c.task].Workload.Text(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestHalfPrecision checks that 16-bit types are computed in float32 and rounded once.
func TestHalfPrecision(t *testing.T) {
	half := func(a *array.Array) *array.Array {
		h := array.New(array.Float16, a.Shape...)
		for i := range a.Len() {
			h.SetFloat(i, a.Float(i))
		}
		return h
	}
	x, w, b := half(modeltest.Wave(0, 1, 1, 3, 4, 4)), half(modeltest.Wave(0, 1, 2, 3, 3, 3)), half(modeltest.Wave(1, 1, 2))
	s := modeltest.New().Input("x", 1, 3, 4, 4).Known("w", w).Known("b", b)
	s.Graph.Inputs[0].DType = array.Float16
	p := modeltest.Import(t, s.Node("c = Conv x w b", modeltest.Same3x3).Node("y = Relu c").Output("y"))
	outs, err := evaluate.Program(p, map[string]*array.Array{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	y := outs["y"]
	for i := range y.Len() {
		oc, oh, ow := i/16, i/4%4, i%4
		sum := b.Float(oc)
		for c := range int64(3) {
			for kh := range int64(3) {
				for kw := range int64(3) {
					if h, v := oh+kh-1, ow+kw-1; h >= 0 && h < 4 && v >= 0 && v < 4 {
						sum += x.Float(c*16+h*4+v) * w.Float(oc*27+c*9+kh*3+kw)
					}
				}
			}
		}
		if want := math.Max(sum, 0); math.Abs(y.Float(i)-want) > 1e-3*max(1, want) || y.DType != array.Float16 {
			t.Fatalf("element %d is %v of %v, want %g", i, y.Float(i), y.DType, want)
		}
	}
}
