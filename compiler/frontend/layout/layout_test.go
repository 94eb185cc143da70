package layout

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/op"
)

func TestReshapeLayout(t *testing.T) {
	for _, c := range []struct {
		in     []int64
		layout []int
		out    []int64
		want   []int // nil when a copy is needed
	}{
		{[]int64{2, 3, 4}, []int{0, 1, 2}, []int64{6, 4}, []int{0, 1}},
		{[]int64{2, 3, 4}, []int{0, 2, 1}, []int64{6, 4}, nil},
		{[]int64{2, 3, 4}, []int{2, 0, 1}, []int64{6, 4}, []int{1, 0}},
		{[]int64{1, 512, 1, 1}, []int{0, 2, 3, 1}, []int64{1, 512}, []int{0, 1}},
		{[]int64{1, 512, 7, 7}, []int{0, 2, 3, 1}, []int64{1, 25088}, nil},
		{[]int64{1, 8, 4}, []int{0, 2, 1}, []int64{1, 2, 4, 4}, []int{0, 3, 1, 2}},
		{[]int64{4}, []int{0}, []int64{1, 4, 1}, []int{0, 1, 2}},
		{[]int64{1}, []int{0}, []int64{}, []int{}},
		{[]int64{2, 6}, []int{0, 1}, []int64{3, 4}, []int{0, 1}},
		{[]int64{2, 6}, []int{1, 0}, []int64{3, 4}, nil},
	} {
		got, ok := reshapeLayout(c.in, c.layout, c.out)
		if ok != (c.want != nil) || ok && !op.SameLayout(c.out, got, c.want) {
			t.Errorf("%v in layout %v as %v: got %v, %v; want %v", c.in, c.layout, c.out, got, ok, c.want)
		}
	}
}
