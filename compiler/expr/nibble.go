package expr

import (
	"math/bits"

	"github.com/tilth-dev/tilth/compiler/array"
)

// Nibble is element k, from 0 to 15, of a tensor that has two neighbours along an axis in each byte, the even one in
// the lower half; both is the byte, that at k floordiv 2.
func Nibble(both, k Expr) Expr {
	low, high := LowNibble(both), HighNibble(both)
	return Sel(Bin(Eq, Bin(FloorMod, k, I(2)), I(0)), low, high)
}

// BitsOf is how many bits the values of a byte have that is a part of another; 0 where that is not known.
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

// LowNibble is the lower half of a byte.
func LowNibble(both Expr) Expr { return Bin(And, both, &Int{Value: 15, Type: array.Uint8}) }

// HighNibble is the upper half of a byte.
func HighNibble(both Expr) Expr { return Bin(ShiftRight, both, &Int{Value: 4, Type: array.Uint8}) }
