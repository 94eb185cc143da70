package array

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
)

// TestQuantisedElementsAreOffByHalfAStep: integers are the nearest, and the largest of each block is exact.
func TestQuantisedElementsAreOffByHalfAStep(t *testing.T) {
	w := New(Float32, 3, 10, 2)
	for i := range w.Len() {
		w.SetFloat(i, math.Sin(float64(3*i+1))*float64(1+i%7))
	}
	for _, c := range []struct {
		axis            int
		block, min, max int64
		want            []int64
	}{{1, 4, -127, 127, []int64{3, 3, 2}}, {1, 10, -7, 7, []int64{3, 1, 2}}, {0, 2, -8, 7, []int64{2, 10, 2}}, {2, 2, -127, 127, []int64{3, 10, 1}}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			integers, scales := Quantise(w, c.axis, c.block, c.min, c.max)
			if !slices.Equal(integers.Shape, w.Shape) || !slices.Equal(scales.Shape, c.want) || integers.DType != Int8 {
				t.Fatalf("shapes are %v and %v", integers.Shape, scales.Shape)
			}
			inner, exact := Elements(w.Shape[c.axis+1:]), map[int64]bool{}
			for i := range w.Len() {
				k := i / inner % w.Shape[c.axis]
				at := (i/inner/w.Shape[c.axis]*c.want[c.axis]+k/c.block)*inner + i%inner
				scale := scales.Float(at)
				cut := -integers.Int(i) == c.min+1 && c.min < -c.max // the other end of the range is nearer to zero
				if off := math.Abs(integers.Float(i)*scale - w.Float(i)); off > math.Abs(scale)*0.5001 && !(cut && off <= math.Abs(scale)) {
					t.Errorf("element %d is off by %g, more than half of %g", i, off, scale)
				}
				exact[at] = exact[at] || integers.Int(i) == c.min || c.min == -c.max && integers.Int(i) == c.max
			}
			if int64(len(exact)) != scales.Len() || slices.Contains(slices.Collect(maps.Values(exact)), false) {
				t.Errorf("blocks that reach the largest integer are %v", exact)
			}
		})
	}
}

func TestZerosHaveNoScale(t *testing.T) {
	integers, scales := Quantise(New(Float16, 4, 4), 0, 4, -127, 127)
	for i := range scales.Len() {
		if scales.Float(i) != 0 || integers.Int(i) != 0 {
			t.Errorf("column %d: %d times %g", i, integers.Int(i), scales.Float(i))
		}
	}
}
