package expr

import "github.com/tilth-dev/tilth/compiler/array"

// Nibble is element k, from 0 to 15, of a tensor that has two neighbours along an axis in each byte, the even one in
// the lower half; both is the byte, that at k floordiv 2.
func Nibble(both, k Expr) Expr {
	low, high := LowNibble(both), HighNibble(both)
	return Sel(Bin(Eq, Bin(FloorMod, k, I(2)), I(0)), low, high)
}

// LowNibble is the lower half of a byte.
func LowNibble(both Expr) Expr { return Bin(And, both, &Int{Value: 15, Type: array.Uint8}) }

// HighNibble is the upper half of a byte.
func HighNibble(both Expr) Expr { return Bin(ShiftRight, both, &Int{Value: 4, Type: array.Uint8}) }
