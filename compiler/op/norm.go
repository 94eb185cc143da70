package op

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
)

var normDefs = []Def{
	{Name: BatchNormalization, Kind: ElementWise, MinIn: 5, MaxIn: 5, Infer: inferBatchNorm, Lower: lowerBatchNorm},
	{
		Name: LayerNormalization, Kind: Reduction, MinIn: 2, MaxIn: 3, Label: "layernorm", Traits: Traits{Rowwise: true},
		Infer: inferLayerNorm, Work: func(n *Node) float64 { return 6 * firstOperandWork(n) },
		Lower: func(l *Lowering, n *Node, in []Operand) Operand {
			return lowerNorm(l, n, in, layerNormAxes(n), func(p Operand, i []expr.Expr) expr.Expr {
				return p.Broadcast(n.Out.Shape, i)
			})
		},
	},
	{
		Name: RMSNormalization, Kind: Reduction, MinIn: 2, MaxIn: 2, Label: "rmsnorm", Traits: Traits{Rowwise: true},
		Infer: inferLayerNorm, Lower: lowerRMSNorm, Work: func(n *Node) float64 { return 4 * firstOperandWork(n) },
	},
	{
		Name: "InstanceNormalization", Kind: Reduction, MinIn: 3, MaxIn: 3, Label: "instancenorm", Traits: Traits{Rowwise: true},
		Infer: inferInstanceNorm, Work: func(n *Node) float64 { return 6 * firstOperandWork(n) },
		Lower: func(l *Lowering, n *Node, in []Operand) Operand {
			axes := make([]bool, n.In[0].Shape.Rank())
			for k := 2; k < len(axes); k++ {
				axes[k] = true
			}
			return lowerNorm(l, n, in, axes, func(p Operand, i []expr.Expr) expr.Expr { return p.At(i[1]) })
		},
	},
}

// lowerRMSNorm computes x / sqrt(mean of squares + epsilon) * scale (Zhang and Sennrich 2019): stages sum of
// squares, reciprocal.
func lowerRMSNorm(l *Lowering, n *Node, in []Operand) Operand {
	x, scale, axes := l.Readable(in[0]), l.Readable(in[1]), layerNormAxes(n)
	squares := l.reduceAxes("squares", expr.Sum, x, axes, func(i, _ []expr.Expr) expr.Expr { return square(wide(x.At(i...))) })
	inverse := l.inverseRoot(n, squares, elementsOver(x.Shape, axes))
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		e := expr.MulE(wide(x.At(i...)), inverse.At(keptOf(i, axes)...))
		return expr.To(n.Out.DType, expr.MulE(e, wide(scale.Broadcast(n.Out.Shape, i))))
	})
}

// inverseRoot returns the stage 1 / sqrt(sum/count + epsilon).
func (l *Lowering) inverseRoot(n *Node, sum Operand, elements extent.Extent) Operand {
	return l.Map("inverse", sum.Shape, sum.Layout, func(i []expr.Expr) expr.Expr {
		e := sum.At(i...)
		mean := expr.AddE(expr.MulE(e, count{l, elements}.inverse(e.DType())), like(e, n.Float("epsilon", 1e-5)))
		return expr.DivE(like(e, 1), expr.Un(expr.Sqrt, mean))
	})
}

func inferBatchNorm(n *Node) (Type, error) {
	d, x := n.In[0].DType, n.In[0].Shape
	if n.Output > 0 || n.Int("training_mode", 0) != 0 {
		return Type{}, fmt.Errorf("training mode is not supported: export the model for inference")
	}
	if x.Rank() < 2 || !d.IsFloat() {
		return Type{}, fmt.Errorf("input %v has no channel axis of floating point type", n.In[0].Type)
	}
	for k, p := range n.In[1:] {
		if !p.Shape.Equal(x.Slice(1, 2)) || !p.DType.IsFloat() {
			return Type{}, fmt.Errorf("input %d is %v, want %v channels", k+1, p.Type, x.At(1))
		}
	}
	n.Float("epsilon", 1e-5)
	return Type{d, x}, nil
}

