package array

import (
	"fmt"
	"math"
	"slices"
)

// DType is the type of a tensor's elements. The values are those of enum tilth_dtype in the kernel ABI.
type DType uint8

// The element types. The zero value is invalid.
const (
	Invalid DType = iota
	Float32
	Float64
	Float16
	BFloat16
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Bool
)

type dtypeInfo struct {
	name  string
	bytes int
}

var dtypes = [...]dtypeInfo{
	Invalid: {"invalid", 0}, Float32: {"f32", 4}, Float64: {"f64", 8}, Float16: {"f16", 2}, BFloat16: {"bf16", 2},
	Int8: {"i8", 1}, Int16: {"i16", 2}, Int32: {"i32", 4}, Int64: {"i64", 8},
	Uint8: {"u8", 1}, Uint16: {"u16", 2}, Uint32: {"u32", 4}, Uint64: {"u64", 8}, Bool: {"bool", 1},
}

// String returns the short name: f32, bf16, i64, u8, bool, ...
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Bytes returns the size of one element; 0 for Invalid.
func (d DType) Bytes() int64 {
	if int(d) >= len(dtypes) {
		return 0
	}
	return int64(dtypes[d].bytes)
}

// IsFloat reports whether d is one of the floating-point types.
func (d DType) IsFloat() bool { return d >= Float32 && d <= BFloat16 }

// IsInt reports whether d is an integer type, signed or not; Bool is not.
func (d DType) IsInt() bool { return d >= Int8 && d <= Uint64 }

// ParseDType is the inverse of String; Invalid if there is no such type.
func ParseDType(name string) DType {
	for d, info := range dtypes {
		if info.name == name {
			return DType(d)
		}
	}
	return Invalid
}

// Array is a dense tensor: row-major, little-endian. A scalar has an empty shape.
type Array struct {
	DType DType
	Shape []int64
	Data  []byte
}

// New returns an array of zeros.
func New(d DType, shape ...int64) *Array {
	return &Array{DType: d, Shape: append([]int64{}, shape...), Data: make([]byte, Elements(shape)*d.Bytes())}
}

// Elements returns the product of the extents; 1 for a scalar.
func Elements(shape []int64) int64 {
	n := int64(1)
	for _, e := range shape {
		n *= e
	}
	return n
}

// CheckedBytes returns the size of a tensor in bytes, or an error if an extent is negative or the product overflows.
func CheckedBytes(d DType, shape []int64) (int64, error) {
	n := d.Bytes()
	for _, e := range shape {
		if e < 0 {
			return 0, fmt.Errorf("shape %v has a negative extent", shape)
		}
		if e != 0 && n > math.MaxInt64/8/e {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= e
	}
	return n, nil
}

// Len returns the number of elements.
func (a *Array) Len() int64 { return Elements(a.Shape) }

// Head returns the first count elements of an axis: a copy, unless that is all. count is clamped to the extent.
func (a *Array) Head(axis int, count int64) *Array {
	count = max(0, min(count, a.Shape[axis]))
	if count == a.Shape[axis] {
		return a
	}
	shape := slices.Clone(a.Shape)
	shape[axis] = count
	head := New(a.DType, shape...)
	inner := Elements(shape[axis+1:]) * a.DType.Bytes()
	for outer := range Elements(shape[:axis]) {
		copy(head.Data[outer*count*inner:(outer+1)*count*inner], a.Data[outer*a.Shape[axis]*inner:])
	}
	return head
}

// Corner returns the first elements along each axis, as many as shape has. shape must not exceed the array's.
func (a *Array) Corner(shape []int64) *Array {
	for axis, n := range shape {
		a = a.Head(axis, n)
	}
	return a
}

// CopyToCorner copies the array to its place in the data of a larger one, whose shape is nowhere smaller.
func (a *Array) CopyToCorner(data []byte, shape []int64) {
	whole := len(shape) // the axes from here on are complete
	for whole > 0 && a.Shape[whole-1] == shape[whole-1] {
		whole--
	}
	row := Elements(a.Shape[max(whole-1, 0):]) * a.DType.Bytes()
	index := make([]int64, max(whole-1, 0))
	for k := range Elements(a.Shape[:len(index)]) {
		at, rest := int64(0), k
		for d := len(index) - 1; d >= 0; d-- {
			index[d] = rest % a.Shape[d]
			rest /= a.Shape[d]
		}
		for d, i := range index {
			at += i * Elements(shape[d+1:])
		}
		copy(data[at*a.DType.Bytes():], a.Data[k*row:(k+1)*row])
	}
}

// Check returns an error if the array is inconsistent.
func (a *Array) Check() error {
	if a.DType == Invalid || a.DType > Bool {
		return fmt.Errorf("array has no valid element type (%d)", a.DType)
	}
	n, err := CheckedBytes(a.DType, a.Shape)
	if err != nil {
		return err
	}
	if int64(len(a.Data)) != n {
		return fmt.Errorf("array %v%v needs %d bytes but has %d", a.DType, a.Shape, n, len(a.Data))
	}
	return nil
}
