package ir

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// MultiplyShared begins to add to the sums of a warpgroup the product of two matrices in shared memory. All threads of
// the warpgroup do it together. Until a WaitProducts, the sums are nobody's, and the matrices must stay as they are.
type MultiplyShared struct {
	Format schedule.Format
	// TypeA and TypeB are the types of the factors.
	TypeA, TypeB array.DType
	// Sum has 64 results by Columns: of a thread two neighbours of every eight columns, in a row at SumIndex, two
	// behind two, and in another one RowElements behind that.
	Sum         *Buffer
	SumIndex    expr.Expr
	RowElements int64
	Columns     int64
	// A and B are swizzled buffers with a matrix at AIndex and BIndex each. The rows of a turned one are terms.
	A, B             *Buffer
	AIndex, BIndex   expr.Expr
	TurnedA, TurnedB bool
}

// WarpgroupRows is the rows of the sums of a warpgroup.
const WarpgroupRows = 64

// WarpgroupColumns reports whether instructions of a warpgroup have sums of so many columns.
func WarpgroupColumns(n int64) bool { return n >= 16 && n <= 256 && n&(n-1) == 0 }

// FenceRegisters stands before products that begin: what their threads did with the sums is done.
type FenceRegisters struct{ Sum *Buffer }

// CommitProducts closes the group of products that a warpgroup has begun.
type CommitProducts struct{}

// WaitProducts keeps a warpgroup until at most so many of its groups of products are under way, the latest ones. Sums
// are the buffers whose sums are there then, where that is all of them.
type WaitProducts struct {
	Groups int64
	Sums   []*Buffer
}

// FenceAsync makes what threads have written to shared memory visible to products, behind the next Barrier.
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
