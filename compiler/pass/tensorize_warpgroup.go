package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// warpgroupThreads is the number of threads that hold the sums of a warpgroup instruction.
const warpgroupThreads = 128

// groupProduct is a loop over matrices that warpgroup instructions compute.
type groupProduct struct{ *tensorizeProduct }

// groupMatches returns the ways in which a loop over matrices computes an instruction of a warpgroup.
func (w *warp) groupMatches(n *ir.For) (found []*match) {
	nest, _ := ir.PerfectNestOf(n)
	for _, l := range nest.Loops {
		if !nvidia.WarpgroupColumns(8 * l.Extent) {
			continue
		}
		for turned := range 4 {
			of := func(a, b array.DType) *ir.Instruction {
				return nvidia.MultiplyShared(n.Format, 8*l.Extent, nvidia.Factor{Type: a, Turned: turned&1 > 0}, nvidia.Factor{Type: b, Turned: turned&2 > 0})
			}
			if turned == 0 || n.Format.Packed() == 2 { // only 16-bit elements may be transposed
				found = append(found, tensorizeFactors(n, of, w.in, w.loop)...)
			}
		}
	}
	return found
}

// aligned reports whether the matrices of both operands are aligned for the instruction.
func (g groupProduct) aligned() bool {
	columns := 4 * g.Meaning.Operands[0].Buffer.Elements()
	return g.begins(&g.operands[1], nvidia.WarpgroupRows) && g.begins(&g.operands[2], columns)
}

// begins reports whether the matrices of an operand, of some number of lines, start at groups of eight rows, and at
// whole panels if they span several panels or part of one.
func (g groupProduct) begins(o *matched, lines int64) bool {
	panel, rows, row := min(o.row, 128/o.tensor.DType.Bytes()), lines, g.terms.Extent
	turned := !expr.Uses(o.place.Expr(), g.steps.inside[0])
	if turned {
		rows, row = row, rows
	}
	if o.buffer.Rows%rows != 0 || !turned && row > panel || turned && row%panel != 0 {
		return false
	}
	first, step := o.first, 8*o.row
	take(&first, g.steps.rest)
	whole := func(coef int64) bool { return coef%step == 0 || turned && coef%step%panel == 0 && coef%step < o.row }
	return whole(first.Const) && !slices.ContainsFunc(first.Terms, func(t expr.Term) bool { return !whole(t.Coef) })
}

// run returns the group of products, in loops over terms and over the rows of a warpgroup.
func (g groupProduct) run() ir.Block {
	args := make([]ir.Arg, len(g.operands))
	for k := range args {
		args[k] = g.operands[k].arg()
		if k > 0 {
			args[k].Index, args[k].Stride = linear(args[k].Index, map[*expr.Var]expr.Expr{g.threads.rest: quotient(g.loop.Var, warpgroupThreads)}).Expr(), 0
		}
	}
	all := &ir.For{Var: g.steps.rest, Extent: g.steps.rest.Extent, Kind: ir.Unrolled, Body: around(g.a.loops, ir.Block{ir.Exec(g.Instruction, args...)})}
	return ir.Block{ir.Exec(nvidia.FenceSums, ir.All(g.operands[0].buffer)), all, ir.Exec(nvidia.Products.Commit)}
}
