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

// CopyBox starts a copy of a box of a tensor in global memory to a swizzled buffer, issued by one thread for all.
// Parts of the box outside the tensor are zero. The data must not be used before a WaitPhase.
type CopyBox struct {
	// To receives the box's first element at Index, which must start a group of eight rows of a panel.
	To    *Buffer
	Index expr.Expr
	From  *expr.Tensor
	Map   *TensorMap
	// At is the start of the box in each of the map's dimensions.
	At []expr.Expr
	// Phases holds the mbarrier of the copy at Phase; nil until a pass has assigned it.
	Phases *expr.Tensor
	Phase  expr.Expr
}

// Bytes returns the size of the box.
func (n *CopyBox) Bytes() int64 { return n.Map.Elements() * n.To.Tensor.DType.Bytes() }

// InitPhases initializes an mbarrier in each element of a shared buffer. A phase completes when one thread has
// arrived and the expected bytes have been copied.
type InitPhases struct{ Phases *Buffer }

// EndPhases invalidates those mbarriers, so that their memory can be reused.
type EndPhases struct{ Phases *Buffer }

// Expect arrives at the mbarrier at Phase, and adds the given bytes to its phase's expected count.
type Expect struct {
	Phases *expr.Tensor
	Phase  expr.Expr
	Bytes  int64
}

// WaitPhase waits until the phase of the given parity of the mbarrier at Phase has completed. The data of its
// copies is then visible to all waiting threads.
type WaitPhase struct {
	Phases        *expr.Tensor
	Phase, Parity expr.Expr
}

func (*CopyBox) stmt()    {}
func (*InitPhases) stmt() {}
func (*EndPhases) stmt()  {}
func (*Expect) stmt()     {}
func (*WaitPhase) stmt()  {}

// exprs calls f for the source and destination expressions of the copy.
func (n *CopyBox) exprs(f func(expr.Expr)) {
	f(n.Index)
	f(n.From.At(expr.I(0)))
	for _, x := range n.At {
		f(x)
	}
	if n.Phases != nil {
		f(n.Phases.At(n.Phase))
	}
}

// rewritten returns the copy with its expressions replaced.
func (n *CopyBox) rewritten(f func(expr.Expr) expr.Expr) *CopyBox {
	c := *n
	c.Index, c.At = f(n.Index), make([]expr.Expr, len(n.At))
	for k, x := range n.At {
		c.At[k] = f(x)
	}
	if n.Phases != nil {
		c.Phase = f(n.Phase)
	}
	return &c
}

func (t *texter) box(n *CopyBox) {
	var at, box []string
	for k, d := range n.Map.Dims {
		at, box = append(at, t.expr(n.At[k])), append(box, fmt.Sprint(d.Box))
	}
	behind := ""
	if n.Phases != nil {
		behind = fmt.Sprintf(" for %s[%s]", n.Phases.Name, t.expr(n.Phase))
	}
	t.line("copy box %s at (%s) of %s to %s[%s]%s", strings.Join(box, "x"), strings.Join(at, ", "), n.From.Name, n.To.Tensor.Name, t.expr(n.Index), behind)
}
