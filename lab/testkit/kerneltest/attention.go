package kerneltest

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
	"pgregory.net/rapid"
)

// DrawAttention draws softmax attention as package op expresses it: batches of heads, keys in rows or columns, scores
// scaled and masked or not.
func DrawAttention(t *rapid.T) *expr.Workload {
	return drawAttention(t, rapid.IntRange(0, 2).Draw(t, "whole matrices") == 0)
}

// DrawWholeAttention draws one whose matrices are whole tiles.
func DrawWholeAttention(t *rapid.T) *expr.Workload { return drawAttention(t, true) }

// DrawTiledAttention draws one in bfloat16 that processors compute in tiles: 16 or more rows, and whole tiles of a
// score's terms.
func DrawTiledAttention(t *rapid.T) *expr.Workload {
	size := func(name string, lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(t, name) }
	return attentionOf(t, array.BFloat16, size("m", 16, 70), size("n", 2, 70), 32*size("d", 1, 2), size("e", 2, 70))
}

// DrawRowOfAttention draws one with a single row per head, as in decoders, with terms for several vectors.
func DrawRowOfAttention(t *rapid.T) *expr.Workload {
	size := func(name string, lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(t, name) }
	return attentionOf(t, array.Float32, 1, size("n", 1, 70), size("d", 1, 70), size("e", 2, 40))
}

func drawAttention(t *rapid.T, whole bool) *expr.Workload {
	g := &dag{t: t}
	d := rapid.SampledFrom([]array.DType{array.Float32, array.Float32, array.Float32, array.BFloat16, array.Float64}).Draw(t, "dtype")
	size := func(name string, limit int64) int64 {
		if whole {
			return rapid.SampledFrom([]int64{16, 32, 64}).Draw(t, name)
		}
		return g.int(name, 1, limit)
	}
	m := size("m", 70)
	if !whole && rapid.IntRange(0, 3).Draw(t, "one row") == 0 { // as in decoders
		m = 1
	}
	return attentionOf(t, d, m, size("n", 70), size("d", 34), size("e", 34))
}

// attentionOf returns attention with m rows, n keys, depth terms of a score and e columns. Several heads of queries
// may share those of keys and values.
func attentionOf(t *rapid.T, d array.DType, m, n, depth, e int64) *expr.Workload {
	g := &dag{t: t}
	heads := g.int("heads", 1, 3)
	batch := []int64{heads}
	if rapid.IntRange(0, 2).Draw(t, "shared") == 0 {
		batch = append(batch, g.int("sharing", 2, 3))
	}
	b := len(batch)
	of := func(rest ...int64) []int64 { return append(slices.Clone(batch), rest...) }
	at := func(i []expr.Expr, rest ...expr.Expr) []expr.Expr { return append(slices.Clone(i), rest...) }
	wide := func(x expr.Expr) expr.Expr {
		if d == array.BFloat16 {
			return expr.To(array.Float32, x)
		}
		return x
	}
	like := func(x expr.Expr, v float64) expr.Expr { return expr.F(x.DType(), v) }
	q, v := g.source(d, false, of(m, depth)...), g.source(d, false, heads, n, e)
	k := g.keys(d, heads, depth, n, wide)
	values := g.add(expr.Compute("values", v.Shape, func(i []expr.Expr) expr.Expr { return wide(v.At(i...)) }))
	scores := g.add(expr.ReduceOver("scores", expr.Sum, of(m, n), []int64{depth}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(wide(q.At(at(i[:b+1], r[0])...)), k.At(i[0], r[0], i[b+1]))
	}))
	mask, hides := g.mask(m, n)
	bounded := func(x, least expr.Expr) expr.Expr {
		if hides {
			return expr.MaxE(x, least)
		}
		return x
	}
	masked := g.add(expr.Compute("masked", scores.Shape, func(i []expr.Expr) expr.Expr {
		s := scores.At(i...)
		return mask(i[b-1:], expr.MulE(s, like(s, 0.25)))
	}))
	rows := scores.Shape[:b+1]
	largest := g.add(expr.ReduceOver("largest", expr.Maximum, rows, []int64{n}, func(i, r []expr.Expr) expr.Expr { return masked.At(at(i, r[0])...) }))
	exp := g.add(expr.Compute("exp", scores.Shape, func(i []expr.Expr) expr.Expr {
		return expr.Un(expr.Exp, expr.SubE(masked.At(i...), bounded(largest.At(i[:b+1]...), expr.LowestFinite(scores.DType))))
	}))
	sum := g.add(expr.ReduceOver("sum", expr.Sum, rows, []int64{n}, func(i, r []expr.Expr) expr.Expr { return exp.At(at(i, r[0])...) }))
	total := g.add(expr.Compute("total", rows, func(i []expr.Expr) expr.Expr {
		x := bounded(sum.At(i...), like(sum.At(i...), 0.5))
		return expr.DivE(like(x, 1), x)
	}))
	mixed := g.add(expr.ReduceOver("mixed", expr.Sum, of(m, e), []int64{n}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(exp.At(at(i[:b+1], r[0])...), values.At(i[0], r[0], i[b+1]))
	}))
	return workloadOf(t, expr.Compute("out", mixed.Shape, func(i []expr.Expr) expr.Expr {
		return expr.To(d, expr.MulE(mixed.At(i...), total.At(i[:b+1]...)))
	}))
}

// keys draws keys in rows or in columns.
func (g *dag) keys(d array.DType, heads, depth, n int64, wide func(expr.Expr) expr.Expr) *expr.Tensor {
	lie := []int64{heads, depth, n}
	order := []int{0, 1, 2}
	if rapid.Bool().Draw(g.t, "keys in rows") {
		lie, order = []int64{heads, n, depth}, []int{0, 2, 1}
	}
	keys := g.source(d, false, lie...)
	return g.add(expr.Compute("keys", []int64{heads, depth, n}, func(i []expr.Expr) expr.Expr {
		return wide(keys.At(i[order[0]], i[order[1]], i[order[2]]))
	}))
}

// mask draws a map of scores: none, an added number, masking of later keys, or of all keys of the first row as well.
// It hides keys if they do not count even where a row has no others.
func (g *dag) mask(m, n int64) (mask func(i []expr.Expr, score expr.Expr) expr.Expr, hides bool) {
	switch rapid.SampledFrom([]string{"none", "added", "causal", "hidden"}).Draw(g.t, "mask") {
	case "added":
		added := g.source(array.Float32, false, m, n)
		return func(i []expr.Expr, score expr.Expr) expr.Expr {
			return expr.AddE(score, expr.To(score.DType(), added.At(i[1], i[2])))
		}, false
	case "causal":
		return func(i []expr.Expr, score expr.Expr) expr.Expr {
			return expr.Sel(expr.Bin(expr.Le, i[2], i[1]), score, expr.F(score.DType(), -0x1.fffffep+127))
		}, false
	case "hidden":
		return func(i []expr.Expr, score expr.Expr) expr.Expr {
			return expr.Sel(expr.Bin(expr.Lt, i[2], i[1]), score, expr.Lowest(score.DType()))
		}, true
	}
	return func(_ []expr.Expr, score expr.Expr) expr.Expr { return score }, false
}
