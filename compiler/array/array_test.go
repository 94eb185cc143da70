package array

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"
)

func TestHalvesAreRoundedToTheNearest(t *testing.T) {
	cases := map[float64]uint16{
		0: 0, 1: 0x3c00, -2: 0xc000, 65504: 0x7bff, 65519: 0x7bff, 65520: 0x7c00, 0x1p-24: 1, 0x1p-25: 0, 0x1.8p-24: 2,
		0x1p-14: 0x0400, 1 + 0x1p-11: 0x3c00, 1 + 0x3p-11: 0x3c02, math.Inf(-1): 0xfc00,
	}
	for v, want := range cases {
		if got := float64ToFloat16(v); got != want {
			t.Errorf("%g became %#04x, want %#04x", v, got, want)
		}
	}
	for h := range 1 << 16 {
		v := float16ToFloat64(uint16(h))
		if got := float64ToFloat16(v); got != uint16(h) && !math.IsNaN(v) {
			t.Fatalf("%#04x is %g, which becomes %#04x", h, v, got)
		}
	}
}

func TestElementsSurviveARoundTrip(t *testing.T) {
	for d := Float32; d <= Bool; d++ {
		a := New(d, 2)
		a.SetFloat(1, 1)
		if a.Float(1) != 1 || a.Int(1) != 1 || a.Float(0) != 0 {
			t.Errorf("%v: got %g and %d", d, a.Float(1), a.Int(1))
		}
		if err := a.Check(); err != nil || ParseDType(d.String()) != d {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestCheckedBytesRefusesWhatOverflows(t *testing.T) {
	cases := map[string]struct {
		shape []int64
		bytes int64
		ok    bool
	}{
		"scalar":    {nil, 4, true},
		"matrix":    {[]int64{3, 5}, 60, true},
		"empty":     {[]int64{1 << 40, 0, 1 << 40}, 0, true},
		"negative":  {[]int64{2, -1}, 0, false},
		"too large": {[]int64{1 << 31, 1 << 31}, 0, false},
	}
	for name, c := range cases {
		if n, err := CheckedBytes(Float32, c.shape); n != c.bytes || (err == nil) != c.ok {
			t.Errorf("%s: got %d, %v", name, n, err)
		}
	}
}

func TestArrayInAnotherTypeIsRounded(t *testing.T) {
	a := FromFloat32([]float32{1, 1 + 0x1p-8, 1 + 0x3p-8, -1e-40, float32(math.Inf(1)), 3e38}, 6)
	b := a.As(BFloat16)
	for i, want := range []float64{1, 1, 1 + 0x1p-6, -0x1p-133, math.Inf(1), 0x1.c4p+127} {
		if got := b.Float(int64(i)); got != want {
			t.Errorf("%g became %x, want %x", a.Float(int64(i)), got, want)
		}
	}
	if a.As(Float32) != a || b.DType != BFloat16 || b.Check() != nil {
		t.Errorf("it is %v", b.DType)
	}
}

func TestHeadIsTheFirstElementsOfAnAxis(t *testing.T) {
	a := FromInt64([]int64{1, 2, 3, 4, 5, 6}, 2, 3)
	for _, c := range []struct {
		axis  int
		count int64
		want  *Array
	}{
		{1, 2, FromInt64([]int64{1, 2, 4, 5}, 2, 2)},
		{0, 1, FromInt64([]int64{1, 2, 3}, 1, 3)},
		{0, -1, New(Int64, 0, 3)},
		{1, 9, a},
	} {
		if got := a.Head(c.axis, c.count); !reflect.DeepEqual(got, c.want) {
			t.Errorf("the first %d of axis %d are %v, want %v", c.count, c.axis, got, c.want)
		}
	}
}

func TestCorners(t *testing.T) {
	whole := New(Int16, 3, 4, 2)
	for k := range whole.Len() {
		whole.SetInt(k, k)
	}
	for _, shape := range [][]int64{{3, 4, 2}, {2, 4, 2}, {3, 2, 2}, {2, 3, 1}, {1, 1, 1}} {
		corner := whole.Corner(shape)
		back := slices.Clone(whole.Data)
		corner.CopyToCorner(back, whole.Shape)
		if !bytes.Equal(back, whole.Data) {
			t.Errorf("corner %v was copied to another place", shape)
		}
		if last := (shape[0]-1)*8 + (shape[1]-1)*2 + shape[2] - 1; corner.Int(corner.Len()-1) != last {
			t.Errorf("the last element of corner %v is %d, want %d", shape, corner.Int(corner.Len()-1), last)
		}
	}
}
