package ir

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MultiplyShared starts to add the product of two matrices in shared memory to the sums of a warpgroup. All threads of
// the warpgroup execute it together. Until a WaitProducts, the sums are undefined, and the matrices must not change.
type MultiplyShared struct {
	Format schedule.Format
	// TypeA and TypeB are the types of the factors.
	TypeA, TypeB array.DType
	// Sum has 64 results by Columns. Each thread holds two neighbours of every eight columns: those of one row
	// start at SumIndex, and those of another one RowElements later.
	Sum         *Buffer
	SumIndex    expr.Expr
	RowElements int64
	Columns     int64
	// A and B are swizzled buffers with a matrix at AIndex and BIndex each. The rows of a turned one run over terms.
	A, B             *Buffer
	AIndex, BIndex   expr.Expr
	TurnedA, TurnedB bool
}

// WarpgroupRows is the number of rows of a warpgroup's sums.
const WarpgroupRows = 64

// WarpgroupColumns reports whether warpgroup instructions support sums of n columns.
func WarpgroupColumns(n int64) bool { return n >= 16 && n <= 256 && n&(n-1) == 0 }

// FenceRegisters precedes products: it orders the threads' earlier accesses to the sums.
type FenceRegisters struct{ Sum *Buffer }

// CommitProducts closes the group of products that a warpgroup has started.
type CommitProducts struct{}

// WaitProducts waits until at most the given number of a warpgroup's latest product groups are in flight. If it
// waits for all groups, Sums lists the buffers whose sums are then complete.
type WaitProducts struct {
	Groups int64
	Sums   []*Buffer
}

// FenceAsync makes the threads' writes to shared memory visible to products, after the next Barrier.
type FenceAsync struct{}

func (*MultiplyShared) stmt() {}
func (*FenceRegisters) stmt() {}
func (*CommitProducts) stmt() {}
func (*WaitProducts) stmt()   {}
func (*FenceAsync) stmt()     {}

func (t *texter) product(n *MultiplyShared) {
	matrix := func(b *Buffer, index expr.Expr, turned bool) string {
		text := fmt.Sprintf("%s[%s]", b.Tensor.Name, t.expr(index))
		if turned {
			text += " turned"
		}
		return text
	}
	t.line("begin %s[%s] = it + %v product of %s and %s, %d columns, rows %d apart", n.Sum.Tensor.Name, t.expr(n.SumIndex), n.Format,
		matrix(n.A, n.AIndex, n.TurnedA), matrix(n.B, n.BIndex, n.TurnedB), n.Columns, n.RowElements)
}
