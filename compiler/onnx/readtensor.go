package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tilth-dev/tilth/compiler/array"
)

// rawTensor is a TensorProto as stored in the file.
type rawTensor struct {
	name     string
	dims     []int64
	code     int64
	location int64
	raw      []byte
	hasRaw   bool
	outside  external
	// typed is set if message contains elements in typed fields.
	typed   bool
	message []byte
}

// tensor decodes a TensorProto, such as the *.pb files beside ONNX's test models. The tensor may share data's memory.
func (r *reader) tensor(data []byte) (*Tensor, error) {
	t := rawTensor{message: data}
	err := eachField(data, t.part)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.name, err)
	}
	a, err := t.array(r.beside)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.name, err)
	}
	out := &Tensor{Name: t.name, Value: a}
	if narrowTypes[int32(t.code)] != array.Invalid {
		out.Narrow = t.code
	}
	return out, nil
}

func (r *rawTensor) part(f field) error {
	switch f.number {
	case 1:
		return r.dim(f)
	case 2:
		return f.int(&r.code)
	case 3:
		return unsupportedf("is stored in segments: save the model in one piece")
	case 4, 5, 7, 10, 11:
		r.typed = true
	case 8:
		return f.text(&r.name)
	case 9:
		r.raw, r.hasRaw = f.bytes, true
		return f.want(protowire.BytesType)
	case 13:
		return r.outside.entry(f)
	case 14:
		return f.int(&r.location)
	}
	return nil
}

// dim adds extents.
func (r *rawTensor) dim(f field) error {
	if f.kind == protowire.BytesType && len(f.bytes) > MaxRank*10 || len(r.dims) > MaxRank {
		return unsupportedf("rank is over the limit of %d", MaxRank)
	}
	return f.numbers(protowire.VarintType, func(v uint64) { r.dims = append(r.dims, int64(v)) })
}

func (r *rawTensor) array(beside *folder) (*array.Array, error) {
	d, narrow := narrowTypes[int32(r.code)]
	if !narrow {
		d = tensorTypes[int32(r.code)]
	}
	if d == array.Invalid {
		name := otherTypes[int32(r.code)]
		return nil, unsupportedf("element type %d %s is not supported", r.code, name)
	}
	if len(r.dims) > MaxRank {
		return nil, unsupportedf("rank %d is over the limit of %d", len(r.dims), MaxRank)
	}
	size, err := array.CheckedBytes(d, r.dims)
	if err != nil {
		return nil, err
	}
	shape := append([]int64{}, r.dims...)
	stored, bits := size, d.Bytes()*8
	if narrow {
		bits = narrowBits(r.code)
		stored = (size/d.Bytes()*bits + 7) / 8
	}
	if r.location == 1 {
		if r.raw, err = beside.read(r.outside, stored); err != nil {
			return nil, err
		}
		r.hasRaw, r.typed = true, false
	}
	if narrow {
		return r.widened(d, shape, bits, stored)
	}
	if r.hasRaw && !r.typed {
		if int64(len(r.raw)) != size {
			return nil, fmt.Errorf("%v%v needs %d bytes but has %d", d, shape, size, len(r.raw))
		}
		return &array.Array{DType: d, Shape: shape, Data: r.raw}, nil
	}
	out, err := r.typedData(d)
	if err != nil {
		return nil, err
	}
	if int64(len(out)) != size {
		return nil, fmt.Errorf("%v%v needs %d bytes but has %d", d, shape, size, len(out))
	}
	return &array.Array{DType: d, Shape: shape, Data: out}, nil
}

// widened expands 4-bit integers to 8 bits and 8-bit floats to float32.
func (r *rawTensor) widened(d array.DType, shape []int64, bits, stored int64) (*array.Array, error) {
	codes := r.raw
	if !r.hasRaw || r.typed {
		var err error
		if codes, err = r.typedData(array.Uint8); err != nil {
			return nil, err
		}
	}
	if elements := array.Elements(shape); int64(len(codes)) != stored {
		return nil, fmt.Errorf("%d elements of %d bits, shape %v, need %d bytes but have %d", elements, bits, shape, stored, len(codes))
	}
	a := array.New(d, shape...)
	for i := range a.Len() {
		switch code := codes[i*bits/8] >> (i * bits % 8); {
		case bits == 8:
			a.SetFloat(i, float8(r.code, code))
		case d == array.Int8: // its highest bit is the sign
			a.Data[i] = byte(int8(code<<4) >> 4)
		default:
			a.Data[i] = code & 15
		}
	}
	return a, nil
}

// float8 decodes an 8-bit float of the type with the given TensorProto.DataType.
func float8(dataType int64, code byte) float64 {
	shift, bias := 20, dataType-10
	if dataType >= 19 {
		shift, bias = 21, dataType-4
	}
	size := code & 0x7f
	v := math.Ldexp(float64(math.Float32frombits(uint32(size)<<shift)), int(127-bias))
	switch {
	case dataType%2 == 0 && code == 0x80, dataType == 17 && size == 0x7f, dataType == 19 && size > 0x7c:
		v = math.NaN()
	case dataType == 19 && size == 0x7c:
		v = math.Inf(1)
	}
	return math.Copysign(v, float64(int8(code)))
}

