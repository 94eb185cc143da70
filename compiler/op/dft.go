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
			t, err := newDFT(n)
			if err != nil {
				return 0
			}
			return 2 * float64(array.Elements(n.Out.Shape.Fixed())) * float64(t.read*t.parts)
		},
	},
	{
		Name: "STFT", Kind: Reduction, MinIn: 2, MaxIn: 4, Label: "stft", Infer: inferSTFT, Lower: lowerSTFT, Layout: rowMajorResult,
		Work: func(n *Node) float64 {
			t, err := newSTFT(n)
			if err != nil {
				return 0
			}
			return 2 * float64(array.Elements(n.Out.Shape.Fixed())) * float64(t.length*t.parts)
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
	x := n.In[0].Shape.Fixed()
	if len(x) < 2 || !n.In[0].DType.IsFloat() || x[len(x)-1] != 1 && x[len(x)-1] != 2 {
		return nil, fmt.Errorf("input %v has no last axis with real, or real and imaginary, parts", n.In[0].Type)
	}
	t := &transform{parts: x[len(x)-1], inverse: n.Int("inverse", 0) != 0}
	axis := n.Int("axis", 1)
	if n.Opset >= 20 {
		axis = -2
		if n.Has(2) {
			if list := n.KnownInts(2, "axis"); len(list) == 1 {
				axis = list[0]
			}
		}
	}
	t.axis = n.axis(axis, len(x))
	if n.err == nil && t.axis == len(x)-1 {
		n.fail("axis %d is that of the parts", axis)
	}
	length := []int64{x[t.axis]}
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
	t.read = min(t.length, x[t.axis])
	if n.Int("onesided", 0) != 0 {
		if t.inverse {
			return nil, fmt.Errorf("an inverse transform of one side is not supported: transform both sides")
		}
		t.bins = t.length/2 + 1
	}
	return t, n.err
}

func inferDFT(n *Node) (Type, error) {
	t, err := newDFT(n)
	if err != nil {
		return Type{}, err
	}
	shape := slices.Clone(n.In[0].Shape.Fixed())
	shape[t.axis], shape[len(shape)-1] = t.bins, 2
	return Type{n.In[0].DType, extent.Fixed(shape...)}, nil
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

func lowerDFT(l *Lowering, n *Node, in []Operand) (Operand, error) {
	t, err := newDFT(n)
	if err != nil {
		return Operand{}, err
	}
	x := l.matrix(in[0])
	d := wideType(x.DType)
	m := l.Made(t.matrix(l.budget, d, t.read))
	shape := n.Out.Shape.Fixed()
	last := len(shape) - 1
	acc := l.Reduce("dft", expr.Sum, shape, RowMajor(len(shape)), []int64{t.read, t.parts}, func(i, r []expr.Expr) expr.Expr {
		j := slices.Clone(i)
		j[t.axis], j[last] = r[0], r[1]
		return expr.MulE(wide(x.At(j...)), m.At(r[0], r[1], i[t.axis], i[last]))
	})
	return narrow(l, n, acc), nil
}

// frames is a transform of frames of a signal, step elements apart.
type frames struct {
	transform
	step, count int64
}

func newSTFT(n *Node) (*frames, error) {
	x := n.In[0].Shape.Fixed()
	if !n.In[0].DType.IsFloat() || len(x) != 3 && len(x) != 2 || len(x) == 3 && x[2] != 1 && x[2] != 2 {
		return nil, fmt.Errorf("signal %v is not batch, length and parts", n.In[0].Type)
	}
	t := &frames{transform: transform{axis: 1, parts: 1}}
	if len(x) == 3 {
		t.parts = x[2]
	}
	step := n.KnownInts(1, "frame_step")
	length := []int64{0}
	switch {
	case n.Has(3):
		length = n.KnownInts(3, "frame_length")
	case n.Has(2):
		length = n.In[2].Shape.Fixed()
	}
	if n.err != nil {
		return nil, n.err
	}
	if len(step) != 1 || len(length) != 1 || step[0] < 1 || length[0] < 1 || length[0] > maxTransform || length[0] > x[1] {
		return nil, fmt.Errorf("frames of length %v, %v apart, do not fit a signal of %d, or are longer than %d", length, step, x[1], maxTransform)
	}
	if n.Has(2) && (!sameShape(n.In[2].Shape.Fixed(), length) || n.In[2].DType != n.In[0].DType) {
		return nil, fmt.Errorf("window %v does not fit frames of length %d", n.In[2].Type, length[0])
	}
	t.length, t.step = length[0], step[0]
	t.count = (x[1]-t.length)/t.step + 1
	t.bins = t.length
	if n.Int("onesided", 1) != 0 {
		t.bins = t.length/2 + 1
	}
	return t, n.err
}

func inferSTFT(n *Node) (Type, error) {
	t, err := newSTFT(n)
	if err != nil {
		return Type{}, err
	}
	return Type{n.In[0].DType, extent.Fixed(n.In[0].Shape.Fixed()[0], t.count, t.bins, 2)}, nil
}

// lowerSTFT multiplies the matrix by the window, at compile time if that is known.
func lowerSTFT(l *Lowering, n *Node, in []Operand) (Operand, error) {
	t, err := newSTFT(n)
	if err != nil {
		return Operand{}, err
	}
	x := l.matrix(in[0])
	m := l.Made(t.matrix(l.budget, wideType(x.DType), t.length))
	if n.Has(2) {
		window := l.matrix(in[2])
		weighed := l.Map("window", m.Shape.Fixed(), RowMajor(4), func(i []expr.Expr) expr.Expr {
			return expr.MulE(m.At(i...), wide(window.At(i[0])))
		})
		if m, err = l.settle(weighed); err != nil {
			return Operand{}, err
		}
	}
	acc := l.Reduce("stft", expr.Sum, n.Out.Shape.Fixed(), RowMajor(4), []int64{t.length, t.parts}, func(i, r []expr.Expr) expr.Expr {
		j := []expr.Expr{i[0], expr.AddE(expr.MulE(i[1], expr.I(t.step)), r[0]), r[1]}
		return expr.MulE(wide(x.At(j[:x.Shape.Rank()]...)), m.At(r[0], r[1], i[2], i[3]))
	})
	return narrow(l, n, acc), nil
}
