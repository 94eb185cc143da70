package microarch

import (
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

func parse(t *testing.T, name string, threads int) *target.Target {
	t.Helper()
	on, err := target.Parse(name, threads)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// TestOneWorkerStartsNoRegion checks that work on a single worker has no division overhead.
func TestOneWorkerStartsNoRegion(t *testing.T) {
	if one, two := Region(parse(t, "x86-64-v3", 1)), Region(parse(t, "x86-64-v3", 2)); one != 0 || two <= 0 {
		t.Errorf("regions of one worker take %v cycles, of two %v", one, two)
	}
	if n := Workers(parse(t, "arm64", 4)); n != 4 {
		t.Errorf("four threads are %d workers", n)
	}
}

// TestCacheFillsCountNewData checks that a cache that holds everything an iteration touches is filled only with new
// data, and that a smaller one is refilled each time.
func TestCacheFillsCountNewData(t *testing.T) {
	l := Level{Capacity: 100}
	for _, c := range []struct{ touched, inner, outer, times, want float64 }{
		{touched: 80, inner: 10, outer: 40, times: 8, want: 4},
		{touched: 80, inner: 10, outer: 10, times: 8, want: 1},
		{touched: 101, inner: 10, outer: 10, times: 8, want: 8},
	} {
		if got := l.Growth(c.touched, c.inner, c.outer, c.times); got != c.want {
			t.Errorf("fills grow %v times with %+v, want %v", got, c, c.want)
		}
	}
}

// TestOuterCachesAreLargerAndDearer checks that each cache is larger than the previous one, its fills cost more, and
// only the last is shared. A processor without a third-level cache has one level less.
func TestOuterCachesAreLargerAndDearer(t *testing.T) {
	on := parse(t, "x86-64-v4", 2).Clone()
	without := len(Levels(on))
	on.CPU.L3Bytes = 32 << 20
	levels := Levels(on)
	if len(levels) != without+1 || !levels[without].Shared {
		t.Fatalf("stores are %+v", levels)
	}
	last := Level{}
	for _, l := range levels {
		if l.Pages {
			continue
		}
		if l.Capacity <= last.Capacity || l.Cycles <= last.Cycles || last.Shared {
			t.Errorf("behind %+v comes %+v", last, l)
		}
		last = l
	}
}

// TestAccumulatorsThatFitCostNothing checks that those beyond the registers are spilled and reloaded.
func TestAccumulatorsThatFitCostNothing(t *testing.T) {
	on := parse(t, "x86-64-v4", 1)
	if n, cycles := RegisterPressure(on, 29, 24, 1); n != 0 || cycles != 0 {
		t.Errorf("24 accumulators and a row of 4 vectors store and load %v of %d registers, in %v cycles", n, on.CPU.VectorRegisters, cycles)
	}
	if n, cycles := RegisterPressure(on, 33, 28, 1); n != 2 || cycles <= 28/Arithmetic {
		t.Errorf("28 accumulators and a row of 4 vectors store and load %v registers in %v cycles, want 2 in more than arithmetic takes", n, cycles)
	}
	if Spilled(on, 8) != 0 || Spilled(on, 20) <= 0 {
		t.Errorf("windows of 8 and 20 accumulators spill %v and %v loads", Spilled(on, 8), Spilled(on, 20))
	}
}

// TestPairsAreMultipliedWhereTheyPay covers Intel's cores with AVX512-FP16, which reach half the rate of float32 with
// them.
func TestPairsAreMultipliedWhereTheyPay(t *testing.T) {
	for _, c := range []struct {
		preset, model string
		features      []string
		want          bool
	}{
		{"x86-64-v4", "generic", []string{"avx512bf16"}, true},
		{"x86-64-v4", "AMD EPYC 26.2.1", []string{"avx512bf16"}, true},
		{"x86-64-v4", "AMD EPYC 26.2.1", nil, false},
		{"x86-64-v4", "Intel Xeon Processor 6.207.2", []string{"avx512bf16", "avx512fp16"}, false},
		{"arm64", "generic", []string{"bf16"}, true},
	} {
		on := parse(t, c.preset, 1).Clone()
		on.CPU.Model, on.CPU.Features = c.model, slices.Sorted(slices.Values(append(on.CPU.Features, c.features...)))
		if got := MultipliesPairs(on); got != c.want {
			t.Errorf("%s %s with %v: %v", c.preset, c.model, c.features, got)
		}
	}
}

// TestLinesAPageApartShareSets checks that lines a page apart have one way less than the first-level cache, and that a
// line adjacent to the previous one is never evicted.
func TestLinesAPageApartShareSets(t *testing.T) {
	for _, c := range []struct {
		preset       string
		cache, apart int64
		max          float64
	}{
		{"x86-64-v3", 32 << 10, 4096, 7}, {"x86-64-v3", 48 << 10, 8192, 11}, {"x86-64-v3", 32 << 10, 2048, 14},
		{"x86-64-v3", 32 << 10, 3072, 28}, {"x86-64-v3", 32 << 10, 64, 448}, {"arm64", 64 << 10, 16384, 3},
	} {
		on := parse(t, c.preset, 1).Clone()
		on.CPU.L1DataBytes = c.cache
		if got := LinesPerSet(on, c.apart); got != c.max {
			t.Errorf("%s: a first cache of %d bytes has %v lines that lie %d bytes apart, want %v", c.preset, c.cache, got, c.apart, c.max)
		}
	}
}
