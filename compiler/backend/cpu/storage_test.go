package cpu

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// TestFastNumericsStoreFactorsAsProcessorsMultiplyThem: in bfloat16 where there are instructions for pairs of it, and
// as they are at other levels and on other processors.
func TestFastNumericsStoreFactorsAsProcessorsMultiplyThem(t *testing.T) {
	for _, c := range []struct {
		name, feature string
		want          array.DType
	}{
		{"x86-64-v3", "", array.Invalid}, {"x86-64-v4", "", array.Invalid}, {"arm64", "", array.Invalid},
		{"x86-64-v4", "avx512bf16", array.BFloat16}, {"arm64", "bf16", array.BFloat16},
	} {
		on, err := target.Parse(c.name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if c.feature != "" {
			on.CPU.Features = append(on.CPU.Features, c.feature)
			slices.Sort(on.CPU.Features)
		}
		for n, want := range map[schedule.Numerics]array.DType{schedule.Strict: array.Invalid, schedule.Default: array.Invalid, schedule.Fast: c.want} {
			if got := (Backend{}).Storage(on, n); got != want {
				t.Errorf("%s %s, %v: %v, want %v", c.name, c.feature, n, got, want)
			}
		}
	}
}
