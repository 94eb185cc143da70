package op

import (
	"fmt"
	"math"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/extent"
	"github.com/tilth-dev/tilth/compiler/onnx"
)

var knownDefs = []Def{
	knownDef(Shape, 1, 1, evalShape),
	knownDef("Size", 1, 1, func(n *Node) (*array.Array, error) {
		return n.Budget.ints([]int64{array.Elements(n.In[0].Shape.Fixed())}), nil
	}),
	knownDef("Constant", 0, 0, evalConstant),
	knownDef("ConstantOfShape", 1, 1, evalConstantOfShape),
	knownDef(Range, 3, 3, evalRange),
	knownDef("EyeLike", 1, 1, evalEyeLike),
}

func knownDef(name string, minIn, maxIn int, eval func(n *Node) (*array.Array, error)) Def {
	return Def{
		Name: name, Kind: Known, MinIn: minIn, MaxIn: maxIn,
		Infer: func(n *Node) (Type, error) {
			a, err := eval(n)
			if err == nil {
				err = n.err
			}
			if err != nil {
				return Type{}, err
			}
			n.result = a
			return Type{a.DType, extent.Fixed(a.Shape...)}, nil
		},
	}
}

func evalShape(n *Node) (*array.Array, error) {
	shape := n.In[0].Shape.Fixed()
	begin, _ := clampRange(n.Int("start", 0), math.MaxInt64, 1, int64(len(shape)))
	_, count := clampRange(n.Int("start", 0), n.Int("end", math.MaxInt64), 1, int64(len(shape)))
	return n.Budget.ints(shape[begin:begin+count], count), nil
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

func evalConstantOfShape(n *Node) (*array.Array, error) {
	shape := n.KnownInts(0, "shape")
	if n.err != nil {
		return nil, n.err
	}
	value := n.Tensor("value")
	if value == nil {
		value = array.New(array.Float32, 1)
	}
	if value.Len() != 1 {
		return nil, fmt.Errorf("value %v%v is not a scalar", value.DType, value.Shape)
	}
	if _, err := array.CheckedBytes(value.DType, shape); err != nil {
		return nil, err
	}
	a := n.Budget.array(value.DType, shape...)
	for at := 0; at < len(a.Data); at += len(value.Data) {
		copy(a.Data[at:], value.Data)
	}
	return a, nil
}

func evalRange(n *Node) (*array.Array, error) {
	var v [3]*array.Array
	for k := range v {
		if v[k] = n.In[k].Const; v[k] == nil || v[k].Len() != 1 || v[k].DType != n.In[0].DType {
			return nil, fmt.Errorf("input %d is not a constant scalar: dynamic shapes are not supported", k)
		}
	}
	start, limit, delta := v[0].Float(0), v[1].Float(0), v[2].Float(0)
	count := math.Max(0, math.Ceil((limit-start)/delta))
	if !(count <= 1<<40) {
		return nil, fmt.Errorf("range from %g to %g by %g is too long", start, limit, delta)
	}
	a := n.Budget.array(v[0].DType, int64(count))
	for k := range a.Len() {
		if a.DType.IsFloat() {
			a.SetFloat(k, start+float64(k)*delta)
		} else {
			a.SetInt(k, v[0].Int(0)+k*v[2].Int(0))
		}
	}
	return a, nil
}

// evalEyeLike returns a matrix of zeros with ones on diagonal k, of the shape of its operand.
func evalEyeLike(n *Node) (*array.Array, error) {
	d := n.In[0].DType
	if code := n.Int("dtype", 0); code != 0 {
		d = onnx.FromDataType(int32(code))
	}
	if n.In[0].Shape.Rank() != 2 || d == array.Invalid {
		return nil, fmt.Errorf("input %v is not a matrix, or of a type that is not supported", n.In[0].Type)
	}
	a := n.Budget.array(d, n.In[0].Shape.Fixed()...)
	rows, columns := a.Shape[0], a.Shape[1]
	k := max(-rows, min(n.Int("k", 0), columns))
	for i := max(0, -k); i < rows && i+k < columns; i++ {
		a.SetFloat(i*columns+i+k, 1)
	}
	return a, nil
}
