package pass_test

import (
	"testing"

	"github.com/tilth-dev/tilth/compiler/expr"
	"github.com/tilth-dev/tilth/compiler/pass"
	"github.com/tilth-dev/tilth/lab/testkit/kerneltest"
)

// adds can add vectors, and nothing else.
type adds struct{}

func (adds) Has(e expr.Expr, _ *expr.Var) bool {
	n, ok := e.(*expr.Binary)
	return ok && n.Op == expr.Add
}

// TestLanewiseScalarizesUnsupportedOperations checks the exponential, and elements with a stride.
func TestLanewiseScalarizesUnsupportedOperations(t *testing.T) {
	f := unrolled(t, `input t0 f64[4]
input t1 f64[4,3]
map t2 f64[4] = (add (add [t0 i0] (exp [t0 i0])) [t1 i0 1])
output t2
`, "vectorize 0 0\n")
	kerneltest.Golden(t, "lanewise/before", f)
	kerneltest.Golden(t, "lanewise/after", pass.Lanewise(f, adds{}))
}

// TestLanesThatLieApartAreStoredOneByOne checks the columns of a transposed copy.
func TestLanesThatLieApartAreStoredOneByOne(t *testing.T) {
	f := unrolled(t, "input t0 f64[4,2]\nmap t1 f64[4,2] = [t0 i0 i1]\noutput t1\n", "reorder 0 1 0\nvectorize 0 0\n")
	kerneltest.Golden(t, "lanewise/scattered", pass.Lanewise(f, adds{}))
}

func TestUniformTellsConditionsThatAllLanesAgreeOn(t *testing.T) {
	lane, i := &expr.Var{Name: "l", Extent: 8}, &expr.Var{Name: "i", Extent: 4}
	at := expr.AddE(expr.MulE(i, expr.I(8)), lane)
	for name, c := range map[string]struct {
		cond expr.Expr
		want bool
	}{
		"a bound between vectors":        {expr.Bin(expr.Lt, at, expr.I(16)), true},
		"a bound within one":             {expr.Bin(expr.Lt, at, expr.I(20)), false},
		"the last of a vector":           {expr.Bin(expr.Le, at, expr.I(15)), true},
		"from a bound between them":      {expr.Bin(expr.Le, expr.I(16), at), true},
		"both bounds of a part":          {expr.Bin(expr.And, expr.Bin(expr.Le, expr.I(8), at), expr.Bin(expr.Lt, at, expr.I(24))), true},
		"a condition on the loop around": {expr.Bin(expr.Lt, i, expr.I(2)), true},
		"every other lane":               {expr.Bin(expr.Eq, expr.Bin(expr.FloorMod, lane, expr.I(2)), expr.I(0)), false},
	} {
		first, ok := pass.Uniform(c.cond, lane)
		if ok != c.want || ok && expr.Uses(first, lane) {
			t.Errorf("%s: uniform is %t, want %t", name, ok, c.want)
		}
	}
}

// TestLanesOfGroupsArePicked: channels of groups read what their group has, from vectors that are loaded whole. What
// lies in blocks of a vector is in one, wherever the loops are; elsewhere two have it, or four. Of groups that lie
// farther apart the elements themselves are picked.
func TestLanesOfGroupsArePicked(t *testing.T) {
	for name, c := range map[string]struct{ workload, trace string }{
		"groups-of-2":  {"input t0 f32[3,8]\nmap t1 f32[3,8] = [t0 i0 (add (mul (floordiv i1 2) 2) 1)]\noutput t1\n", "vectorize 0 1\n"},
		"groups-of-3":  {"input t0 f32[3,9]\nmap t1 f32[3,8] = [t0 i0 (add (mul (floordiv i1 3) 3) 1)]\noutput t1\n", "vectorize 0 1\n"},
		"every-other":  {"input t0 f32[3,16]\nmap t1 f32[3,8] = [t0 i0 (add (mul i1 2) 1)]\noutput t1\n", "vectorize 0 1\n"},
		"the-same":     {"input t0 f32[3,2]\nmap t1 f32[3,8] = [t0 i0 (floordiv i1 8)]\noutput t1\n", "vectorize 0 1\n"},
		"every-fourth": {"input t0 f32[3,32]\nmap t1 f32[3,8] = [t0 i0 (mul i1 4)]\noutput t1\n", "vectorize 0 1\n"},
		"far-groups":   {"input t0 f32[3,99]\nmap t1 f32[3,8] = [t0 i0 (mul (floordiv i1 3) 40)]\noutput t1\n", "vectorize 0 1\n"},
		"far-apart":    {"input t0 f32[3,48]\nmap t1 f32[3,8] = [t0 i0 (mul i1 6)]\noutput t1\n", "vectorize 0 1\n"},
	} {
		kerneltest.Golden(t, "lanewise/"+name, pass.Lanewise(unrolled(t, c.workload, c.trace), adds{}))
	}
}
