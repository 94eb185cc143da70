package pass_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

const tensorizeProduct = `input t0 f32[32,16]
input t1 f32[16,16]
sum t2 f32[32,16] over 16 = (mul [t0 i0 r0] [t1 r0 i1])
output t2
`

// spreadOver returns the program of a trace before the pass.
func spreadOver(t *testing.T, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Threads(kerneltest.Replayed(t, tensorizeProduct, trace))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(f); err != nil {
		t.Fatal(err)
	}
	return f
}

// warpgroupBefore returns the program of a trace for a warpgroup before the pass.
func warpgroupBefore(t *testing.T, trace string) *ir.Func {
	t.Helper()
	f, err := pass.Threads(kerneltest.Replayed(t, kerneltest.WarpgroupProduct, trace))
	if err != nil {
		t.Fatal(err)
	}
	if f, err = pass.Spread(pass.Pipeline(pass.Wide(f))); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestTensorizeSkipsUnsupportedWarpgroupOperands: operands that are not swizzled, fewer columns, warps that have other
// rows.
func TestTensorizeSkipsUnsupportedWarpgroupOperands(t *testing.T) {
	for what, change := range map[string][]string{
		"plain operands":     {"swizzle 2\n", "", "swizzle 3\n", ""},
		"one column in four": {"split 0 15 8 0", "split 0 15 4 0", "split 1 12 8 0", "split 1 12 4 0"},
		"rows side by side":  {"split 0 7 16 0", "split 0 7 32 0", "split 1 6 16 0", "split 1 6 32 0"},
	} {
		f := warpgroupBefore(t, strings.NewReplacer(change...).Replace(kerneltest.WarpgroupTile))
		if text := pass.Tensorize(f).Text(); strings.Contains(text, "product of") || strings.Contains(text, "matrices") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}

// TestTensorizeSkipsUnsupportedLoops checks results with another distribution, and fewer terms than an instruction
// takes.
func TestTensorizeSkipsUnsupportedLoops(t *testing.T) {
	for what, change := range map[string][2]string{
		"threads that have columns first":  {"reorder 0 2 7 10 4 6 8 11\nfuse 0 7 10", "reorder 0 2 10 7 4 6 8 11\nfuse 0 10 7"},
		"columns that are no neighbours":   {"split 0 9 2 0", "split 0 9 4 0"},
		"terms that are no whole matrices": {"tensorize 1 2 0", "split 1 2 4 0\ntensorize 1 13 0"},
	} {
		trace := strings.Replace(kerneltest.WarpTile, change[0], change[1], 1)
		switch { // the sums are spread like the results
		case strings.Contains(trace, "fuse 0 10 7"):
			trace = strings.Replace(trace, "reorder 1 6 9 2", "reorder 1 9 6 2", 1)
			trace = strings.Replace(trace, "fuse 1 6 9", "fuse 1 9 6", 1)
		case strings.Contains(trace, "split 0 9 4 0"):
			trace = strings.Replace(trace, "split 1 8 2 0", "split 1 8 4 0", 1)
		}
		if text := pass.Tensorize(spreadOver(t, trace)).Text(); strings.Contains(text, "matrices") || strings.Contains(text, "product of") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
}
