package cpu

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// TestFastNumericsStoreFactorsAsProcessorsMultiplyThem expects bfloat16 if there are instructions for its pairs, and
// otherwise only weights in a type that can be cast. Other levels leave everything unchanged.
func TestFastNumericsStoreFactorsAsProcessorsMultiplyThem(t *testing.T) {
	const bf16, f16 = array.BFloat16, array.Float16
	for _, c := range []struct {
		name, feature string
		as            array.DType
		want          array.Storage
	}{
		{"x86-64-v3", "", array.Invalid, array.Storage{Type: bf16, Constants: true}},
		{"x86-64-v3", "", f16, array.Storage{Type: f16, Constants: true}},
		{"x86-64-v4", "", bf16, array.Storage{Type: bf16, Constants: true}},
		{"arm64", "", array.Invalid, array.Storage{Type: bf16, Constants: true}},
		{"riscv64", "", array.Invalid, array.Storage{}},
		{"x86-64-v4", "avx512bf16", array.Invalid, array.Storage{Type: bf16, FloatKernels: true}},
		{"x86-64-v4", "avx512bf16", f16, array.Storage{Type: f16, Constants: true}},
		{"arm64", "bf16", array.Invalid, array.Storage{Type: bf16, FloatKernels: true}},
		{"sapphire-rapids", "", f16, array.Storage{Type: f16, Constants: true}},
		{"granite-rapids", "", f16, array.Storage{Type: f16, FloatKernels: true}},
	} {
		on, err := target.Parse(c.name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if c.feature != "" {
			on.CPU.Features = append(on.CPU.Features, c.feature)
			slices.Sort(on.CPU.Features)
		}
		for n, want := range map[schedule.Numerics]array.Storage{schedule.Strict: {}, schedule.Default: {}, schedule.Fast: c.want} {
			got := (Backend{}).Storage(on, n, c.as)
			got.Bytes = array.Invalid
			if got != want {
				t.Errorf("%s %s as %v, %v: %v, want %v", c.name, c.feature, c.as, n, got, want)
			}
		}
	}
}

// TestBytesAreStoredAsProcessorsMultiplyThem covers instructions for four terms that support only one of the two
// types.
func TestBytesAreStoredAsProcessorsMultiplyThem(t *testing.T) {
	for _, c := range []struct {
		name     string
		features []string
		want     array.DType
	}{
		{"x86-64-v3", nil, array.Invalid},
		{"x86-64-v3", []string{"avxvnni"}, array.Uint8},
		{"x86-64-v4", []string{"avx512vnni"}, array.Uint8},
		{"sapphire-rapids", nil, array.Uint8},
		{"arm64", nil, array.Invalid},
		{"arm64", []string{"dotprod"}, array.Int8},
		{"arm64", []string{"dotprod", "i8mm"}, array.Invalid},
	} {
		on, err := target.Parse(c.name, 1)
		if err != nil {
			t.Fatal(err)
		}
		on.CPU.Features = append(on.CPU.Features, c.features...)
		slices.Sort(on.CPU.Features)
		for _, n := range []schedule.Numerics{schedule.Strict, schedule.Default, schedule.Fast} {
			if got := (Backend{}).Storage(on, n, array.Invalid).Bytes; got != c.want {
				t.Errorf("%s %v, %v: %v, want %v", c.name, c.features, n, got, c.want)
			}
		}
	}
}
