package ir

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// TensorMap says how boxes of a tensor in global memory are copied to swizzled buffers.
type TensorMap struct {
	// Dims are the tensor's dimensions, from the innermost one, whose elements are neighbours.
	Dims []Dim
	// PanelBytes is the bytes of a row of a box, which is a panel's.
	PanelBytes int64
}

// Dim is a dimension of a tensor: how long it is, how many elements apart its elements are, and how many of them a box
// has.
type Dim struct{ Extent, Stride, Box int64 }

// Elements is how many a box has.
func (m *TensorMap) Elements() int64 {
	n := int64(1)
	for _, d := range m.Dims {
		n *= d.Box
	}
	return n
}

// The most that a tensor map has: dimensions, and elements of a box along each.
const (
	MapDims = 5
	MapBox  = 256
)

// CopyBox begins a copy of a box of a tensor in global memory to a swizzled buffer, by one thread for all. What of the
// box lies outside of the tensor is zero. Nobody may use it before a WaitPhase.
type CopyBox struct {
	// To has the box's first element at Index, where a panel has the first of eight rows.
	To    *Buffer
	Index expr.Expr
	From  *expr.Tensor
	Map   *TensorMap
	// At is where the box begins, in each of the map's dimensions.
	At []expr.Expr
	// Phases has the mbarrier that the copy belongs to at Phase; nil until a pass has given it one.
	Phases *expr.Tensor
	Phase  expr.Expr
}

// Bytes is the size of the box.
func (n *CopyBox) Bytes() int64 { return n.Map.Elements() * n.To.Tensor.DType.Bytes() }

// InitPhases makes an mbarrier of each element of a shared buffer. A phase ends when one thread has arrived and the
// bytes that it expects have come.
type InitPhases struct{ Phases *Buffer }

// EndPhases ends those mbarriers, so that others can be made in their place.
type EndPhases struct{ Phases *Buffer }

// Expect arrives at the mbarrier at Phase, and has its phase wait for so many bytes.
type Expect struct {
	Phases *expr.Tensor
	Phase  expr.Expr
	Bytes  int64
}

// WaitPhase keeps threads until the phase of a parity of the mbarrier at Phase has ended. What its copies bring is
// there then, for all who wait.
type WaitPhase struct {
	Phases        *expr.Tensor
	Phase, Parity expr.Expr
}

func (*CopyBox) stmt()    {}
func (*InitPhases) stmt() {}
func (*EndPhases) stmt()  {}
func (*Expect) stmt()     {}
func (*WaitPhase) stmt()  {}

// exprs calls f on what the copy reads and where it goes to.
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

// rewritten is a copy with its expressions replaced.
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
