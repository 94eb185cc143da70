package microarch

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/target"
)

// HasSquares reports whether a target multiplies two rows by two columns of elements of these types in one
// instruction: 8 bytes of each, integers of any signedness.
func HasSquares(t *target.Target, rows, columns array.DType) bool {
	bytes := func(d array.DType) bool { return d == array.Int8 || d == array.Uint8 }
	switch {
	case t.CPU.Arch != target.ARM:
		return false
	case bytes(rows) && bytes(columns):
		return t.CPU.Has("i8mm")
	}
	return rows == array.BFloat16 && columns == array.BFloat16 && t.CPU.Has("bf16")
}
