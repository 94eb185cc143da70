package expr

import (
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Nibble returns element k, from 0 to 15, of a tensor that packs two neighbours along an axis into each byte, the
// even one in the low half; both is the byte at k floordiv 2.
func Nibble(both, k Expr) Expr {
	low, high := LowNibble(both), HighNibble(both)
	return Sel(Bin(Eq, Bin(FloorMod, k, I(2)), I(0)), low, high)
}

// BitsOf returns the width of a value that is extracted from a byte; 0 if unknown.
func BitsOf(e Expr) int64 {
	const byteBits = 8
	switch n := e.(type) {
	case *Select:
		if a, b := BitsOf(n.A), BitsOf(n.B); a > 0 && b > 0 {
			return max(a, b)
		}
	case *Binary:
		by, ok := n.B.(*Int)
		switch {
		case !ok || n.DType() != array.Uint8 || by.Value < 0:
		case n.Op == And:
			return int64(bits.Len64(uint64(by.Value)))
		case n.Op == ShiftRight && by.Value < byteBits:
			return byteBits - by.Value
		}
	}
	return 0
}

// LowNibble returns the low half of a byte.
func LowNibble(both Expr) Expr { return Bin(And, both, &Int{Value: 15, Type: array.Uint8}) }

// HighNibble returns the high half of a byte.
func HighNibble(both Expr) Expr { return Bin(ShiftRight, both, &Int{Value: 4, Type: array.Uint8}) }
