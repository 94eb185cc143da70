package nvidia

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// Products are products of matrices in shared memory (wgmma). Until they have been waited for, their sums are
// undefined, and the matrices must not change.
var Products = &ir.Async{
	Name:   "products",
	Commit: &ir.Instruction{Name: "products.commit", By: ir.ByGroup, Orders: true, Text: "WGMMA_COMMIT();"},
	Wait:   &ir.Instruction{Name: "products.wait", By: ir.ByAny, Orders: true, Params: []ir.Param{groups}, Text: "WGMMA_WAIT(%s);"},
	Fence:  FenceAsync,
}

// FenceSums precedes products: it orders the threads' earlier accesses to the sums. WaitSums waits for all products,
// after which the sums are complete.
var (
	FenceSums = &ir.Instruction{Name: "products.fence", By: ir.ByGroup, Orders: true, Params: []ir.Param{orderedSums}, Text: "WGMMA_FENCE(%s);"}
	WaitSums  = &ir.Instruction{Name: "products.wait.all", By: ir.ByAny, Orders: true, Waits: Products, Params: []ir.Param{orderedSums}, Text: "WGMMA_WAIT_ALL(%s);"}
)

var orderedSums = ir.Param{Name: "sums", Use: ir.Ordered, In: ir.Private, Form: ir.Whole}

func init() { Products.Wait.Waits = Products }

// WarpgroupRows is the number of rows of a warpgroup's sums.
const WarpgroupRows = 64

// WarpgroupColumns reports whether warpgroup instructions support sums of n columns.
func WarpgroupColumns(n int64) bool { return n >= 16 && n <= 256 && n&(n-1) == 0 }

// Factor is an operand of MultiplyShared. The rows of a turned one run over terms.
type Factor struct {
	Type   array.DType
	Turned bool
}

// MultiplyShared returns the instruction that starts to add the product of two matrices in shared memory to the sums
// of a warpgroup: 64 results by a number of columns. Each thread holds two neighbours of every eight columns: those
// of one row, and at the operand's stride those of another.
func MultiplyShared(f schedule.Format, columns int64, a, b Factor) *ir.Instruction {
	kind := map[schedule.Format]string{schedule.WarpgroupTF32: "TF32", schedule.WarpgroupBF16: "BF16", schedule.WarpgroupF16: "F16"}[f]
	kind += signs[[2]array.DType{a.Type, b.Type}]
	turned := map[bool]int{true: 1}
	i := &ir.Instruction{
		Name: fmt.Sprintf("wgmma.m64n%d.%s.%d%d", columns, strings.ToLower(kind), turned[a.Turned], turned[b.Turned]), By: ir.ByGroup, Starts: Products,
		Text: fmt.Sprintf("WGMMA(%d, %s, %%s, %%s, %d, %%s, %d);", columns, kind, turned[a.Turned], turned[b.Turned]),
		Params: []ir.Param{
			{Name: "sums", Use: ir.Update, In: ir.Private, Form: ir.Strided},
			{Name: "a", Use: ir.Read, In: ir.Shared, Swizzled: true, Async: true, Form: ir.Place},
			{Name: "b", Use: ir.Read, In: ir.Shared, Swizzled: true, Async: true, Form: ir.Place},
		},
	}
	matrix := func(name string, x Factor, lines int64) *expr.Tensor {
		if x.Turned {
			return ir.Flat(name, element(f, x.Type), lines)
		}
		return ir.Flat(name, element(f, x.Type), f.Terms())
	}
	i.Meaning = ir.NewMeaning(i, func(x []ir.Formal) ir.Block { return groupSums(f, x, a.Turned, b.Turned) },
		ir.Flat("sums", f.Sum(), columns/4), matrix("a", a, WarpgroupRows), matrix("b", b, columns))
	return i
}

// groupSums adds products. The sums of a thread are those of warpSums, in every eight columns; each warp has 16 rows.
func groupSums(f schedule.Format, x []ir.Formal, turnedA, turnedB bool) ir.Block {
	warp, row, quad, below := loopOver("warp", 4), loopOver("row", 8), loopOver("quad", 4), loopOver("below", 2)
	eight, next, term := loopOver("eight", x[0].Buffer.Elements()/2), loopOver("next", 2), loopOver("term", f.Terms())
	at := func(x ir.Formal, line expr.Expr, turned bool) expr.Expr {
		if turned {
			return x.At(x.Index(nil, term, line))
		}
		return x.At(x.Index(nil, line, term))
	}
	a := at(x[1], expr.AddE(weighted(warp, 16, below, 8), row), turnedA)
	b := at(x[2], expr.AddE(weighted(eight, 8, quad, 2), next), turnedB)
	thread := expr.AddE(weighted(warp, 32, row, 4), quad)
	step := ir.Add(x[0].Buffer, x[0].Index(thread, below, weighted(eight, 2, next, 1)), product(f, a, b))
	return ir.Nest(ir.Serial, ir.Block{step}, warp, row, quad, below, eight, next, term)
}
