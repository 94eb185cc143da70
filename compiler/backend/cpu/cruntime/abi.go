package cruntime

import (
	_ "embed" // for the header
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
)

// HeaderName is the name under which C sources include the header that generated kernels, the harness and compiled
// packages share.
const HeaderName = "tilth_kernel.h"

// Header is the text of the header.
//
//go:embed src/tilth_kernel.h
var Header string

// types lists the types in the order of the header's numbers, which start at 1.
var types = []array.DType{
	array.Float32, array.Float64, array.Float16, array.BFloat16, array.Int8, array.Int16, array.Int32, array.Int64,
	array.Uint8, array.Uint16, array.Uint32, array.Uint64, array.Bool,
}

// Type returns the header's number of a type.
func Type(d array.DType) int { return slices.Index(types, d) + 1 }
