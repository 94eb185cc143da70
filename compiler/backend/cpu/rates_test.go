package cpu

import (
	"path/filepath"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend"
	"github.com/tilth-dev/tilth/compiler/roofline"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/compiler/toolchain"
)

func TestThisMachineHasRates(t *testing.T) {
	machine, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	rates, err := Backend{}.Measure(t.Context(), tc, machine, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := roofline.Decode(rates.Encode())
	if err != nil || again.String() != rates.String() {
		t.Errorf("%v came back as %v, %v", rates, again, err)
	}
}

// TestRatesAreMeasuredOnAllArchitectures checks that the program that measures them compiles for each.
func TestRatesAreMeasuredOnAllArchitectures(t *testing.T) {
	tc, err := toolchain.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"arm64", "neoverse-v1", "arm32", "riscv64", "x86-64-v2"} {
		on, err := target.Parse(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := tc.Build(t.Context(), build(on), filepath.Join(t.TempDir(), "machine")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRatesBetweenThoseMeasured(t *testing.T) {
	machine, err := target.Parse("x86-64-v3", 3)
	if err != nil {
		t.Fatal(err)
	}
	rates := func(flop, caches, memory float64) roofline.Rates {
		r := roofline.Rates{FlopPerSecond: flop, Stores: storesOf(machine)}
		for i := range r.Stores {
			r.Stores[i].BytesPerSecond = caches
		}
		r.Stores[len(r.Stores)-1].BytesPerSecond = memory
		return r
	}
	on := func(threads int, r roofline.Rates) backend.Measured {
		return backend.Measured{Target: machine.WithThreads(threads), Rates: r}
	}
	one, eight := rates(10, 100, 20), rates(66, 730, 50)
	if got, want := (Backend{}).Between(on(1, one), on(8, eight), machine).String(), rates(26, 280, 50).String(); got != want {
		t.Errorf("on 3 threads: %s, want %s", got, want)
	}
	if got := (Backend{}).Between(on(1, one), on(1, one), machine).String(); got != one.String() {
		t.Errorf("with one measurement: %s", got)
	}
}
