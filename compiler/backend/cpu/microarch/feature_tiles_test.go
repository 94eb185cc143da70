package microarch_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/backend/cpu/microarch"
	"github.com/tilth-dev/tilth/compiler/target"
)

func TestTargetsMultiplyTilesOfTheTypesOfTheirFeatures(t *testing.T) {
	for name, want := range map[string][]array.DType{
		"x86-64-v4": nil, "arm64": nil, "sapphire-rapids": {array.BFloat16, array.Int8, array.Uint8},
		"granite-rapids": {array.Float16, array.BFloat16, array.Int8, array.Uint8},
	} {
		d, err := target.Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		var got int
		for _, x := range []array.DType{array.Float32, array.Float16, array.BFloat16, array.Int8, array.Uint8, array.Int16} {
			if microarch.HasTiles(d, x) {
				got++
			}
		}
		for _, x := range want {
			if !microarch.HasTiles(d, x) {
				t.Errorf("%s has no tiles of %v", name, x)
			}
		}
		if got != len(want) {
			t.Errorf("%s has tiles of %d types, want %d", name, got, len(want))
		}
	}
}
