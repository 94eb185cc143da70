package lower

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// panelBytes is the largest contiguous part of a row in a swizzled buffer.
const panelBytes = 128

// filled computes a part of a stage attached at a loop of another: by loops, or by box copies.
func (l *lowerer) filled(part *nest) ir.Block {
	if part.g.TMA {
		return l.boxes(part.g, part.mins, part.extents)
	}
	return l.generate(part, 0)
}

// boxes copies a part of a tensor: one box per panel of the buffer.
func (l *lowerer) boxes(g *schedule.Stage, mins []expr.Expr, extents []int64) ir.Block {
	from, axes, err := l.s.Boxes(g)
	if err != nil {
		fail("%w", err)
	}
	to, source := l.bindings[g.Tensor].buffer, l.bindings[from.Tensor]
	switch {
	case l.around.threads:
		fail("stage %d copies boxes inside of a loop on threads, of which one would do", g.ID)
	case source == nil || source.pack != nil:
		fail("stage %d copies boxes of a tensor that is missing or packed", g.ID)
	case to.Row == 0 || to.Space != ir.Shared:
		fail("stage %d copies boxes to rows that cannot be swizzled", g.ID)
	}
	b := box{from: from, axes: axes, mins: mins, extents: extents}
	m, at := b.dims()
	panel := min(to.Row, panelBytes/to.Tensor.DType.Bytes())
	m.Dims[0].Box, m.PanelBytes = panel, panel*to.Tensor.DType.Bytes()
	checkFits(m, g.ID)
	if m.Elements()*(to.Row/panel) != to.Elements() {
		fail("stage %d copies boxes that do not fill its buffer", g.ID)
	}
	v := &expr.Var{Name: fmt.Sprintf("x%d", g.ID), Extent: 1}
	one := &ir.For{Var: v, Extent: 1, Kind: ir.Threads}
	for first := int64(0); first < to.Row; first += panel {
		args := []ir.Arg{ir.At(to, expr.I(first)), {Tensor: source.buffer.Tensor, Index: expr.I(0), Map: m}}
		for d, x := range at {
			if d == 0 {
				x = expr.Simplify(expr.AddE(x, expr.I(first)))
			}
			args = append(args, ir.Of(x))
		}
		one.Body = append(one.Body, ir.Exec(nvidia.BoxCopy(len(at), false), args...))
	}
	return ir.Block{one}
}

// checkFits fails if no tensor map supports the dimensions.
func checkFits(m *ir.TensorMap, stage int) {
	if n := len(m.Dims); n < nvidia.MinMapDims || n > nvidia.MaxMapDims {
		fail("stage %d copies boxes of %d dimensions, not of %d to %d", stage, n, nvidia.MinMapDims, nvidia.MaxMapDims)
	}
	for _, d := range m.Dims {
		if d.Box > nvidia.MapBox {
			fail("stage %d copies boxes that are %d long, more than %d", stage, d.Box, nvidia.MapBox)
		}
	}
}

// box is a part of a tensor: the elements of a stage's axes starting at mins, where axis axes[d] runs along
// dimension d of the tensor.
type box struct {
	from    *expr.Load
	axes    []int
	mins    []expr.Expr
	extents []int64
}

// dims returns the dimensions of the tensor, and the start of the box in each. The stage's axes come first,
// starting with the last one, in the element order of the box; trivial dimensions are dropped.
func (b box) dims() (m *ir.TensorMap, at []expr.Expr) {
	shape := b.from.Tensor.Shape
	strides, places := make([]int64, len(shape)), map[int]int{}
	stride := int64(1)
	for d := len(shape) - 1; d >= 0; d-- {
		strides[d], stride = stride, stride*shape[d]
		if b.axes[d] >= 0 {
			places[b.axes[d]] = d
		}
	}
	m = &ir.TensorMap{}
	for k := len(b.extents) - 1; k >= 0; k-- {
		if d, ok := places[k]; ok && (shape[d] > 1 || b.extents[k] > 1) {
			m.Dims = append(m.Dims, ir.Dim{Extent: shape[d], Stride: strides[d], Box: b.extents[k]})
			at = append(at, expr.Simplify(b.mins[k]))
		}
	}
	for d, k := range b.axes {
		if k < 0 && shape[d] > 1 {
			m.Dims = append(m.Dims, ir.Dim{Extent: shape[d], Stride: strides[d], Box: 1})
			at = append(at, b.from.Index[d])
		}
	}
	return m, at
}
