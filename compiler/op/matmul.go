package op

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var matmulDefs = []Def{
	{
		Name: MatMul, Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "matmul", Lower: lowerMatMul,
		Infer:  func(n *Node) (Type, error) { return inferProduct(n, numbers) },
		Layout: rowMajorResult, Work: matmulWork, Detail: matmulDetail,
		Traits: Traits{Product: matmulProduct, Tiled: true},
	},
	{
		Name: Gemm, Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "dense", ChannelsOut: true, Infer: inferGemm, Lower: lowerGemm,
		Layout: rowMajorResult, Work: func(n *Node) float64 {
			return 2 * float64(array.Elements(n.Out.Shape.Max())) * float64(gemmDepth(n).Max())
		},
		Traits: Traits{Product: gemmProduct, Tiled: true},
	},
}

func rowMajorResult(n *Node, _ [][]int) []int { return RowMajor(n.Out.Shape.Rank()) }

func matmulWork(n *Node) float64 {
	a := n.In[0].Shape.Max()
	return 2 * float64(array.Elements(n.Out.Shape.Max())) * float64(a[len(a)-1])
}

func matmulDetail(n *Node) string { return "x " + times(n.In[1].Shape.Max()) }

// inferProduct follows numpy: leading axes broadcast; an operand of rank 1 gets an axis that the result loses again.
func inferProduct(n *Node, rule typeRule) (Type, error) {
	d := Get(rule(n))
	a, b := n.In[0].Shape, n.In[1].Shape
	if a.Rank() == 0 || b.Rank() == 0 {
		return Type{}, fmt.Errorf("operands %v and %v must not be scalars", a, b)
	}
	if k, k2 := a.At(a.Rank()-1), b.At(max(0, b.Rank()-2)); k != k2 {
		return Type{}, fmt.Errorf("operands %v and %v do not fit%s", a, b, unequal(k, k2))
	}
	batch := Get(Broadcast(leading(a), leading(b)))
	shape := slices.Clone(batch.Extents())
	if a.Rank() > 1 {
		shape = append(shape, a.At(a.Rank()-2))
	}
	if b.Rank() > 1 {
		shape = append(shape, b.At(b.Rank()-1))
	}
	return Type{d, extent.ShapeOf(shape...)}, nil
}

// leading returns the batch axes of an operand of a matrix product.
func leading(shape extent.Shape) extent.Shape { return shape.Slice(0, max(0, shape.Rank()-2)) }

func lowerMatMul(l *Lowering, n *Node, in []Operand) Operand {
	a, b := l.matrix(in[0]), l.matrix(in[1])
	batch := Get(Broadcast(leading(a.Shape), leading(b.Shape)))
	depth := a.Shape.At(a.Shape.Rank() - 1)
	rank := n.Out.Shape.Rank()
	acc := l.Reduce("matmul", expr.Sum, n.Out.Shape, RowMajor(rank), extent.ShapeOf(depth), func(i, r []expr.Expr) expr.Expr {
		ai, rest := append([]expr.Expr{}, i[:batch.Rank()]...), i[batch.Rank():]
		bi := append(append([]expr.Expr{}, ai...), r[0])
		if a.Shape.Rank() > 1 {
			ai, rest = append(ai, rest[0]), rest[1:]
		}
		ai = append(ai, r[0])
		if b.Shape.Rank() > 1 {
			bi = append(bi, rest[0])
		}
		return expr.MulE(factor(n, matrixAt(a, batch, ai)), factor(n, matrixAt(b, batch, bi)))
	})
	return narrow(l, n, acc)
}

// factor converts an operand of a product to the accumulator type.
func factor(n *Node, e expr.Expr) expr.Expr {
	if e.DType().IsFloat() {
		return wide(e)
	}
	return expr.To(wideType(n.Out.DType), e)
}

// matrix makes an operand of a product readable: even one element stays in memory, so that the product has two loads.
func (l *Lowering) matrix(o Operand) Operand { return l.Arrange(o, o.Layout) }

