package op

import (
	"fmt"

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
			return 2 * float64(array.Elements(n.Out.Shape.Fixed())) * float64(gemmDepth(n))
		},
		Traits: Traits{Product: gemmProduct, Tiled: true},
	},
}

func rowMajorResult(n *Node, _ [][]int) []int { return RowMajor(n.Out.Shape.Rank()) }

func matmulWork(n *Node) float64 {
	a := n.In[0].Shape.Fixed()
	return 2 * float64(array.Elements(n.Out.Shape.Fixed())) * float64(a[len(a)-1])
}

func matmulDetail(n *Node) string { return "x " + times(n.In[1].Shape.Fixed()) }

// inferProduct follows numpy: leading axes broadcast; an operand of rank 1 gets an axis that the result loses again.
func inferProduct(n *Node, rule typeRule) (Type, error) {
	d, err := rule(n)
	if err != nil {
		return Type{}, err
	}
	a, b := n.In[0].Shape.Fixed(), n.In[1].Shape.Fixed()
	if len(a) == 0 || len(b) == 0 {
		return Type{}, fmt.Errorf("operands %v and %v must not be scalars", a, b)
	}
	k := b[max(0, len(b)-2)]
	if a[len(a)-1] != k {
		return Type{}, fmt.Errorf("operands %v and %v do not fit", a, b)
	}
	shape, err := Broadcast(leading(a), leading(b))
	if err != nil {
		return Type{}, err
	}
	if len(a) > 1 {
		shape = append(shape, a[len(a)-2])
	}
	if len(b) > 1 {
		shape = append(shape, b[len(b)-1])
	}
	return Type{d, extent.Fixed(shape...)}, nil
}

// leading returns the batch axes of an operand of a matrix product.
func leading(shape []int64) []int64 { return shape[:max(0, len(shape)-2)] }

func lowerMatMul(l *Lowering, n *Node, in []Operand) (Operand, error) {
	a, b := l.matrix(in[0]), l.matrix(in[1])
	batch, err := Broadcast(leading(a.Shape.Fixed()), leading(b.Shape.Fixed()))
	if err != nil {
		return Operand{}, err
	}
	depth := a.Shape.Fixed()[a.Shape.Rank()-1]
	rank := n.Out.Shape.Rank()
	acc := l.Reduce("matmul", expr.Sum, n.Out.Shape.Fixed(), RowMajor(rank), []int64{depth}, func(i, r []expr.Expr) expr.Expr {
		ai, rest := append([]expr.Expr{}, i[:len(batch)]...), i[len(batch):]
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
	return narrow(l, n, acc), nil
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
func matrixAt(o Operand, batch []int64, i []expr.Expr) expr.Expr {
	own := append([]expr.Expr{}, i[len(i)-o.Shape.Rank():]...)
	skip := len(batch) - len(leading(o.Shape.Fixed()))
	for k, e := range leading(o.Shape.Fixed()) {
		if e == 1 && batch[skip+k] != 1 {
			own[k] = expr.I(0)
		}
	}
	return o.At(own...)
}

func gemmShape(n *Node) (m, k, k2, cols int64) {
	a, b := n.In[0].Shape.Fixed(), n.In[1].Shape.Fixed()
	m, k, k2, cols = a[0], a[1], b[0], b[1]
	if n.Int("transA", 0) != 0 {
		m, k = k, m
	}
	if n.Int("transB", 0) != 0 {
		k2, cols = cols, k2
	}
	return m, k, k2, cols
}

func gemmDepth(n *Node) int64 {
	_, k, _, _ := gemmShape(n)
	return k
}

func inferGemm(n *Node) (Type, error) {
	d, err := numbers(n)
	if err != nil {
		return Type{}, err
	}
	if n.In[0].Shape.Rank() != 2 || n.In[1].Shape.Rank() != 2 {
		return Type{}, fmt.Errorf("operands %v and %v must have rank 2", n.In[0].Shape, n.In[1].Shape)
	}
	m, k, k2, cols := gemmShape(n)
	if k != k2 {
		return Type{}, fmt.Errorf("operands %v and %v do not fit", n.In[0].Shape, n.In[1].Shape)
	}
	out := Type{d, extent.Fixed(m, cols)}
	if n.Has(2) {
		if s, err := Broadcast(out.Shape.Fixed(), n.In[2].Shape.Fixed()); err != nil || !sameShape(s, out.Shape.Fixed()) {
			return Type{}, fmt.Errorf("bias %v does not fit %v", n.In[2].Shape, out.Shape)
		}
	}
	n.Float("alpha", 1)
	n.Float("beta", 1)
	return out, nil
}

// lowerGemm computes out[m,n] = alpha * sum over k of a[m,k]*b[k,n], plus beta*c[m,n].
func lowerGemm(l *Lowering, n *Node, in []Operand) (Operand, error) {
	transA, transB := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0
	a, b := l.matrix(in[0]), in[1]
	if transB {
		b = l.Arrange(b, []int{1, 0})
	}
	b = l.matrix(b)
	acc := l.Reduce("dense", expr.Sum, n.Out.Shape.Fixed(), RowMajor(2), []int64{gemmDepth(n)}, func(i, r []expr.Expr) expr.Expr {
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
		return narrow(l, n, acc), nil
	}
	var c Operand
	if n.Has(2) {
		c = in[2]
		if c.Const != nil {
			c = l.Arrange(c, withoutUnits(c.Shape.Fixed(), c.Layout))
		}
	}
	return l.Lazy(n.Out, acc.Layout, func(i []expr.Expr) expr.Expr {
		e := acc.At(i...)
		if alpha != 1 {
			e = expr.MulE(e, like(e, alpha))
		}
		if n.Has(2) && beta != 0 {
			x := wide(c.Broadcast(n.Out.Shape.Fixed(), i))
			if beta != 1 {
				x = expr.MulE(x, like(x, beta))
			}
			e = expr.AddE(e, x)
		}
		return expr.To(n.Out.DType, e)
	}), nil
}
