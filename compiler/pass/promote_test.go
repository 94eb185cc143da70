package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
)

// promoteTile is a product with tiles of two rows of a vector, whose sums are a buffer of their own.
const (
	promoteProduct = `input t0 f32[4,8]
input t1 f32[8,16]
sum t2 f32[4,16] over 8 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[4,16] = (max [t2 i0 i1] 0x0p+00:f32)
output t3
`
	promoteTile = `split 1 0 2 0
split 1 1 8 0
reorder 1 2 4 3 5
unroll 1 3
vectorize 1 5
compute-at 0 1 4
reorder 0 2 0 1
unroll 0 0
vectorize 0 1
`
)

// TestBufferThatALoopIndexesStaysInMemory: its elements have no names.
func TestBufferThatALoopIndexesStaysInMemory(t *testing.T) {
	f := pass.Promote(unrolled(t, promoteProduct, "compute-at 0 1 0\n"))
	ir.Visit(f.Body, func(st ir.Stmt) {
		if n, ok := st.(*ir.Alloc); ok && n.Buffer.Space != ir.Scratch {
			t.Errorf("a row of sums lies in %v", n.Buffer.Space)
		}
	})
}