// lowerBatchNorm computes scale * (x-mean) / sqrt(var+epsilon) + bias. The graph folds it if the statistics are known.
func lowerBatchNorm(l *Lowering, n *Node, in []Operand) Operand {
	p := make([]Operand, len(in))
	for k, o := range in {
		p[k] = l.Readable(o)
	}
	return l.Lazy(n.Out, in[0].Layout, func(i []expr.Expr) expr.Expr {
		x := wide(p[0].At(i...))
		at := func(k int) expr.Expr { return expr.To(x.DType(), wide(p[k].At(i[1]))) }
		deviation := expr.Un(expr.Sqrt, expr.AddE(at(4), like(x, n.Float("epsilon", 1e-5))))
		e := expr.DivE(expr.MulE(at(1), expr.SubE(x, at(3))), deviation)
		return expr.To(n.Out.DType, expr.AddE(e, at(2)))
	})
}

func layerNormAxes(n *Node) []bool {
	rank := n.In[0].Shape.Rank()
	axes := make([]bool, rank)
	for k := n.axis(n.Int("axis", -1), rank); k < rank; k++ {
		axes[k] = true
	}
	return axes
}

func inferLayerNorm(n *Node) (Type, error) {
	d, err := floats(n)
	if err != nil || n.In[0].Shape.Rank() == 0 {
		return Type{}, fmt.Errorf("input %v is not of floating point type with an axis", n.In[0].Type)
	}
	axes := layerNormAxes(n)
	n.Float("epsilon", 1e-5)
	if n.Output > 0 { // the mean, or the reciprocal deviation
		shape := n.In[0].Shape
		for k := range axes {
			if axes[k] {
				shape = shape.With(k, extent.Of(1))
			}
		}
		return Type{wideType(d), shape}, nil
	}
	for k, p := range n.In[1:] {
		if s, err := Broadcast(n.In[0].Shape, p.Shape); err != nil || !s.Equal(n.In[0].Shape) {
			return Type{}, fmt.Errorf("input %d is %v which does not fit %v", k+1, p.Type, n.In[0].Type)
		}
	}
	return Type{d, n.In[0].Shape}, nil
}

func inferInstanceNorm(n *Node) (Type, error) {
	d, err := floats(n)
	x := n.In[0].Shape
	if err != nil || x.Rank() < 3 {
		return Type{}, fmt.Errorf("input %v is not N, C and spatial axes of floating point type", n.In[0].Type)
	}
	for k, p := range n.In[1:] {
		if !p.Shape.Equal(x.Slice(1, 2)) {
			return Type{}, fmt.Errorf("input %d is %v, want %v channels", k+1, p.Type, x.At(1))
		}
	}
	n.Float("epsilon", 1e-5)
	return Type{d, x}, nil
}

// lowerNorm normalises over the flagged axes: stages sum, centred, sum of squares, reciprocal deviation; then scale
// and bias, operands 1 and 2, which param reads at an index of the result. Results 1 and 2 are the mean and the
// reciprocal deviation.
func lowerNorm(l *Lowering, n *Node, in []Operand, axes []bool, param func(p Operand, i []expr.Expr) expr.Expr) Operand {
	x := l.Readable(in[0])
	elements := elementsOver(x.Shape, axes)
	sum := l.reduceAxes("sum", expr.Sum, x, axes, func(i, _ []expr.Expr) expr.Expr { return wide(x.At(i...)) })
	centred := l.Map("centred", x.Shape, x.Layout, func(i []expr.Expr) expr.Expr {
		mean := sum.At(keptOf(i, axes)...)
		return expr.SubE(wide(x.At(i...)), expr.MulE(mean, count{l, elements}.inverse(mean.DType())))
	})
	squares := l.reduceAxes("squares", expr.Sum, centred, axes, func(i, _ []expr.Expr) expr.Expr {
		return square(centred.At(i...))
	})
	inverse := l.inverseRoot(n, squares, elements)
	switch n.Output {
	case 1:
		return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr {
			mean := sum.At(keptOf(i, axes)...)
			return expr.MulE(mean, count{l, elements}.inverse(mean.DType()))
		})
	case 2:
		return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func(i []expr.Expr) expr.Expr { return inverse.At(keptOf(i, axes)...) })
	}
	params := make([]Operand, 0, 2)
	for k := 1; k < len(in); k++ {
		if n.Has(k) {
			params = append(params, l.Readable(in[k]))
		}
	}
	return l.Lazy(n.Out, x.Layout, func(i []expr.Expr) expr.Expr {
		e := expr.MulE(centred.At(i...), inverse.At(keptOf(i, axes)...))
		e = expr.MulE(e, wide(param(params[0], i)))
		if len(params) > 1 {
			e = expr.AddE(e, wide(param(params[1], i)))
		}
		return expr.To(n.Out.DType, e)
	})
}
