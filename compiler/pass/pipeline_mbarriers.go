package pass

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/machine/nvidia"
)

// mbarriers are barriers in shared memory on which threads wait for box copies.
type mbarriers struct{ *ir.Buffer }

func newMbarriers(n int64) mbarriers {
	return mbarriers{&ir.Buffer{Tensor: ir.Flat("full", array.Uint64, n), Space: ir.Shared}}
}

// alone returns statements that a single thread executes.
func alone(b ...ir.Stmt) *ir.For {
	return &ir.For{Var: &expr.Var{Name: "t", Extent: 1}, Extent: 1, Kind: ir.Threads, Body: b}
}

// init initializes the barriers. The asynchronous proxy sees them after a fence and a barrier.
func (m mbarriers) init() ir.Block {
	return ir.Block{&ir.Alloc{Buffer: m.Buffer}, m.each(nvidia.MbarrierInit), ir.Exec(nvidia.Boxes.Fence), &ir.Barrier{}}
}

// invalidate invalidates them so that their memory can be reused.
func (m mbarriers) invalidate() ir.Stmt { return m.each(nvidia.MbarrierInvalidate) }

// each executes an instruction for each of the barriers.
func (m mbarriers) each(i *ir.Instruction) ir.Stmt {
	var body ir.Block
	for k := range m.Elements() {
		body = append(body, ir.Exec(i, ir.At(m.Buffer, expr.I(k))))
	}
	return alone(body...)
}

// copied starts box copies that signal the mbarrier at place.
func (m mbarriers) copied(place expr.Expr, boxes []*ir.Call) ir.Stmt {
	bytes := int64(0)
	for _, c := range boxes {
		bytes += nvidia.BoxBytes(c)
	}
	body := ir.Block{ir.Exec(nvidia.MbarrierExpect, ir.At(m.Buffer, place), ir.Of(expr.I(bytes)))}
	for _, c := range boxes {
		signalling := nvidia.BoxCopy(len(c.Args[1].Map.Dims), true)
		body = append(body, ir.Exec(signalling, append(slices.Clone(c.Args), ir.At(m.Buffer, place))...))
	}
	return alone(body...)
}

// wait returns a wait for the phase of the given parity at the mbarrier at place.
func (m mbarriers) wait(place, parity expr.Expr) ir.Stmt {
	return ir.Exec(nvidia.MbarrierWait, ir.At(m.Buffer, place), ir.Of(parity))
}

// boxesOf returns the boxes that a statement copies, or nil if it does anything else.
func boxesOf(st ir.Stmt) (boxes []*ir.Call) {
	n, ok := st.(*ir.For)
	if !ok || n.Kind != ir.Threads || n.Extent != 1 {
		return nil
	}
	for _, st := range n.Body {
		c, signals := nvidia.BoxOf(st)
		if c == nil || signals {
			return nil
		}
		boxes = append(boxes, c)
	}
	return boxes
}

// hasBoxes reports whether statements copy boxes.
func hasBoxes(b ir.Block) bool {
	return ir.Any(b, func(c *ir.Call) bool {
		box, _ := nvidia.BoxOf(c)
		return box != nil
	})
}

// atOnce adds waits right after box copies that are not pipelined. Copies separated only by declarations share a wait.
func atOnce(b ir.Block, looped bool) ir.Block {
	var out, after ir.Block
	var boxes []*ir.Call
	flush := func() {
		if boxes == nil {
			return
		}
		p, zero := newMbarriers(1), expr.I(0)
		out = append(append(out, p.init()...), p.copied(zero, boxes), p.wait(zero, zero))
		if looped {
			after = append(after, p.invalidate())
		}
		boxes = nil
	}
	for _, st := range b {
		if list := boxesOf(st); list != nil {
			boxes = append(boxes, list...)
			continue
		}
		_, isAlloc := st.(*ir.Alloc)
		_, isLet := st.(*ir.Let)
		if !isAlloc && !isLet {
			flush()
		}
		out = append(out, st)
	}
	flush()
	return append(out, after...)
}
