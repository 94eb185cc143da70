package codegen

import (
	"fmt"

	"github.com/tilth-dev/tilth/compiler/array"
)

// abiName returns the type's constant in the kernel ABI.
func abiName(d array.DType) string {
	names := map[array.DType]string{
		array.Float32: "FLOAT32", array.Float64: "FLOAT64", array.Float16: "FLOAT16", array.BFloat16: "BFLOAT16",
		array.Int8: "INT8", array.Int16: "INT16", array.Int32: "INT32", array.Int64: "INT64",
		array.Uint8: "UINT8", array.Uint16: "UINT16", array.Uint32: "UINT32", array.Uint64: "UINT64", array.Bool: "BOOL",
	}
	return "TILTH_" + names[d]
}

// vectorName returns the C name of the vector type with that many lanes.
func vectorName(d array.DType, lanes int64) string {
	return fmt.Sprintf("%vx%d", d, lanes)
}
