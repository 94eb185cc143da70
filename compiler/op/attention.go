package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

// FusedAttention is softmax attention as one operator. Models do not contain it; the graph compiler recognises its
// decomposed form.
//
//	softmax(scale * a b + mask) c        over the last axis of a b
//
// Its operands are a [..., M, D], b [..., D, N], c [..., N, E] with equal leading axes, except that those of b and
// c may be one where those of a share them. An optional mask broadcasts to [..., M, N]: it holds numbers to add or,
// as Bool, selects the scores that count; others become -infinity or the attribute fill. The scores of a block of
// rows are computed, normalised and used while they lie in the cache. With the attribute masked, a row whose scores
// are all -infinity gives zeros.
const FusedAttention = "attention"

var attentionDefs = []Def{{
	Name: FusedAttention, Internal: true, Kind: Reduction, MinIn: 3, MaxIn: 4, Label: "attention", Infer: inferAttention,
	Lower: lowerAttention, Layout: rowMajorResult,
	Work: func(n *Node) float64 {
		a, b := n.In[0].Shape.Max(), n.In[1].Shape.Max()
		depth := float64(a[len(a)-1] + n.Out.Shape.Max()[len(a)-1])
		return 2 * float64(array.Elements(a[:len(a)-1])) * float64(b[len(b)-1]) * depth
	},
	Detail: func(n *Node) string { return "x " + times(n.In[1].Shape.Max()) },
}}

func inferAttention(n *Node) (Type, error) {
	a, b, c := n.In[0].Shape, n.In[1].Shape, n.In[2].Shape
	d, rank := n.In[0].DType, a.Rank()
	if rank < 2 || b.Rank() != rank || c.Rank() != rank || !d.IsFloat() || n.In[1].DType != d || n.In[2].DType != d {
		return Type{}, fmt.Errorf("operands %v, %v and %v are not matrices of one floating point type and rank", n.In[0].Type, n.In[1].Type, n.In[2].Type)
	}
	if !sharedBy(leading(b), leading(a)) || !leading(b).Equal(leading(c)) || a.At(rank-1) != b.At(rank-2) || b.At(rank-1) != c.At(rank-2) {
		return Type{}, fmt.Errorf("operands %v, %v and %v do not fit", a, b, c)
	}
	scores := a.With(rank-1, b.At(rank-1))
	if n.Has(3) {
		m := n.In[3]
		if s, err := Broadcast(scores, m.Shape); err != nil || !s.Equal(scores) || m.DType != d && m.DType != array.Bool {
			return Type{}, fmt.Errorf("mask %v does not fit scores %v", m.Type, scores)
		}
	}
	n.Float("scale", 1)
	n.Float("fill", 0)
	n.Int(maskedAttribute, 0)
	return Type{d, a.With(rank-1, c.At(rank-1))}, nil
}

// sharedBy reports whether a shape has the extents of another one, or one in place of some.
func sharedBy(shape, whole extent.Shape) bool {
	all, err := Broadcast(whole, shape)
	return err == nil && all.Equal(whole)
}

// lowerAttention has stages for the two products and the softmax between them. The sum's reciprocal is applied to
// the result, which is smaller than the scores. The operands b and c are stages, too, so that a schedule can choose
// their layout.
func lowerAttention(l *Lowering, n *Node, in []Operand) Operand {
	rank := n.Out.Shape.Rank()
	a, b, c := l.matrix(in[0]), l.matrix(in[1]), l.matrix(in[2])
	keys := l.Map("keys", b.Shape, RowMajor(rank), func(i []expr.Expr) expr.Expr { return wide(b.At(i...)) })
	values := l.Map("values", c.Shape, RowMajor(rank), func(i []expr.Expr) expr.Expr { return wide(c.At(i...)) })
	scores := a.Shape.With(rank-1, b.Shape.At(rank-1))
	batch := func(i []expr.Expr, rest ...expr.Expr) []expr.Expr {
		return append(append([]expr.Expr{}, i[:rank-2]...), rest...)
	}
	shared := func(i []expr.Expr, rest ...expr.Expr) []expr.Expr {
		own := batch(i, rest...)
		for k := range rank - 2 {
			if b.Shape.At(k).Is(1) && !a.Shape.At(k).Is(1) {
				own[k] = expr.I(0)
			}
		}
		return own
	}
	product := l.Reduce("scores", expr.Sum, scores, RowMajor(rank), a.Shape.Slice(rank-1, rank), func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(wide(a.At(batch(i, i[rank-2], r[0])...)), keys.At(shared(i, r[0], i[rank-1])...))
	})
	masked := l.Map("masked", scores, RowMajor(rank), maskedScore(l, n, in, product, scores))
	kept, terms := scores.Slice(0, rank-1), scores.Slice(rank-1, rank)
	row := func(i []expr.Expr, r expr.Expr) []expr.Expr { return append(append([]expr.Expr{}, i[:rank-1]...), r) }
	largest := l.Reduce("largest", expr.Maximum, kept, RowMajor(rank-1), terms, func(i, r []expr.Expr) expr.Expr {
		return masked.At(row(i, r[0])...)
	})
	exp := l.Map("exp", scores, RowMajor(rank), func(i []expr.Expr) expr.Expr {
		return expr.Un(expr.Exp, expr.SubE(masked.At(i...), softmaxShift(n, largest.At(i[:rank-1]...))))
	})
	sum := l.Reduce("sum", expr.Sum, kept, RowMajor(rank-1), terms, func(i, r []expr.Expr) expr.Expr {
		return exp.At(row(i, r[0])...)
	})
	total := l.Map("total", kept, RowMajor(rank-1), func(i []expr.Expr) expr.Expr { return softmaxFactor(n, sum.At(i...)) })
	mixed := l.Reduce("mixed", expr.Sum, n.Out.Shape, RowMajor(rank), terms, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(exp.At(row(i, r[0])...), values.At(shared(i, r[0], i[rank-1])...))
	})
	return l.Lazy(n.Out, RowMajor(rank), func(i []expr.Expr) expr.Expr {
		return expr.To(n.Out.DType, expr.MulE(mixed.At(i...), total.At(i[:rank-1]...)))
	})
}

// maskedScore returns a scaled and masked score.
func maskedScore(l *Lowering, n *Node, in []Operand, product Operand, shape extent.Shape) func(i []expr.Expr) expr.Expr {
	scale, fill := n.Float("scale", 1), n.Float("fill", 0)
	var mask Operand
	if n.Has(3) {
		mask = l.Readable(in[3])
	}
	return func(i []expr.Expr) expr.Expr {
		e := product.At(i...)
		if scale != 1 {
			e = expr.MulE(e, like(e, scale))
		}
		switch {
		case !n.Has(3):
			return e
		case mask.DType == array.Bool:
			return expr.Sel(mask.Broadcast(shape, i), e, like(e, fill))
		}
		return expr.AddE(e, wide(mask.Broadcast(shape, i)))
	}
}
