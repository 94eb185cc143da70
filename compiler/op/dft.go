package op

import (
	"fmt"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// Discrete Fourier transforms are products with a constant matrix of cosines and sines, whose real and imaginary parts
// are adjacent: a transform of n elements costs 4*n*n multiplications, as one matrix product over all transforms. That
// is faster than the passes of a fast transform up to a few hundred elements; maxTransform limits the matrix.

var dftDefs = []Def{
	{
		Name: "DFT", Kind: Reduction, MinIn: 1, MaxIn: 3, Label: "dft", Infer: inferDFT, Lower: lowerDFT, Layout: rowMajorResult,
		Work: func(n *Node) float64 {
			t := Get(newDFT(n))
			return 2 * float64(array.Elements(n.Out.Shape.Max())) * float64(t.read*t.parts)
		},
	},
	{
		Name: "STFT", Kind: Reduction, MinIn: 2, MaxIn: 4, Label: "stft", Infer: inferSTFT, Lower: lowerSTFT, Layout: rowMajorResult,
		Work: func(n *Node) float64 {
			t := Get(newSTFT(n))
			return 2 * float64(array.Elements(n.Out.Shape.Max())) * float64(t.length*t.parts)
		},
	},
}

const maxTransform = 1 << 12

// transform is a discrete Fourier transform.
type transform struct {
	// axis is the transformed axis of the operand, whose last axis holds the real part and possibly the imaginary one.
	axis  int
	parts int64
	// length is that of the transform, read the number of input elements, bins the number of output elements.
	length, read, bins int64
	inverse            bool
}

func newDFT(n *Node) (*transform, error) {
	x := n.In[0].Shape
	last := x.Rank() - 1
	if last < 1 || !n.In[0].DType.IsFloat() || !x.At(last).Is(1) && !x.At(last).Is(2) {
		return nil, fmt.Errorf("input %v has no last axis with real, or real and imaginary, parts", n.In[0].Type)
	}
	t := &transform{parts: x.Max()[last], inverse: n.Int("inverse", 0) != 0}
	axis := n.Int("axis", 1)
	if n.Opset >= 20 {
		axis = -2
		if n.Has(2) {
			if list := n.KnownInts(2, "axis"); len(list) == 1 {
				axis = list[0]
			}
		}
	}
	t.axis = n.axis(axis, x.Rank())
	if n.err == nil && t.axis == last {
		n.fail("axis %d is that of the parts", axis)
	}
	if x.At(t.axis).IsOpen() {
		n.fail("axis %d of input %v is open, and its transform is not supported: fix it by --shape", t.axis, n.In[0].Type)
	}
	size := x.Max()[t.axis]
	length := []int64{size}
	if n.Has(1) {
		length = n.KnownInts(1, "dft_length")
	}
	if n.err != nil {
		return nil, n.err
	}
	if len(length) != 1 || length[0] < 1 || length[0] > maxTransform {
		return nil, fmt.Errorf("a transform of length %v is not supported: 1 to %d are", length, maxTransform)
	}
	t.length, t.bins = length[0], length[0]
	t.read = min(t.length, size)
	if n.Int("onesided", 0) != 0 {
		if t.inverse {
			return nil, fmt.Errorf("an inverse transform of one side is not supported: transform both sides")
		}
		t.bins = t.length/2 + 1
	}
	return t, n.err
}

func inferDFT(n *Node) (Type, error) {
	t := Get(newDFT(n))
	shape := n.In[0].Shape.With(t.axis, extent.Of(t.bins))
	return Type{n.In[0].DType, shape.With(shape.Rank()-1, extent.Of(2))}, nil
}

// matrix returns the contribution of part p of element j to part q of bin k, at [j, p, k, q].
func (t *transform) matrix(b *Budget, d array.DType, rows int64) *array.Array {
	m := b.array(d, rows, t.parts, t.bins, 2)
	sign, scale := -1.0, 1.0
	if t.inverse {
		sign, scale = 1, 1/float64(t.length)
	}
	at := int64(0)
	for j := range rows {
		for p := range t.parts {
			for k := range t.bins {
				sin, cos := math.Sincos(2 * math.Pi * float64(j*k%t.length) / float64(t.length))
				re, im := cos*scale, sign*sin*scale
				if p == 1 { // times i
					re, im = -im, re
				}
				m.SetFloat(at, re)
				m.SetFloat(at+1, im)
				at += 2
			}
		}
	}
	return m
}

func lowerDFT(l *Lowering, n *Node, in []Operand) Operand {
	t := Get(newDFT(n))
	x := l.matrix(in[0])
	d := wideType(x.DType)
	m := l.Made(t.matrix(l.budget, d, t.read))
	last := n.Out.Shape.Rank() - 1
	acc := l.Reduce("dft", expr.Sum, n.Out.Shape, RowMajor(last+1), extent.Fixed(t.read, t.parts), func(i, r []expr.Expr) expr.Expr {
		j := slices.Clone(i)
		j[t.axis], j[last] = r[0], r[1]
		return expr.MulE(wide(x.At(j...)), m.At(r[0], r[1], i[t.axis], i[last]))
	})
	return narrow(l, n, acc)
}

// frames is a transform of frames of a signal, step elements apart.
type frames struct {
	transform
	step  int64
	count extent.Extent
}

func newSTFT(n *Node) (*frames, error) {
	x := n.In[0].Shape
	if !n.In[0].DType.IsFloat() || x.Rank() != 3 && x.Rank() != 2 || x.Rank() == 3 && !x.At(2).Is(1) && !x.At(2).Is(2) {
		return nil, fmt.Errorf("signal %v is not batch, length and parts", n.In[0].Type)
	}
	t := &frames{transform: transform{axis: 1, parts: 1}}
	if x.Rank() == 3 {
		t.parts = x.Max()[2]
	}
	step := n.KnownInts(1, "frame_step")
	length := []int64{0}
	switch {
	case n.Has(3):
		length = n.KnownInts(3, "frame_length")
	case n.Has(2):
		length = n.In[2].Shape.Max()
	}
	if n.err != nil {
		return nil, n.err
	}
	if len(step) != 1 || len(length) != 1 || step[0] < 1 || length[0] < 1 || length[0] > maxTransform || length[0] > x.At(1).Min() {
		return nil, fmt.Errorf("frames of length %v, %v apart, do not fit a signal of %v, or are longer than %d%s", length, step, x.At(1), maxTransform, fixOpen(x.At(1)))
	}
	if n.Has(2) && (!n.In[2].Shape.Equal(extent.Fixed(length...)) || n.In[2].DType != n.In[0].DType) {
		return nil, fmt.Errorf("window %v does not fit frames of length %d", n.In[2].Type, length[0])
	}
	t.length, t.step = length[0], step[0]
	t.count = x.At(1).Minus(extent.Of(t.length)).Over(extent.Of(t.step)).Plus(extent.Of(1))
	t.bins = t.length
	if n.Int("onesided", 1) != 0 {
		t.bins = t.length/2 + 1
	}
	return t, n.err
}

func inferSTFT(n *Node) (Type, error) {
	t := Get(newSTFT(n))
	return Type{n.In[0].DType, extent.ShapeOf(n.In[0].Shape.At(0), t.count, extent.Of(t.bins), extent.Of(2))}, nil
}

// lowerSTFT multiplies the matrix by the window, at compile time if that is known.
func lowerSTFT(l *Lowering, n *Node, in []Operand) Operand {
	t := Get(newSTFT(n))
	x := l.matrix(in[0])
	m := l.Made(t.matrix(l.budget, wideType(x.DType), t.length))
	if n.Has(2) {
		window := l.matrix(in[2])
		weighed := l.Map("window", m.Shape, RowMajor(4), func(i []expr.Expr) expr.Expr {
			return expr.MulE(m.At(i...), wide(window.At(i[0])))
		})
		m = Get(l.settle(weighed))
	}
	acc := l.Reduce("stft", expr.Sum, n.Out.Shape, RowMajor(4), extent.Fixed(t.length, t.parts), func(i, r []expr.Expr) expr.Expr {
		j := []expr.Expr{i[0], expr.AddE(expr.MulE(i[1], expr.I(t.step)), r[0]), r[1]}
		return expr.MulE(wide(x.At(j[:x.Shape.Rank()]...)), m.At(r[0], r[1], i[2], i[3]))
	})
	return narrow(l, n, acc)
}
