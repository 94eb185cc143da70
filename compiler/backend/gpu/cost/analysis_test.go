package cost_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/backend/gpu/cost"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/compiler/target"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// card has 4 multiprocessors of 8 warps.
var card = &target.GPU{
	Multiprocessors: 4, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 256,
	ThreadRegisters: 255, MultiprocessorRegisters: 65536, BlockSharedBytes: 49152, MultiprocessorSharedBytes: 65536,
	L2Bytes: 1 << 20,
}

func analysed(t *testing.T, workload, trace string) *cost.Analysis {
	t.Helper()
	f, err := pass.Threads(kerneltest.Replayed(t, workload, trace))
	if err != nil {
		t.Fatal(err)
	}
	return cost.Analyse(pass.Wide(f), card)
}

// TestProductIsCounted uses the product of 12x6 and 6x16 by six blocks of eight threads with two rows and two
// columns each. By hand: a block has 4x8 results of six terms; it fetches 4x2 numbers in each of three steps, one per
// thread; a thread loads two numbers of either factor for each term.
func TestProductIsCounted(t *testing.T) {
	a := analysed(t, kerneltest.TileProduct, kerneltest.TilesOf(2)+"unroll 1 4\nunroll 1 6\nunroll 1 7\npipeline 2 2\n")
	if len(a.Launches) != 1 {
		t.Fatalf("%d launches", len(a.Launches))
	}
	l := a.Launches[0]
	if l.Blocks != 6 || l.Threads != 8 || l.Stages != 2 || l.Steps != 3 || l.StepBytes != 4*2*4 ||
		l.SharedBytes != 2*4*2*4 {
		t.Errorf("%d blocks of %d threads, %d stages, %v steps of %v bytes, %d bytes of shared memory",
			l.Blocks, l.Threads, l.Stages, l.Steps, l.StepBytes, l.SharedBytes)
	}
	if l.Operations.MultiplyAdds != 4*8*6 {
		t.Errorf("%v multiplications and additions, want %d", l.Operations.MultiplyAdds, 4*8*6)
	}
	// A warp fetches in three steps, and loads two columns for each of six terms.
	if want := 3.0 + 6*2; l.Global.Requests != want {
		t.Errorf("%v loads from global memory, want %v", l.Global.Requests, want)
	}
	// Fetched numbers are stored; two rows are loaded for each of six terms.
	if want := 3.0 + 6*2; l.Local.Requests != want {
		t.Errorf("%v accesses of shared memory, want %v", l.Local.Requests, want)
	}
	if l.Stored.Bytes != 4*8*4 {
		t.Errorf("%v bytes are stored, want %d", l.Stored.Bytes, 4*8*4)
	}
}

// TestMatricesAreLoadedAtOnce uses operands with 32 lines and with 16 columns of 16 terms, whose rows use different
// banks. A warp loads 8 and 4 matrices, four at a time, after threads store 16 elements each.
func TestMatricesAreLoadedAtOnce(t *testing.T) {
	const stores = 16 + 16
	trace := kerneltest.WarpMatrices + "unroll 1 3\nunroll 1 5\nunroll 1 7\nunroll 1 10\n"
	l := analysed(t, kerneltest.NarrowProduct, trace).Launches[0]
	if l.Local.Requests != stores+3 || l.Local.Bytes != (32*16+16*16)*2+12*8*16 {
		t.Errorf("a block has %v accesses of shared memory, with %v bytes", l.Local.Requests, l.Local.Bytes)
	}
	if l.Operations.Casts != 0 {
		t.Errorf("%v factors are cast, which instructions take as they are", l.Operations.Casts)
	}
	near := analysed(t, kerneltest.NarrowProduct, strings.Replace(trace, "skew 3 8\n", "skew 3 16\n", 1)).Launches[0]
	if near.Local.Units <= l.Local.Units {
		t.Errorf("rows that share banks take %v turns, others %v", near.Local.Units, l.Local.Units)
	}
}

// TestTMACopiesAreCountedOnce checks that a TMA copy moves as much as the copies of all threads, for two operands in
// four steps.
func TestTMACopiesAreCountedOnce(t *testing.T) {
	each := analysed(t, kerneltest.WarpgroupProduct, kerneltest.WarpgroupTile).Launches[0]
	boxes := analysed(t, kerneltest.WarpgroupProduct, kerneltest.WarpgroupBoxes).Launches[0]
	if each.Copies != 4*(128+32) || boxes.Copies != 4*2 || boxes.Asynchronous != boxes.Copies || boxes.Stages != each.Stages {
		t.Errorf("%v copies by threads and %v boxes, %v of them ahead", each.Copies, boxes.Copies, boxes.Asynchronous)
	}
	if boxes.Global.Bytes != each.Global.Bytes || boxes.Global.Units != each.Global.Units || boxes.Instructions() >= each.Instructions() {
		t.Errorf("boxes bring %v bytes in %v sectors by %v instructions, threads %v in %v by %v", boxes.Global.Bytes, boxes.Global.Units,
			boxes.Instructions(), each.Global.Bytes, each.Global.Units, each.Instructions())
	}
}

// TestPaddingIsNotLoaded shifts a row of 16 by 8: half comes from memory.
func TestPaddingIsNotLoaded(t *testing.T) {
	const shifted = `input t0 f32[16]
map t1 f32[64,16] = (select (le 8 i1) [t0 (sub i1 8)] 0x0p+00:f32)
output t1
`
	a := analysed(t, shifted, "bind 0 0 0\nbind 0 1 1\n")
	if l := a.Launches[0]; l.Global.Bytes != 8*4 || l.Stored.Bytes != 16*4 {
		t.Errorf("a block loads %v bytes and stores %v, want 32 and 64", l.Global.Bytes, l.Stored.Bytes)
	}
}

// TestMoreBlocksThanFitTakeWaves uses 4 multiprocessors, whose threads allow 8 blocks of 32 threads each.
func TestMoreBlocksThanFitTakeWaves(t *testing.T) {
	const copied = `input t0 f32[%,32]
map t1 f32[%,32] = (neg [t0 i0 i1])
output t1
`
	waves := func(blocks string) cost.Cycles {
		a := analysed(t, strings.ReplaceAll(copied, "%", blocks), "bind 0 0 0\nbind 0 1 1\n")
		return a.Cycles(a.Launches[0])
	}
	one, two := waves("32"), waves("33")
	if one.Waves != 1 || one.Residents != 8 || math.Ceil(two.Waves) != 2 || two.Total <= one.Total {
		t.Errorf("32 blocks: %+v\n33 blocks: %+v", one, two)
	}
}
