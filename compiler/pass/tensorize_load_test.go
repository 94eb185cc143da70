package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// tensorized returns the program of a workload and a trace behind the pass.
func tensorized(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Threads(kerneltest.Replayed(t, workload, trace))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	return pass.Tensorize(f)
}

// TestBytesAreLoadedAsMatrices where terms lie side by side: matrices of bytes cannot be turned.
func TestBytesAreLoadedAsMatrices(t *testing.T) {
	const bytes = `input t0 i8[32,32]
input t1 i8[32,16]
sum t2 i32[32,16] over 32 = (mul (cast i32 [t0 i0 r0]) (cast i32 [t1 r0 i1]))
output t2
`
	text := tensorized(t, bytes, strings.NewReplacer("tensorize 1 2 2", "tensorize 1 2 4", "skew 2 8", "skew 2 16").Replace(kerneltest.WarpMatrices)).Text()
	if strings.Count(text, "ldmatrix") != 1 || !strings.Contains(text, "], s2[") {
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
		text := tensorized(t, change.Replace(kerneltest.NarrowProduct), change.Replace(kerneltest.WarpMatrices)).Text()
		if strings.Contains(text, "ldmatrix") || !strings.Contains(text, "mma.") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}
