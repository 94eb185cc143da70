package rewrite_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/lab/testkit/evaluate"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestTopKOfLongAxes: several rounds of blocks give the same result as sorting, the earlier of equal elements
// first.
func TestTopKOfLongAxes(t *testing.T) {
	const n = 2500
	for _, k := range []int64{3, 700, n} {
		m := modeltest.New().Input("x", 1, n).Known("k", array.FromInt64([]int64{k}, 1)).Node("v,p = TopK x k")
		m.Graph.Nodes[0].Outputs = []string{"v", "p"}
		p := modeltest.Import(t, m.Output("v", "p"))
		if len(p.Calls) != 2 {
			t.Errorf("k=%d: %d kernels, want one search and one that gathers", k, len(p.Calls))
		}
		x := array.New(array.Float32, 1, n)
		order := make([]int64, n)
		for i := range int64(n) {
			x.SetFloat(i, float64(i*i%499)) // with many equals
			order[i] = i
		}
		outs, err := evaluate.Program(p, map[string]*array.Array{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(order, func(a, b int64) int { return cmp.Compare(x.Float(b), x.Float(a)) })
		for i := range k {
			if got := outs["p"].Int(i); got != order[i] || outs["v"].Float(i) != x.Float(order[i]) {
				t.Fatalf("k=%d: result %d is %g at %d, want %g at %d", k, i, outs["v"].Float(i), got, x.Float(order[i]), order[i])
			}
		}
	}
}
