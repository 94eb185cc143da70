package lower_test

import (
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/ir"
	"github.com/tilth-dev/tilth/compiler/lower"
	"github.com/tilth-dev/tilth/compiler/schedule"
)

// program returns the program of a workload with a schedule that can be lowered.
func program(t *testing.T, workload, trace string) *ir.Func {
	t.Helper()
	f, err := lowered(t, workload, trace)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLoopsEndAtTheirLimits computes 8*n of 32 rows in tiles of 4. Since n is at most 4, no loop compares its end with
// that of the whole axis.
func TestLoopsEndAtTheirLimits(t *testing.T) {
	const rows = "input t0 f32[32]\ninput t1 i64[]<=4\n" +
		"map t2 f32[32] while i0 (mul [t1] 8) = (add [t0 i0] 0x1p+00:f32)\noutput t2\n"
	for trace, want := range map[string]string{
		"":                "for x0_0 < 32 from 0 before n0 * 8\n",
		"split 0 0 4 0\n": "for x0_1 < 8 from 0 before n0 * 2\n",
	} {
		f := program(t, rows, trace)
		if text := f.Text(); !strings.Contains(text, want) {
			t.Errorf("%q:\n%s", trace, text)
		}
	}
}

// TestTilesFitTheLastRows computes n of 7 rows in tiles of 3, with code for each number of rows of the last tile: the
// tile of one row may be any, that of 3 only one of the first two.
func TestTilesFitTheLastRows(t *testing.T) {
	f := program(t, "input t0 f32[7,2]\ninput t1 i64[]<=7\n"+
		"map t2 f32[7,2] while i0 [t1] = (add [t0 i0 i1] 0x1p+00:f32)\noutput t2\n", "split 0 0 3 3\nunroll 0 3\n")
	const want = `for x0_2 < 3 from 0 before floordiv(n0 + 2, 3)
  if x0_2 * 3 + 2 < n0
    let f = x0_2
    unrolled x0_3 < 3
`
	text := f.Text()
	if !strings.Contains(text, want) || strings.Count(text, "unrolled") != 2 || !strings.Contains(text, "if x0_2 * 3 + 1 < n0\n") {
		t.Errorf("%s", text)
	}
	if err := f.Verify(); err != nil {
		t.Error(err)
	}
}

// TestLongTilesFitInSteps computes n of 25 elements in tiles of 14, with code for even numbers and for the 11 elements
// of the bound.
func TestLongTilesFitInSteps(t *testing.T) {
	f := program(t, "input t0 f32[25]\ninput t1 i64[]<=25\nmap t2 f32[25] while i0 [t1] = (add [t0 i0] 0x1p+00:f32)\noutput t2\n",
		"split 0 0 14 3\nunroll 0 2\n")
	if sizes := strings.Count(f.Text(), "unrolled x0_2"); sizes != 8 {
		t.Errorf("%d sizes:\n%s", sizes, f.Text())
	}
	if err := f.Verify(); err != nil {
		t.Error(err)
	}
}

// TestStagesInsideAnotherEndWhereItNeedsNoMore: each element of the first stage serves 4 of the second, which computes
// n of 32 in tiles of 16. Indices must be valid beyond that.
func TestStagesInsideAnotherEndWhereItNeedsNoMore(t *testing.T) {
	for stages, want := range map[string]string{
		"map t3 f32[8] = (add [t0 i0] 0x1p+00:f32)\nmap t4 f32[32] while i0 [t2] = [t3 (floordiv i0 4)]\n": "for x0_0 < 4 from 0 before min(floordiv(n0 + 3, 4) + x1_1 * -4, 4)\n",
		"map t3 i64[8] = (min [t1 i0] 7)\nmap t4 f32[32] while i0 [t2] = [t0 [t3 (floordiv i0 4)]]\n":      "for x0_0 < 4\n",
	} {
		f := program(t, "input t0 f32[8]\ninput t1 i64[8]\ninput t2 i64[]<=32\n"+stages+"output t4\n", "split 1 0 16 0\ncompute-at 0 1 1\n")
		if text := f.Text(); !strings.Contains(text, want) {
			t.Errorf("%s has no %q", text, want)
		}
	}
}

// TestSplitsOfFusedAxesEndAtTheInnerLimit has 4 rows of n of 16 elements, fused and divided into chunks of 8.
func TestSplitsOfFusedAxesEndAtTheInnerLimit(t *testing.T) {
	f := program(t, "input t0 f32[4,16]\ninput t1 i64[]<=16\n"+
		"map t2 f32[4,16] while i1 [t1] = (add [t0 i0 i1] 0x1p+00:f32)\noutput t2\n", "fuse 0 0 1\nsplit 0 2 8 0\n")
	if text, want := f.Text(), "if x0_4 + floormod(x0_3, 2) * 8 < n0\n"; !strings.Contains(text, want) {
		t.Errorf("%s has no %q", text, want)
	}
}

// TestIndicesAreComputedBeyondLimits: a tile of elements reads all indices of the tile, of which each must be valid.
func TestIndicesAreComputedBeyondLimits(t *testing.T) {
	w, err := expr.Parse("tilth-workload 1\ninput t0 f32[16]\ninput t1 i64[16]\ninput t2 i64[]<=16\n" +
		"map t3 i64[16] while i0 [t2] = (max (min [t1 i0] 15) 0)\n" +
		"map t4 f32[16] while i0 [t2] = [t0 [t3 i0]]\noutput t4\n")
	if err != nil {
		t.Fatal(err)
	}
	f, err := lower.Schedule(schedule.New(w))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"for x0_0 < 16\n", "for x1_0 < 16 from 0 before n0\n"} {
		if text := f.Text(); !strings.Contains(text, want) {
			t.Errorf("%s has no %q", text, want)
		}
	}
}
