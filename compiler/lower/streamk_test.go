package lower_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// lowered returns the program of a workload by a trace, or why it is refused.
func lowered(t *testing.T, workload, trace string) (*ir.Func, error) {
	t.Helper()
	w, err := expr.Parse("tilth-workload 1\n" + workload)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Replay(w, []byte("tilth-trace 1\n"+trace))
	if err != nil {
		return nil, err
	}
	return lower.Schedule(s)
}

// TestStreamKSumsCannotBeMoved: primitives after `streamk` must not move a stage out of the tiles with divided sums,
// nor compute another one in only one of their launches.
func TestStreamKSumsCannotBeMoved(t *testing.T) {
	const sums = `input t0 f32[8,6]
input t1 f32[6,8]
sum t2 f32[8,8] over 6 = (mul [t0 i0 r0] [t1 r0 i1])
sum t3 f32[8,8] over 6 = (mul [t0 i1 r0] [t1 r0 i0])
map t4 f32[8,8] = (add [t2 i0 i1] [t3 i0 i1])
output t4
`
	const outputs = `input t0 f32[8,6]
input t1 f32[6,8]
sum t2 f32[8,8] over 6 = (mul [t0 i0 r0] [t1 r0 i1])
map t3 f32[8,8] = (add [t2 i0 i1] [t2 i0 i1])
map t4 f32[8,8] = (mul [t3 i0 i1] [t3 i0 i1])
output t3 t4
`
	// The last stage has five tiles on three blocks.
	const tiles = "fuse 2 0 1\nsplit 2 2 13 0\nbind 2 3 0\npersist 2 3\n"
	for _, c := range []struct{ name, workload, trace, want string }{
		{
			"moved deeper", kerneltest.TileProduct, kerneltest.Tiles + "persist 0 4\nstreamk 1 1\ncompute-at 1 0 11\n",
			"compute-at: the sums of stage 1 are split by Stream-K",
		},
		{
			"two stages", sums, tiles + "compute-at 1 2 3\ncompute-at 0 2 3\nstreamk 0 1\nstreamk 1 1\n",
			"is computed alongside the Stream-K sums",
		},
		{
			"another stage afterwards", sums, tiles + "compute-at 1 2 3\nstreamk 1 1\ncompute-at 0 2 3\n",
			"compute-at: stage 0 would be computed alongside the Stream-K sums",
		},
		{
			"a stage before", sums, tiles + "compute-at 1 2 3\ncompute-at 0 2 3\nstreamk 1 1\n",
			"stage 0 is computed alongside the Stream-K sums of stage 1",
		},
		{
			"a stage behind", outputs, tiles + "compute-at 1 2 3\ncompute-at 0 2 3\nstreamk 0 1\n",
			"stage 1 is computed alongside the Stream-K sums of stage 0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := lowered(t, c.workload, c.trace); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestStreamKInitializesOuterSumsOnce: if a sum's own loop surrounds the tiles, a launch without parts writes its
// initial values.
func TestStreamKInitializesOuterSumsOnce(t *testing.T) {
	const double = `input t0 f32[10,6]
sum t1 f32[10] over 6 = [t0 i0 r0]
sum t2 f32[10] over 1 = [t1 i0]
output t2
`
	f, err := lowered(t, double, "reorder 1 1 0\nsplit 1 0 2 0\nbind 1 2 0\ncompute-at 0 1 2\npersist 1 3\nstreamk 0 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); err != nil {
		t.Error(err)
	}
	var parts []int64
	launches := 0
	ir.Visit(f.Body, func(st ir.Stmt) {
		switch n := st.(type) {
		case *ir.Alloc:
			if strings.HasPrefix(n.Buffer.Tensor.Name, "parts") {
				parts = append(parts, n.Buffer.Elements())
			}
		case *ir.For:
			if n.Kind == ir.Blocks {
				launches++
			}
		}
	})
	if fmt.Sprint(parts) != "[10]" || launches != 3 {
		t.Errorf("parts of %v elements in %d launches:\n%s", parts, launches, f.Text())
	}
}

// TestCountingStreamKSharesIsBounded: shares of many blocks are counted block by block, so the work per version of a
// nest is limited.
func TestCountingStreamKSharesIsBounded(t *testing.T) {
	const deep = `input t0 f32[9,9,9,9,9,9,130000,2]
sum t1 f32[9,9,9,9,9,9,130000] over 2 = [t0 i0 i1 i2 i3 i4 i5 i6 r0]
map t2 f32[9,9,9,9,9,9,130000] = (neg [t1 i0 i1 i2 i3 i4 i5 i6])
output t2
`
	const blocks = "bind 1 6 0\ncompute-at 0 1 6\npersist 1 65535\nstreamk 0 1\n"
	var splits strings.Builder
	for k := range 6 {
		fmt.Fprintf(&splits, "split 1 %d 4 0\n", k)
	}
	if _, err := lowered(t, deep, blocks); err != nil {
		t.Error(err)
	}
	if _, err := lowered(t, deep, splits.String()+blocks); err == nil || !strings.Contains(err.Error(), "steps to lower") {
		t.Error(err)
	}
}
