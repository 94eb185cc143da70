package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// row is a window of three that slides over a row of six, with a zero in front and one behind.
const row = "map t2 f32[8] = (select (and (le 0 (sub i0 1)) (lt (sub i0 1) 6)) [t0 (sub i0 1)] 0x0p+00:f32)\nsum t3 f32[6] over 3 = (mul [t2 (add i0 r0)] [t1 r0])\noutput t3\n"

// TestProductsOfPaddingAreLeftOut: the first and the last element have two products, the others three.
func TestProductsOfPaddingAreLeftOut(t *testing.T) {
	kerneltest.Golden(t, "padding/constant", pass.Padding(unrolled(t, "input t0 f32[6]\nconstant t1 f32[3]\n"+row, "inline 0\nunroll 1 0\nunroll 1 1\n")))
}

// TestProductsWithDataStay: kernel inputs may be infinite, and zero times infinity is NaN.
func TestProductsWithDataStay(t *testing.T) {
	kerneltest.Golden(t, "padding/data", pass.Padding(unrolled(t, "input t0 f32[6]\ninput t1 f32[3]\n"+row, "inline 0\nunroll 1 0\nunroll 1 1\n")))
}
