package layout

import (
	"slices"
	"testing"
)

func TestReshapeStrides(t *testing.T) {
	for _, c := range []struct{ in, strides, out, want []int64 }{
		{[]int64{2, 3, 4}, []int64{12, 4, 1}, []int64{4, 2, 3}, []int64{6, 3, 1}},
		{[]int64{5, 6}, []int64{10, 1}, []int64{5, 2, 3}, []int64{10, 3, 1}},
		{[]int64{5, 6}, []int64{10, 1}, []int64{30}, nil},
		{[]int64{2, 5, 6}, []int64{50, 10, 1}, []int64{10, 6}, []int64{10, 1}},
		{[]int64{1, 5, 1, 6}, []int64{999, 10, 7, 1}, []int64{5, 6}, []int64{10, 1}},
		{[]int64{4, 6}, []int64{10, 1}, []int64{2, 12}, nil},
		{[]int64{4, 6}, []int64{10, 1}, []int64{2, 2, 1, 6}, []int64{20, 10, 6, 1}},
		{[]int64{}, []int64{}, []int64{1, 1}, []int64{1, 1}},
	} {
		got, ok := reshapeStrides(c.in, c.strides, c.out)
		if ok != (c.want != nil) || ok && !slices.Equal(normalised(c.out, got), normalised(c.out, c.want)) {
			t.Errorf("%v with strides %v as %v: got %v, want %v", c.in, c.strides, c.out, got, c.want)
		}
	}
}

// normalised drops the strides of axes of extent one, which say nothing.
func normalised(shape, strides []int64) []int64 {
	var kept []int64
	for k, s := range strides {
		if shape[k] != 1 {
			kept = append(kept, s)
		}
	}
	return kept
}
