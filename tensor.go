package tilth

import (
	"encoding/binary"
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Type is the element type of a tensor. The zero value is invalid.
type Type uint8

// Element types.
const (
	Float32  = Type(array.Float32)
	Float64  = Type(array.Float64)
	Float16  = Type(array.Float16)
	BFloat16 = Type(array.BFloat16)
	Int8     = Type(array.Int8)
	Int16    = Type(array.Int16)
	Int32    = Type(array.Int32)
	Int64    = Type(array.Int64)
	Uint8    = Type(array.Uint8)
	Uint16   = Type(array.Uint16)
	Uint32   = Type(array.Uint32)
	Uint64   = Type(array.Uint64)
	Bool     = Type(array.Bool)
)

// String returns the short name: f32, bf16, i64, u8, bool, ...
func (t Type) String() string { return array.DType(t).String() }

// Bytes returns the size of one element, or 0 for an unknown type.
func (t Type) Bytes() int { return int(array.DType(t).Bytes()) }

// Element is a Go type of tensor elements. Go has no type for Float16 and BFloat16; Tensor.Float32s converts these.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool
}

// Tensor is an array of any rank. A scalar has an empty shape.
type Tensor struct {
	// Name is the name of the model's input or output.
	Name  string
	Type  Type
	Shape []int64
	// Data holds the elements in row-major order, little-endian.
	Data []byte
}

// NewTensor copies values. Their number must match the shape; otherwise Run fails.
func NewTensor[T Element](name string, values []T, shape ...int64) Tensor {
	data, err := binary.Append(make([]byte, 0, binary.Size(values)), binary.LittleEndian, values)
	if err != nil {
		panic(err) // elements have a fixed size
	}
	return Tensor{Name: name, Type: typeOf[T](), Shape: append([]int64{}, shape...), Data: data}
}

// Values copies the elements of a tensor of exactly that type.
func Values[T Element](t Tensor) ([]T, error) {
	if want := typeOf[T](); t.Type != want {
		return nil, fmt.Errorf("tensor %q is of %v, not of %v", t.Name, t.Type, want)
	}
	if err := t.array().Check(); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	values := make([]T, array.Elements(t.Shape))
	if _, err := binary.Decode(t.Data, binary.LittleEndian, values); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return values, nil
}

// Float32s copies the elements of a tensor of any type, rounded to float32.
func (t Tensor) Float32s() ([]float32, error) {
	a := t.array()
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	return a.As(array.Float32).Float32s(), nil
}

func typeOf[T Element]() Type {
	var zero T
	switch any(zero).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	}
	return Bool
}

// array returns the tensor in the compiler's form, sharing its memory.
func (t Tensor) array() *array.Array {
	return &array.Array{DType: array.DType(t.Type), Shape: t.Shape, Data: t.Data}
}
