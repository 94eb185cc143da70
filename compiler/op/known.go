package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

var knownDefs = []Def{
	knownDef(Shape, 1, 1, evalShape),
	knownDef("Size", 1, 1, func(n *Node) (*array.Array, error) {
		return n.extents([]extent.Extent{n.In[0].Shape.Elements()}), nil
	}),
	knownDef("Constant", 0, 0, evalConstant),
	{Name: "ConstantOfShape", Kind: Injective, MinIn: 1, MaxIn: 1, Infer: inferConstantOfShape, Lower: lowerConstantOfShape},
	{Name: Range, Kind: Injective, MinIn: 3, MaxIn: 3, Infer: inferRange, Lower: lowerRange},
	{Name: "EyeLike", Kind: Injective, MinIn: 1, MaxIn: 1, Infer: inferEyeLike, Lower: lowerEyeLike, Layout: rowMajorResult},
}

func knownDef(name string, minIn, maxIn int, eval func(n *Node) (*array.Array, error)) Def {
	return Def{
		Name: name, Kind: Known, MinIn: minIn, MaxIn: maxIn,
		Infer: func(n *Node) (Type, error) {
			a := Get(eval(n))
			n.check()
			if n.Numbers != nil {
				return n.Out, nil
			}
			n.result = a
			return Type{a.DType, extent.Fixed(a.Shape...)}, nil
		},
	}
}

// extents returns a list of extents as a result: an array, or nil with Out and Numbers set if one is open.
func (n *Node) extents(list []extent.Extent, shape ...int64) *array.Array {
	ints := make([]int64, len(list))
	for k, e := range list {
		ints[k] = e.Max()
		if e.IsOpen() {
			n.Numbers = make([]Number, len(list))
		}
	}
	if n.Numbers == nil {
		return n.Budget.ints(ints, shape...)
	}
	n.Out = Type{array.Int64, extent.Fixed(shape...)}
	for k, e := range list {
		n.Numbers[k] = Integer(e)
	}
	return nil
}

func evalShape(n *Node) (*array.Array, error) {
	shape := n.In[0].Shape.Extents()
	begin, _ := clampRange(n.Int("start", 0), math.MaxInt64, 1, int64(len(shape)))
	_, count := clampRange(n.Int("start", 0), n.Int("end", math.MaxInt64), 1, int64(len(shape)))
	return n.extents(shape[begin:begin+count], count), nil
}

func evalConstant(n *Node) (*array.Array, error) {
	for _, name := range []string{"value", "sparse_value"} {
		if a := n.Tensor(name); a != nil {
			return a, nil
		}
	}
	switch {
	case n.Attrs["value_float"] != nil:
		return array.FromFloat32([]float32{float32(n.Float("value_float", 0))}), nil
	case n.Attrs["value_int"] != nil:
		return array.FromInt64([]int64{n.Int("value_int", 0)}), nil
	case n.Attrs["value_ints"] != nil:
		v := n.Ints("value_ints", nil)
		return n.Budget.ints(v, int64(len(v))), nil
	case n.Attrs["value_floats"] != nil:
		v := n.Attrs["value_floats"].Floats
		n.Budget.Bytes(4 * int64(len(v)))
		return array.FromFloat32(v, int64(len(v))), nil
	}
	return nil, fmt.Errorf("it has no value of a supported type")
}

// filler returns the element of a ConstantOfShape.
func filler(n *Node) *array.Array {
	value := n.Tensor("value")
	if value == nil {
		return array.New(array.Float32, 1)
	}
	if value.Len() != 1 {
		n.fail("value %v%v is not a scalar", value.DType, value.Shape)
	}
	return value
}

func inferConstantOfShape(n *Node) (Type, error) {
	shape, value := n.KnownExtents(0, "shape"), filler(n)
	n.check()
	for _, e := range shape {
		if e.Min() < 0 {
			return Type{}, fmt.Errorf("shape %v may have a negative extent", shape)
		}
	}
	t := Type{value.DType, extent.ShapeOf(shape...)}
	if t.Shape.IsOpen() {
		return t, nil
	}
	Get(array.CheckedBytes(value.DType, t.Shape.Fixed()))
	n.result = n.Budget.array(value.DType, t.Shape.Fixed()...)
	for at := 0; at < len(n.result.Data); at += len(value.Data) {
		copy(n.result.Data[at:], value.Data)
	}
	return t, nil
}