// matrixAt reads an operand of lower rank than the batch, or with broadcast batch axes.
func matrixAt(o Operand, batch extent.Shape, i []expr.Expr) expr.Expr {
	own := append([]expr.Expr{}, i[len(i)-o.Shape.Rank():]...)
	skip := batch.Rank() - leading(o.Shape).Rank()
	for k, e := range leading(o.Shape).Extents() {
		if e.Is(1) && !batch.At(skip+k).Is(1) {
			own[k] = expr.I(0)
		}
	}
	return o.At(own...)
}

func gemmShape(n *Node) (m, k, k2, cols extent.Extent) {
	a, b := n.In[0].Shape, n.In[1].Shape
	m, k, k2, cols = a.At(0), a.At(1), b.At(0), b.At(1)
	if n.Int("transA", 0) != 0 {
		m, k = k, m
	}
	if n.Int("transB", 0) != 0 {
		k2, cols = cols, k2
	}
	return m, k, k2, cols
}

func gemmDepth(n *Node) extent.Extent {
	_, k, _, _ := gemmShape(n)
	return k
}

func inferGemm(n *Node) (Type, error) {
	d := Get(numbers(n))
	if n.In[0].Shape.Rank() != 2 || n.In[1].Shape.Rank() != 2 {
		return Type{}, fmt.Errorf("operands %v and %v must have rank 2", n.In[0].Shape, n.In[1].Shape)
	}
	m, k, k2, cols := gemmShape(n)
	if k != k2 {
		return Type{}, fmt.Errorf("operands %v and %v do not fit%s", n.In[0].Shape, n.In[1].Shape, unequal(k, k2))
	}
	out := Type{d, extent.ShapeOf(m, cols)}
	if n.Has(2) {
		if s, err := Broadcast(out.Shape, n.In[2].Shape); err != nil || !s.Equal(out.Shape) {
			return Type{}, fmt.Errorf("bias %v does not fit %v", n.In[2].Shape, out.Shape)
		}
	}
	n.Float("alpha", 1)
	n.Float("beta", 1)
	return out, nil
}

// lowerGemm computes out[m,n] = alpha * sum over k of a[m,k]*b[k,n], plus beta*c[m,n].
func lowerGemm(l *Lowering, n *Node, in []Operand) Operand {
	transA, transB := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0
	a, b := l.matrix(in[0]), in[1]
	if transB {
		b = l.Arrange(b, []int{1, 0})
	}
	b = l.matrix(b)
	acc := l.Reduce("dense", expr.Sum, n.Out.Shape, RowMajor(2), extent.ShapeOf(gemmDepth(n)), func(i, r []expr.Expr) expr.Expr {
		ai, bi := []expr.Expr{i[0], r[0]}, []expr.Expr{r[0], i[1]}
		if transA {
			ai[0], ai[1] = ai[1], ai[0]
		}
		if transB {
			bi[0], bi[1] = bi[1], bi[0]
		}
		return expr.MulE(wide(a.At(ai...)), wide(b.At(bi...)))
	})
	alpha, beta := n.Float("alpha", 1), n.Float("beta", 1)
	if alpha == 1 && (!n.Has(2) || beta == 0) {
		return narrow(l, n, acc)
	}
	var c Operand
	if n.Has(2) {
		c = in[2]
		if c.Const != nil {
			c = l.Arrange(c, withoutUnits(c.Shape.Max(), c.Layout))
		}
	}
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr {
		e := acc.At(i...)
		if alpha != 1 {
			e = expr.MulE(e, like(e, alpha))
		}
		if n.Has(2) && beta != 0 {
			x := wide(c.Broadcast(n.Out.Shape, i))
			if beta != 1 {
				x = expr.MulE(x, like(x, beta))
			}
			e = expr.AddE(e, x)
		}
		return expr.To(n.Out.DType, e)
	})
}
