package nvidia

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/ir"
)

// Boxes are copies of boxes of tensors to shared memory, which one thread starts for all (TMA). Each signals an
// mbarrier.
var Boxes = &ir.Async{Name: "boxes", Fence: FenceAsync, Published: true}

// FenceAsync orders the threads' accesses to shared memory before those of boxes and products.
var FenceAsync = &ir.Instruction{Name: "fence.async", By: ir.ByBlock, Orders: true, Text: "FENCE_ASYNC();"}

// Limits of a tensor map: dimensions, and elements of a box along each.
const (
	MinMapDims = 2
	MaxMapDims = 5
	MapBox     = 256
)

// BoxCopy returns the copy of a box of a tensor with some number of dimensions, between MinMapDims and MaxMapDims.
// Its operands are the destination, which must start a group of eight rows of a panel, the tensor, and the start of
// the box in each of the map's dimensions. Parts of the box outside the tensor are zero. A copy that signals has an
// mbarrier as another operand, and becomes asynchronous.
func BoxCopy(dims int, signals bool) *ir.Instruction {
	i := &ir.Instruction{
		Name: fmt.Sprintf("copy.box.%dd", dims), By: ir.ByThread, Text: fmt.Sprintf("COPY_TENSOR_%dD(%%s, %%s", dims),
		Params: []ir.Param{
			{Name: "to", Use: ir.Write, In: ir.Shared, Swizzled: true, Async: signals, Form: ir.Place},
			{Name: "from", Use: ir.Read, Form: ir.Mapped},
		},
	}
	for range dims {
		i.Params = append(i.Params, ir.Param{Name: "at", Form: ir.Number})
		i.Text += ", %s"
	}
	if signals {
		i.Starts = Boxes
		i.Params = append(i.Params, mbarrier)
		i.Text += ", %s"
	}
	i.Text += ");"
	return i
}

// BoxOf returns the copy of a box that a statement makes, and whether it signals an mbarrier; nil if the statement is
// none.
func BoxOf(st ir.Stmt) (c *ir.Call, signals bool) {
	c, ok := st.(*ir.Call)
	if !ok || len(c.Params) < 2 || c.Params[1].Form != ir.Mapped {
		return nil, false
	}
	return c, c.Starts != nil
}

// BoxBytes returns the size of a box.
func BoxBytes(c *ir.Call) int64 { return c.Args[1].Map.Elements() * c.Args[0].Tensor.DType.Bytes() }

// mbarrier is an operand in shared memory. A phase completes when one thread has arrived and the expected bytes have
// been copied.
var mbarrier = ir.Param{Name: "mbarrier", Use: ir.Read, In: ir.Shared, Bytes: 8, Form: ir.Place}

// MbarrierInit initialises an mbarrier, and MbarrierInvalidate invalidates it, so that its memory can be reused.
// MbarrierExpect arrives at it, and adds bytes to the expected ones of its phase. MbarrierWait waits until the phase
// of a parity has completed.
var (
	MbarrierInit       = &ir.Instruction{Name: "mbarrier.init", By: ir.ByThread, Orders: true, Params: []ir.Param{writtenMbarrier}, Text: "MBARRIER_INIT(%s, 1);"}
	MbarrierInvalidate = &ir.Instruction{Name: "mbarrier.invalidate", By: ir.ByThread, Orders: true, Params: []ir.Param{writtenMbarrier}, Text: "MBARRIER_INVALIDATE(%s);"}
	MbarrierExpect     = &ir.Instruction{Name: "mbarrier.expect", By: ir.ByThread, Orders: true, Params: []ir.Param{mbarrier, {Name: "bytes", Form: ir.Number}}, Text: "MBARRIER_EXPECT(%s, %s);"}
	MbarrierWait       = &ir.Instruction{Name: "mbarrier.wait", By: ir.ByBlock, Orders: true, Waits: Boxes, Params: []ir.Param{mbarrier, {Name: "parity", Form: ir.Number}}, Text: "MBARRIER_WAIT(%s, %s);"}
)

var writtenMbarrier = ir.Param{Name: "mbarrier", Use: ir.Write, In: ir.Shared, Form: ir.Place}