func lowerConstantOfShape(l *Lowering, n *Node, _ []Operand) Operand {
	value := filler(n)
	e, _ := literal(Operand{Type: Type{DType: value.DType}, Const: value})
	return l.Lazy(n.Out, RowMajor(n.Out.Shape.Rank()), func([]expr.Expr) expr.Expr { return e })
}

// inferRange accepts integers that depend on open extents; only constants may be fractions.
func inferRange(n *Node) (Type, error) {
	open := false
	for k, v := range n.In {
		known := v.Const != nil || v.Numbers != nil
		if !known || !v.Shape.Elements().Is(1) || v.DType != n.In[0].DType {
			return Type{}, fmt.Errorf("input %d is not a known scalar: dynamic shapes are not supported", k)
		}
		open = open || v.Numbers != nil
	}
	if !open {
		a := Get(evalRange(n))
		n.result = a
		return Type{a.DType, extent.Fixed(a.Shape...)}, nil
	}
	start, limit, delta := n.scalar(0), n.scalar(1), n.scalar(2)
	n.check()
	count := limit.Minus(start)
	switch {
	case delta.Min() > 0:
		count = count.CeilOver(delta)
	case delta.Max() < 0:
		count = count.Times(extent.Of(-1)).CeilOver(delta.Times(extent.Of(-1)))
	default:
		return Type{}, fmt.Errorf("the step %v may be zero", delta)
	}
	return Type{n.In[0].DType, extent.ShapeOf(count.Most(extent.Of(0)))}, nil
}

// scalar returns operand k, which is known, as an integer.
func (n *Node) scalar(k int) extent.Extent {
	if n.In[k].Numbers == nil {
		a := n.In[k].Const
		if !a.DType.IsFloat() {
			return extent.Of(a.Int(0))
		}
		v := a.Float(0)
		if v != math.Trunc(v) || math.Abs(v) > 1<<40 {
			n.fail("input %d is %g where another input depends on an open extent, which is only supported for integers", k, v)
			return extent.Extent{}
		}
		return extent.Of(int64(v))
	}
	return n.KnownExtents(k, "scalar")[0]
}

func lowerRange(l *Lowering, n *Node, _ []Operand) Operand {
	start, delta := l.Extent(n.scalar(0)), l.Extent(n.scalar(2))
	return l.Lazy(n.Out, RowMajor(1), func(i []expr.Expr) expr.Expr {
		return expr.To(n.Out.DType, expr.AddE(start, expr.MulE(i[0], delta)))
	})
}

func evalRange(n *Node) (*array.Array, error) {
	start, limit, delta := n.In[0].Const.Float(0), n.In[1].Const.Float(0), n.In[2].Const.Float(0)
	count := math.Max(0, math.Ceil((limit-start)/delta))
	if !(count <= 1<<40) {
		return nil, fmt.Errorf("range from %g to %g by %g is too long", start, limit, delta)
	}
	a := n.Budget.array(n.In[0].DType, int64(count))
	first, step := n.In[0].Const.Int(0), n.In[2].Const.Int(0)
	for k := range a.Len() {
		if a.DType.IsFloat() {
			a.SetFloat(k, start+float64(k)*delta)
		} else {
			a.SetInt(k, first+k*step)
		}
	}
	return a, nil
}

// inferEyeLike returns a matrix of zeros with ones on diagonal k, of the shape of its operand.
func inferEyeLike(n *Node) (Type, error) {
	t := n.In[0].Type
	if code := n.Int("dtype", 0); code != 0 {
		t.DType = onnx.FromDataType(int32(code))
	}
	if t.Shape.Rank() != 2 || t.DType == array.Invalid {
		return Type{}, fmt.Errorf("input %v is not a matrix, or of a type that is not supported", n.In[0].Type)
	}
	n.Int("k", 0)
	if t.Shape.IsOpen() || n.err != nil {
		return t, n.err
	}
	a := n.Budget.array(t.DType, t.Shape.Max()...)
	rows, columns := a.Shape[0], a.Shape[1]
	k := max(-rows, min(n.Int("k", 0), columns))
	for i := max(0, -k); i < rows && i+k < columns; i++ {
		a.SetFloat(i*columns+i+k, 1)
	}
	n.result = a
	return t, nil
}

func lowerEyeLike(l *Lowering, n *Node, _ []Operand) Operand {
	return l.Lazy(n.Out, RowMajor(2), func(i []expr.Expr) expr.Expr {
		diagonal := expr.Bin(expr.Eq, expr.SubE(i[1], i[0]), expr.I(n.Int("k", 0)))
		return expr.Sel(diagonal, expr.F(n.Out.DType, 1), expr.Zero(n.Out.DType))
	})
}