// typedField returns the number of the field for elements of a type, and their encoding.
func typedField(d array.DType) (protowire.Number, protowire.Type) {
	switch d {
	case array.Float32:
		return 4, protowire.Fixed32Type
	case array.Float64:
		return 10, protowire.Fixed64Type
	case array.Int64:
		return 7, protowire.VarintType
	case array.Uint32, array.Uint64:
		return 11, protowire.VarintType
	}
	return 5, protowire.VarintType
}

// typedData gathers the elements of the typed fields. Memory is bounded by the file size: an element takes at least
// one byte there, and at most eight in memory.
func (r *rawTensor) typedData(d array.DType) ([]byte, error) {
	number, kind := typedField(d)
	var out []byte
	size := d.Bytes()
	err := eachField(r.message, func(f field) error {
		switch f.number {
		case number:
		case 4, 5, 7, 10, 11:
			return fmt.Errorf("elements of type %v are in field %d, want %d", d, f.number, number)
		default:
			return nil
		}
		var element [8]byte
		return f.numbers(kind, func(v uint64) {
			binary.LittleEndian.PutUint64(element[:], v)
			if d == array.Bool {
				element[0] = byte(min(v, 1))
			}
			out = append(out, element[:size]...)
		})
	})
	return out, err
}

func readValueInfo(data []byte) (*ValueInfo, error) {
	v := &ValueInfo{}
	err := eachField(data, func(f field) error {
		switch f.number {
		case 1:
			return f.text(&v.Name)
		case 2:
			b, err := f.message()
			if err != nil {
				return err
			}
			return v.readType(b)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("value %q: %w", v.Name, err)
	}
	return v, nil
}

var typeKinds = map[protowire.Number]string{4: "sequence", 5: "map", 7: "opaque", 8: "sparse tensor", 9: "optional"}

func (v *ValueInfo) readType(data []byte) error {
	return eachField(data, func(f field) error {
		if kind := typeKinds[f.number]; kind != "" {
			v.Kind = kind
		}
		if f.number != 1 {
			return nil
		}
		b, err := f.message()
		if err != nil {
			return err
		}
		return eachField(b, v.tensorTypePart)
	})
}

func (v *ValueInfo) tensorTypePart(f field) error {
	switch f.number {
	case 1:
		v.DType = tensorTypes[int32(f.value)]
		return f.want(protowire.VarintType)
	case 2:
		v.HasShape = true
		b, err := f.message()
		if err != nil {
			return err
		}
		return eachField(b, func(f field) error {
			if f.number != 1 {
				return nil
			}
			return v.dim(f)
		})
	}
	return nil
}

func (v *ValueInfo) dim(f field) error {
	if len(v.Shape) >= MaxRank {
		return fmt.Errorf("rank is over the limit of %d", MaxRank)
	}
	d := Dim{Value: -1}
	b, err := f.message()
	if err != nil {
		return err
	}
	err = eachField(b, func(f field) error {
		switch f.number {
		case 1:
			return f.int(&d.Value)
		case 2:
			return f.text(&d.Param)
		}
		return nil
	})
	v.Shape = append(v.Shape, d)
	return err
}

// tensorTypes maps values of TensorProto.DataType to package array.
var tensorTypes = map[int32]array.DType{
	1: array.Float32, 2: array.Uint8, 3: array.Int8, 4: array.Uint16, 5: array.Int16, 6: array.Int32, 7: array.Int64,
	9: array.Bool, 10: array.Float16, 11: array.Float64, 12: array.Uint32, 13: array.Uint64, 16: array.BFloat16,
}

// narrowTypes maps the types that are held in a wider one: 8-bit floats and 4-bit integers. In a file, two of the
// latter share a byte, the first in its low half.
var narrowTypes = map[int32]array.DType{
	17: array.Float32, 18: array.Float32, 19: array.Float32, 20: array.Float32, 21: array.Uint8, 22: array.Int8,
}

func narrowBits(code int64) int64 {
	if narrowTypes[int32(code)] == array.Float32 {
		return 8
	}
	return 4
}

// otherTypes names the unsupported values of TensorProto.DataType.
var otherTypes = map[int32]string{
	0: "undefined", 8: "string", 14: "complex64", 15: "complex128",
	23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
}

// DataType returns the TensorProto.DataType of an element type.
func DataType(d array.DType) int32 {
	for code, t := range tensorTypes {
		if t == d {
			return code
		}
	}
	return 0
}

// FromDataType returns the element type of a TensorProto.DataType; Invalid if none exists.
func FromDataType(code int32) array.DType { return tensorTypes[code] }

// NarrowType returns the type that holds a narrower TensorProto.DataType (Tensor.Narrow); Invalid for others.
func NarrowType(code int64) array.DType { return narrowTypes[int32(code)] }
