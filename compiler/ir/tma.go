package ir

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// TensorMap describes how boxes of a tensor in global memory are copied to swizzled buffers.
type TensorMap struct {
	// Dims lists the tensor's dimensions, starting with the innermost, contiguous one.
	Dims []Dim
	// PanelBytes is the size of a row of a box, which is that of a panel.
	PanelBytes int64
}

// Dim is a dimension of a tensor: its extent, its stride in elements, and the box's extent in it.
type Dim struct{ Extent, Stride, Box int64 }

// Elements returns the number of elements of a box.
func (m *TensorMap) Elements() int64 {
	n := int64(1)
	for _, d := range m.Dims {
		n *= d.Box
	}
	return n
}

// Limits of a tensor map: dimensions, and box elements along each.
const (
	MapDims = 5
	MapBox  = 256
)

// TMACopy starts a copy of a box of a tensor in global memory to a swizzled buffer, issued by one thread for all.
// Parts of the box outside the tensor are zero. The data must not be used before an MbarrierWait.
type TMACopy struct {
	// To receives the box's first element at Index, which must start a group of eight rows of a panel.
	To    *Buffer
	Index expr.Expr
	From  *expr.Tensor
	Map   *TensorMap
	// At is the start of the box in each of the map's dimensions.
	At []expr.Expr
	// Mbarriers holds the mbarrier of the copy at index Mbarrier; nil until a pass has assigned it.
	Mbarriers *expr.Tensor
	Mbarrier  expr.Expr
}

// Bytes returns the size of the box.
func (n *TMACopy) Bytes() int64 { return n.Map.Elements() * n.To.Tensor.DType.Bytes() }

// MbarrierInit initializes an mbarrier in each element of a shared buffer. A phase completes when one thread has
// arrived and the expected bytes have been copied.
type MbarrierInit struct{ Mbarriers *Buffer }

// MbarrierInvalidate invalidates those mbarriers, so that their memory can be reused.
type MbarrierInvalidate struct{ Mbarriers *Buffer }

// MbarrierExpect arrives at an mbarrier, and adds the given bytes to its phase's expected count.
type MbarrierExpect struct {
	Mbarriers *expr.Tensor
	Mbarrier  expr.Expr
	Bytes     int64
}

// MbarrierWait waits until the phase of the given parity of an mbarrier has completed. The data of its
// copies is then visible to all waiting threads.
type MbarrierWait struct {
	Mbarriers        *expr.Tensor
	Mbarrier, Parity expr.Expr
}

func (*TMACopy) stmt()            {}
func (*MbarrierInit) stmt()       {}
func (*MbarrierInvalidate) stmt() {}
func (*MbarrierExpect) stmt()     {}
func (*MbarrierWait) stmt()       {}

// exprs calls f for the source and destination expressions of the copy.
func (n *TMACopy) exprs(f func(expr.Expr)) {
	f(n.Index)
	f(n.From.At(expr.I(0)))
	for _, x := range n.At {
		f(x)
	}
	if n.Mbarriers != nil {
		f(n.Mbarriers.At(n.Mbarrier))
	}
}

// rewritten returns the copy with its expressions replaced.
func (n *TMACopy) rewritten(f func(expr.Expr) expr.Expr) *TMACopy {
	c := *n
	c.Index, c.At = f(n.Index), make([]expr.Expr, len(n.At))
	for k, x := range n.At {
		c.At[k] = f(x)
	}
	if n.Mbarriers != nil {
		c.Mbarrier = f(n.Mbarrier)
	}
	return &c
}

func (t *texter) box(n *TMACopy) {
	var at, box []string
	for k, d := range n.Map.Dims {
		at, box = append(at, t.expr(n.At[k])), append(box, fmt.Sprint(d.Box))
	}
	behind := ""
	if n.Mbarriers != nil {
		behind = fmt.Sprintf(" for %s[%s]", n.Mbarriers.Name, t.expr(n.Mbarrier))
	}
	t.line("copy box %s at (%s) of %s to %s[%s]%s", strings.Join(box, "x"), strings.Join(at, ", "), n.From.Name, n.To.Tensor.Name, t.expr(n.Index), behind)
}
