package microarch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
)

// tiles maps an element type to the feature of its tile multiplication instructions.
var tiles = map[array.DType]string{
	array.BFloat16: "amx-bf16", array.Float16: "amx-fp16", array.Int8: "amx-int8", array.Uint8: "amx-int8",
}

// HasTiles reports whether a target multiplies tiles of elements of a type.
func HasTiles(t *target.Target, d array.DType) bool {
	name, known := tiles[d]
	return known && t.CPU.Has("amx-tile") && t.CPU.Has(name)
}
