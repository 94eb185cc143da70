package expr_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

func TestShapes(t *testing.T) {
	a := expr.ShapeOf("input t0 f32[784,64]@[256,1]\nsum t1 f32[784] over 64 = (mul [t0 i0 r0] 0x1p+00:f32)")
	if want := "input t0 f32[#,#]@[#,#]\nsum t1 f32[#] over # = (mul [t0 i0 r0] 0x1p+00:f32)"; a.Class != want {
		t.Errorf("class is %q, want %q", a.Class, want)
	}
	if want := []float64{784, 64, 256, 1, 784, 64}; !slices.Equal(a.Sizes, want) {
		t.Errorf("sizes are %v, want %v", a.Sizes, want)
	}
}

func TestDistances(t *testing.T) {
	of := func(m, k, n int64) expr.Shape { return expr.ShapeOf(kerneltest.Product(t, m, k, n).Text()) }
	near, far := of(64, 64, 64).Distance(of(64, 64, 128)), of(64, 64, 64).Distance(of(512, 64, 1024))
	if !(0 < near && near < far) || !math.IsInf(of(64, 64, 64).Distance(expr.ShapeOf("map")), 1) || of(8, 8, 8).Distance(of(8, 8, 8)) != 0 {
		t.Errorf("near is %v, far %v", near, far)
	}
}
