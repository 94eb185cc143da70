package layout

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/graph"
	"github.com/tilth-dev/tilth/compiler/op"
)

// assignLayouts chooses the memory order of each value's axes: that of the model for inputs and outputs, and the
// producer's preference for others. Transpositions become layout changes and cost nothing. If a reshape or an
// output needs another order, it inserts a copy, which joins its producer's kernel like any elementwise operator.
func assignLayouts(g *graph.Graph) {
	for _, v := range g.Inputs {
		v.Layout = op.RowMajor(v.Shape.Rank())
	}
	for _, n := range g.Nodes {
		if continued(g, n) != nil {
			n.Result.Layout = op.RowMajor(n.Result.Shape.Rank())
		}
	}
	for k := 0; k < len(g.Nodes); k++ {
		n := g.Nodes[k]
		if n.Result.Layout != nil {
			continue
		}
		if n.Def().Kind == op.Reshaping {
			if layout, ok := reshapeLayout(n.Operands[0].Shape.Max(), n.Operands[0].Layout, n.Result.Shape.Max()); ok {
				n.Result.Layout = layout
				continue
			}
			c := copyOf(g, n.Operands[0], n.Operands[0].Name+".rows")
			n.Operands[0] = c.Result
			g.Insert(k, c)
			continue
		}
		n.Result.Layout = naturalLayout(n)
	}
	for k, v := range g.Outputs {
		if rows := op.RowMajor(v.Shape.Rank()); !v.Shape.IsEmpty() && !op.SameLayout(v.Shape.Max(), v.Layout, rows) {
			copyOutput(g, k)
		} else {
			v.Layout = rows
		}
	}
	layStates(g)
}

func naturalLayout(n *graph.Node) []int {
	if n.Def().Kind == op.Permute {
		return op.PermuteLayout(n.Operands[0].Layout, op.Perm(n.Node))
	}
	layouts := make([][]int, len(n.Operands))
	for k, v := range n.Operands {
		switch {
		case v == nil:
		case v.Layout != nil:
			layouts[k] = v.Layout
		default:
			layouts[k] = op.RowMajor(v.Shape.Rank())
		}
	}
	return op.LayoutOf(n.Node, layouts)
}

// reshapeLayout returns the layout in which a reshaped value has the bytes of its operand; false if none exists. It
// divides the shapes into the smallest runs of axes with equal products; a layout that permutes whole runs is kept.
func reshapeLayout(in []int64, layout []int, out []int64) ([]int, bool) {
	runOf := make([]int, len(in)) // per axis of in
	var runs [][]int              // axes of out in each run
	var sources [][]int           // axes of in in each run
	i, o := 0, 0
	for i < len(in) || o < len(out) {
		var ins, outs []int
		a, b := int64(1), int64(1)
		for more := true; more; more = a != b {
			switch {
			case a <= b && i < len(in) && (a < b || len(ins) == 0):
				a, ins, i = a*in[i], append(ins, i), i+1
			case o < len(out):
				b, outs, o = b*out[o], append(outs, o), o+1
			default:
				a, ins, i = a*in[i], append(ins, i), i+1
			}
		}
		for _, axis := range ins {
			runOf[axis] = len(runs)
		}
		sources, runs = append(sources, ins), append(runs, outs)
	}
	return moveRuns(in, layout, runOf, sources, runs, len(out))
}

// moveRuns orders the runs of the result like the operand's runs in memory. Axes of extent 1 occupy no memory and
// follow their run.
func moveRuns(in []int64, layout, runOf []int, sources, runs [][]int, rank int) ([]int, bool) {
	var order []int
	placed := make([]bool, len(runs))
	for k := 0; k < len(layout); {
		axis := layout[k]
		if in[axis] == 1 {
			k++
			continue
		}
		run := runOf[axis]
		for _, want := range sources[run] {
			if in[want] == 1 {
				continue
			}
			for k < len(layout) && in[layout[k]] == 1 {
				k++
			}
			if k == len(layout) || layout[k] != want {
				return nil, false
			}
			k++
		}
		placed[run] = true
		order = append(order, run)
	}
	result := make([]int, 0, rank)
	for run, axes := range runs { // runs of extent 1 come first
		if !placed[run] {
			result = append(result, axes...)
		}
	}
	for _, run := range order {
		result = append(result, runs[run]...)
	}
	if isSorted := slices.IsSorted(order); isSorted {
		return op.RowMajor(rank), true
	}
	return result, true
}

// Passes lists the placement passes in order.
var Passes = []graph.Pass{
	{Name: "separate-outputs", Run: op.Catching(separateOutputs)},
	{Name: "assign-layouts", Run: op.Catching(assignLayouts)},
	{Name: "share-memory", Run: op.Catching(shareMemory)},
}
