package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// sums are of four neighbours in a buffer, or of three.
const (
	foldFours = `input t0 f32[8,4]
map t1 f32[8,4] = (mul [t0 i0 i1] [t0 i0 i1])
sum t2 f32[8] over 4 = [t1 i0 r0]
output t2
`
	threes = `input t0 f32[8,3]
map t1 f32[8,3] = (mul [t0 i0 i1] [t0 i0 i1])
sum t2 f32[8] over 3 = [t1 i0 r0]
output t2
`
	inVectors = "reorder 1 1 0\nunroll 1 1\nvectorize 1 0\n"
)

// foldLanes returns those of a machine whose vectors have so many bytes.
func foldLanes(bytes int64) func(array.DType) int64 {
	return func(d array.DType) int64 { return bytes / d.Bytes() }
}

// TestFoldLeavesUnevenGroups: three neighbours, some of the neighbours, and those of an argument.
func TestFoldLeavesUnevenGroups(t *testing.T) {
	for name, f := range map[string]*ir.Func{
		"threes":          unrolled(t, threes, inVectors),
		"terms outside":   unrolled(t, foldFours, "reorder 1 1 0\nvectorize 1 0\n"),
		"the terms first": unrolled(t, foldFours, "vectorize 1 1\n"),
		"an argument":     unrolled(t, "input t0 f32[8,4]\nsum t1 f32[8] over 4 = [t0 i0 r0]\noutput t1\n", "reorder 0 1 0\nunroll 0 1\nvectorize 0 0\n"),
	} {
		if after := pass.Fold(f, foldLanes(32)); after.Text() != f.Text() {
			t.Errorf("%s are folded:\n%s", name, after.Text())
		}
	}
}
