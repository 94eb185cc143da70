package microarch_test

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/target"
)

func TestTargetsMultiplySquaresOfTheTypesOfTheirFeatures(t *testing.T) {
	const i8, u8, bf16 = array.Int8, array.Uint8, array.BFloat16
	bytes := [][2]array.DType{{i8, i8}, {u8, u8}, {u8, i8}, {i8, u8}}
	pairs := [][2]array.DType{{bf16, bf16}}
	for _, c := range []struct {
		target, feature string
		want            [][2]array.DType
	}{
		{"arm64", "dotprod", nil}, {"arm64", "i8mm", bytes}, {"arm64", "bf16", pairs}, {"x86-64-v4", "avx512bf16", nil},
	} {
		d, err := target.Parse(c.target, 1)
		if err != nil {
			t.Fatal(err)
		}
		d.CPU.Features = slices.Sorted(slices.Values(append(d.CPU.Features, c.feature)))
		got := 0
		for _, rows := range []array.DType{i8, u8, bf16, array.Float16, array.Int16} {
			for _, columns := range []array.DType{i8, u8, bf16, array.Float16, array.Int16} {
				if microarch.HasSquares(d, rows, columns) {
					got++
				}
			}
		}
		for _, w := range c.want {
			if !microarch.HasSquares(d, w[0], w[1]) {
				t.Errorf("%s with %s does not multiply %v by %v", c.target, c.feature, w[0], w[1])
			}
		}
		if got != len(c.want) {
			t.Errorf("%s with %s multiplies squares of %d types, want %d", c.target, c.feature, got, len(c.want))
		}
	}
}
