package array

import (
	"encoding/binary"
	"math"
)

// FromFloat32 returns a float32 array of the values; len(values) must be the product of the shape.
func FromFloat32(values []float32, shape ...int64) *Array {
	a := New(Float32, shape...)
	for i, v := range values {
		binary.LittleEndian.PutUint32(a.Data[4*i:], math.Float32bits(v))
	}
	return a
}

// Scalar returns an array of one element without axes.
func Scalar(d DType, v float64) *Array {
	a := New(d)
	a.SetFloat(0, v)
	return a
}

// FromInt64 returns an int64 array of the values; len(values) must be the product of the shape.
func FromInt64(values []int64, shape ...int64) *Array {
	a := New(Int64, shape...)
	for i, v := range values {
		binary.LittleEndian.PutUint64(a.Data[8*i:], uint64(v))
	}
	return a
}

// Float32s returns a copy of the elements of a float32 array (row-major).
func (a *Array) Float32s() []float32 {
	values := make([]float32, len(a.Data)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}
	return values
}

// As returns the array with its floating-point elements rounded to another type.
func (a *Array) As(d DType) *Array {
	if a.DType == d {
		return a
	}
	made := New(d, a.Shape...)
	for i := range a.Len() {
		made.SetFloat(i, a.Float(i))
	}
	return made
}

// IsZero reports whether all elements are zero.
func (a *Array) IsZero() bool {
	for i := range a.Len() {
		if a.Float(i) != 0 {
			return false
		}
	}
	return true
}

// Float reads element i (row-major) as a float64. 64-bit integers beyond 2^53 are rounded; use Int for those.
func (a *Array) Float(i int64) float64 {
	switch a.DType {
	case Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:])))
	case Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(a.Data[8*i:]))
	case Float16:
		return float16ToFloat64(binary.LittleEndian.Uint16(a.Data[2*i:]))
	case BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(a.Data[2*i:])) << 16))
	case Uint64:
		return float64(uint64(a.Int(i)))
	default:
		return float64(a.Int(i))
	}
}

// Int reads element i (row-major) as an int64; floating-point values are truncated toward zero, uint64 wraps.
func (a *Array) Int(i int64) int64 {
	d := a.Data
	switch a.DType {
	case Int8:
		return int64(int8(d[i]))
	case Uint8, Bool:
		return int64(d[i])
	case Int16:
		return int64(int16(binary.LittleEndian.Uint16(d[2*i:])))
	case Uint16:
		return int64(binary.LittleEndian.Uint16(d[2*i:]))
	case Int32:
		return int64(int32(binary.LittleEndian.Uint32(d[4*i:])))
	case Uint32:
		return int64(binary.LittleEndian.Uint32(d[4*i:]))
	case Int64, Uint64:
		return int64(binary.LittleEndian.Uint64(d[8*i:]))
	default:
		return int64(a.Float(i))
	}
}

// SetFloat writes element i (row-major), rounding to the array's type.
func (a *Array) SetFloat(i int64, v float64) {
	switch a.DType {
	case Float32:
		binary.LittleEndian.PutUint32(a.Data[4*i:], math.Float32bits(float32(v)))
	case Float64:
		binary.LittleEndian.PutUint64(a.Data[8*i:], math.Float64bits(v))
	case Float16:
		binary.LittleEndian.PutUint16(a.Data[2*i:], float64ToFloat16(v))
	case BFloat16:
		binary.LittleEndian.PutUint16(a.Data[2*i:], float64ToBFloat16(v))
	default:
		a.SetInt(i, int64(v))
	}
}

// SetInt writes element i (row-major), wrapping to the array's type.
func (a *Array) SetInt(i int64, v int64) {
	d := a.Data
	switch a.DType {
	case Int8, Uint8:
		d[i] = byte(v)
	case Bool:
		d[i] = 0
		if v != 0 {
			d[i] = 1
		}
	case Int16, Uint16:
		binary.LittleEndian.PutUint16(d[2*i:], uint16(v))
	case Int32, Uint32:
		binary.LittleEndian.PutUint32(d[4*i:], uint32(v))
	case Int64, Uint64:
		binary.LittleEndian.PutUint64(d[8*i:], uint64(v))
	default:
		a.SetFloat(i, float64(v))
	}
}

// float16ToFloat64 widens an IEEE 754 binary16.
func float16ToFloat64(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	default:
		return sign * math.Ldexp(1024+frac, exp-25)
	}
}

// float64ToFloat16 rounds to the nearest IEEE 754 binary16, ties to even.
func float64ToFloat16(v float64) uint16 {
	sign := uint16(math.Float64bits(v) >> 48 & 0x8000)
	a := math.Abs(v)
	switch {
	case v != v:
		return sign | 0x7e00
	case a >= 65520:
		return sign | 0x7c00
	case a < 0x1p-14:
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	frac, exp := math.Frexp(a) // a = frac * 2^exp, 0.5 <= frac < 1
	m := uint16(math.RoundToEven(frac * 2048))
	return sign | (uint16(exp+13)<<10 + m) // m's implicit bit carries into the exponent
}

// float64ToBFloat16 rounds once: the intermediate float32 is rounded to odd, which creates no ties.
func float64ToBFloat16(v float64) uint16 {
	near := float64(float32(v))
	bits := math.Float32bits(float32(v))
	switch {
	case v != v:
		return uint16(bits>>16) | 0x40
	case near != v && !math.IsInf(near, 0):
		if math.Abs(near) > math.Abs(v) {
			bits--
		}
		bits |= 1
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
