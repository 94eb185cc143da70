package tensorize_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/ir/irtest"
	"github.com/tilth-dev/tilth/compiler/pass/spread"
	"github.com/tilth-dev/tilth/compiler/pass/tensorize"
	"github.com/tilth-dev/tilth/compiler/pass/threads"
)

// narrow is a product of factors in 16 bits, of which the first has terms side by side, the second columns.
const narrow = `input t0 bf16[32,16]
input t1 bf16[16,16]
sum t2 f32[32,16] over 16 = (mul (cast f32 [t0 i0 r0]) (cast f32 [t1 r0 i1]))
output t2
`

// turnedNarrow is the same where the first has rows side by side, the second terms.
const turnedNarrow = `input t0 bf16[16,32]
input t1 bf16[16,16]
sum t2 f32[32,16] over 16 = (mul (cast f32 [t0 r0 i0]) (cast f32 [t1 i1 r0]))
output t2
`

// inShared is the trace of a warp with operands in shared memory, with rows that are 8 elements apart.
var inShared = strings.Replace(warp, "tensorize 1 2 0", "tensorize 1 2 2", 1) + `cache-read 1 0 0 1
compute-at 2 0 2
scope 2 1
skew 2 8
bind 2 0 1
cache-read 1 1 0 1
compute-at 3 0 2
scope 3 1
skew 3 8
bind 3 0 1
`

// tensorized is the program of a workload and a trace behind the pass.
func tensorized(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	f, err := threads.Run(irtest.Replayed(t, workload, trace))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spread.Run(f); err != nil {
		t.Fatal(err)
	}
	return tensorize.Run(f)
}

// TestMatricesAreLoadedFromSharedMemory: four at once, turned where rows in memory are terms.
func TestMatricesAreLoadedFromSharedMemory(t *testing.T) {
	irtest.Golden(t, "loaded", tensorized(t, narrow, inShared))
	irtest.Golden(t, "turned", tensorized(t, turnedNarrow, inShared))
}

// TestBytesAreLoadedAsMatrices where terms lie side by side: matrices of bytes cannot be turned.
func TestBytesAreLoadedAsMatrices(t *testing.T) {
	const bytes = `input t0 i8[32,32]
input t1 i8[32,16]
sum t2 i32[32,16] over 32 = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 r0 i1]))
output t2
`
	text := tensorized(t, bytes, strings.NewReplacer("tensorize 1 2 2", "tensorize 1 2 4", "skew 2 8", "skew 2 16").Replace(inShared)).Text()
	if strings.Count(text, "4 matrices from s2") != 1 || strings.Contains(text, "from s3") {
		t.Error(text)
	}
}

// TestOnlyWholeRowsAreLoadedAsMatrices: others, and what has to be rounded, are loaded element by element.
func TestOnlyWholeRowsAreLoadedAsMatrices(t *testing.T) {
	for what, c := range map[string][]string{
		"rows that begin between multiples of 16 bytes": {"skew 2 8", "skew 2 4", "skew 3 8", "skew 3 4"},
		"factors in float32":                            {"bf16", "f32", "(cast f32 [t0 i0 r0])", "[t0 i0 r0]", "(cast f32 [t1 r0 i1])", "[t1 r0 i1]"},
	} {
		change := strings.NewReplacer(c...)
		text := tensorized(t, change.Replace(narrow), change.Replace(inShared)).Text()
		if strings.Contains(text, "matrices") || !strings.Contains(text, "product of") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}
