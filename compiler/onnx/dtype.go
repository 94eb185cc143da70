package onnx

import "github.com/tilth-dev/tilth/compiler/array"

// tensorTypes maps values of TensorProto.DataType to package array.
var tensorTypes = map[int32]array.DType{
	1: array.Float32, 2: array.Uint8, 3: array.Int8, 4: array.Uint16, 5: array.Int16, 6: array.Int32, 7: array.Int64,
	9: array.Bool, 10: array.Float16, 11: array.Float64, 12: array.Uint32, 13: array.Uint64, 16: array.BFloat16,
}

// packedTypes are the 4-bit types, of which two elements share a byte, the first in its low half. In memory they
// take a byte each.
var packedTypes = map[int32]array.DType{21: array.Uint8, 22: array.Int8}

// otherTypes names the unsupported values of TensorProto.DataType.
var otherTypes = map[int32]string{
	0: "undefined", 8: "string", 14: "complex64", 15: "complex128", 17: "float8e4m3fn", 18: "float8e4m3fnuz",
	19: "float8e5m2", 20: "float8e5m2fnuz", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2",
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
