package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// WinogradStages are the numbers of the stages that replace a convolution, in the order of the data. T counts the tiles of m x
// m outputs over the batch and the image, A = m+2 is the extent of a tile of the image.
type WinogradStages struct {
	// Image [batch.., TY*m+2, TX*m+2, IC] is the activation, with zeros where tiles overhang it.
	Image int
	// Columns [T, A, A, IC] has the columns of each tile transformed, Data [T, A, A, IC] the rows as well.
	Columns, Data int
	// Product [T, A, A, OC] = sum over IC of Data * Weights, a product of matrices for each of the A*A positions.
	Product int
	// Rows [T, m, A, OC] and Result [T, m, m, OC] transform the product back.
	Rows, Result int
}

// maxWinogradElements bounds each stage that Winograd adds.
const maxWinogradElements = 1 << 31

// Winograd computes a convolution by the minimal filtering algorithm F(m x m, 3x3), m = 2 or 4, which needs (m+2)^2 multiplications for m
// x m outputs instead of 9 m^2. The stage must be the sum, over two kernel axes of extent 3 and the input channels, of the product
// of an activation and a constant, with stride 1 and dilation 1 and without groups; it becomes a map that reads Result.
// The constant's transform Weights [A, A, IC, OC] takes its place: Pack lays that out. It must come before other primitives on
// the stage and the constant.
//
// Sums are of other terms than in the direct convolution, with larger rounding errors; see WinogradGrowth.
func (s *Schedule) Winograd(stageID int, m int64) (WinogradStages, error) {
	g, err := s.stage(stageID)
	if err != nil {
		return WinogradStages{}, fmt.Errorf("winograd: %w", err)
	}
	f, ok := filters[m]
	if !ok {
		return WinogradStages{}, fmt.Errorf("winograd: there is no F(%dx%d, 3x3), only m = 2 and 4", m, m)
	}
	if s.scheduled(g) {
		return WinogradStages{}, fmt.Errorf("winograd: stage %d was already scheduled", stageID)
	}
	c, err := s.matchConv(g)
	if err != nil {
		return WinogradStages{}, fmt.Errorf("winograd: stage %d %w", stageID, err)
	}
	t := newTiling(c, m)
	if err := t.check(); err != nil {
		return WinogradStages{}, fmt.Errorf("winograd: stage %d %w", stageID, err)
	}
	weights := transformWeights(c, f)
	s.Transforms[c.constant] = weights
	tensors := t.tensors(f, weights.Tensor)
	first := len(s.Stages)
	for _, x := range tensors {
		s.addStage(&Stage{Tensor: x, Axes: x.Axes, Reduce: x.Reduce, Combiner: x.Combiner, Body: x.Body})
	}
	g.Reduce, g.Combiner, g.Body = nil, expr.None, t.output(tensors[len(tensors)-1])
	g.resetNest()
	s.record("winograd", stageID, int(m))
	return WinogradStages{Image: first, Columns: first + 1, Data: first + 2, Product: first + 3, Rows: first + 4, Result: first + 5}, nil
}

// tiling is how F(m x m, 3x3) cuts a convolution's output into tiles.
type tiling struct {
	c *conv
	m int64
	// batch has the extents of the axes that number images.
	batch []int64
	// ty and tx are the tiles of an image in either direction, tiles those of all images.
	ty, tx, tiles int64
}

func newTiling(c *conv, m int64) *tiling {
	t := &tiling{c: c, m: m, ty: (c.y.Extent + m - 1) / m, tx: (c.x.Extent + m - 1) / m}
	t.tiles = t.ty * t.tx
	for _, v := range c.batch {
		t.batch = append(t.batch, v.Extent)
		if t.tiles <= maxWinogradElements {
			t.tiles *= v.Extent
		}
	}
	return t
}

func (t *tiling) check() error {
	a := t.m + 2
	for _, shape := range [][]int64{t.imageShape(), {t.tiles, a, a, t.c.ic.Extent}, {t.tiles, a, a, t.c.oc.Extent}, {a, a, t.c.ic.Extent, t.c.oc.Extent}} {
		n := int64(1)
		for _, e := range shape {
			if e > maxWinogradElements/n {
				return fmt.Errorf("is too large: its tiles would have more than %d elements", int64(maxWinogradElements))
			}
			n *= e
		}
	}
	return nil
}

func (t *tiling) imageShape() []int64 {
	return append(append([]int64{}, t.batch...), t.ty*t.m+2, t.tx*t.m+2, t.c.ic.Extent)
}

// tensors are the new stages' computations, in the order of WinogradStages.
func (t *tiling) tensors(f *filter, weights *expr.Tensor) []*expr.Tensor {
	a, ic, oc := t.m+2, t.c.ic.Extent, t.c.oc.Extent
	image := t.image()
	columns := expr.Compute("columns", []int64{t.tiles, a, a, ic}, func(i []expr.Expr) expr.Expr {
		return choose(i[1], a, func(k int64) expr.Expr {
			return f.input(k, func(r int64) expr.Expr { return image.At(t.inImage(i[0], expr.I(r), i[2], i[3])...) })
		})
	})
	data := expr.Compute("data", columns.Shape, func(i []expr.Expr) expr.Expr {
		return choose(i[2], a, func(k int64) expr.Expr {
			return f.input(k, func(r int64) expr.Expr { return columns.At(i[0], i[1], expr.I(r), i[3]) })
		})
	})
	product := expr.ReduceOver("product", expr.Sum, []int64{t.tiles, a, a, oc}, []int64{ic}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(data.At(i[0], i[1], i[2], r[0]), weights.At(i[1], i[2], r[0], i[3]))
	})
	rows := expr.Compute("rows", []int64{t.tiles, t.m, a, oc}, func(i []expr.Expr) expr.Expr {
		return choose(i[1], t.m, func(k int64) expr.Expr {
			return f.output(k, func(r int64) expr.Expr { return product.At(i[0], expr.I(r), i[2], i[3]) })
		})
	})
	result := expr.Compute("result", []int64{t.tiles, t.m, t.m, oc}, func(i []expr.Expr) expr.Expr {
		return choose(i[2], t.m, func(k int64) expr.Expr {
			return f.output(k, func(r int64) expr.Expr { return rows.At(i[0], i[1], expr.I(r), i[3]) })
		})
	})
	return []*expr.Tensor{image, columns, data, product, rows, result}
}

// choose is f at the value of k, 0 <= k < n. Unrolling k leaves one of them.
func choose(k expr.Expr, n int64, f func(k int64) expr.Expr) expr.Expr {
	e := f(n - 1)
	for v := n - 2; v >= 0; v-- {
		e = expr.Sel(expr.Bin(expr.Eq, k, expr.I(v)), f(v), e)
	}
	return e
}

// image reads the activation where the convolution does, and is zero beyond.
func (t *tiling) image() *expr.Tensor {
	rank := len(t.batch)
	return expr.Compute("image", t.imageShape(), func(i []expr.Expr) expr.Expr {
		value := t.c.activation(i[:rank], i[rank], i[rank+1], i[rank+2])
		for k, v := range []*expr.Var{t.c.y, t.c.x} {
			if v.Extent%t.m != 0 {
				value = expr.Sel(expr.Bin(expr.Lt, i[rank+k], expr.I(v.Extent+2)), value, expr.Zero(t.c.dtype))
			}
		}
		return value
	})
}

// inImage is the index in the image of row r and column q of a tile.
func (t *tiling) inImage(tile, r, q, channel expr.Expr) []expr.Expr {
	at, rest := make([]expr.Expr, len(t.batch)), tile
	digit := func(extent int64) expr.Expr {
		d := expr.Bin(expr.FloorMod, rest, expr.I(extent))
		rest = expr.Bin(expr.FloorDiv, rest, expr.I(extent))
		return d
	}
	x, y := digit(t.tx), digit(t.ty)
	for k := len(t.batch) - 1; k >= 0; k-- {
		at[k] = digit(t.batch[k])
	}
	m := expr.I(t.m)
	return slices.Concat(at, []expr.Expr{expr.AddE(expr.MulE(y, m), r), expr.AddE(expr.MulE(x, m), q), channel})
}

// output is the convolution's element, found in its tile.
func (t *tiling) output(result *expr.Tensor) expr.Expr {
	tile := expr.I(0)
	for k, v := range t.c.batch {
		tile = expr.AddE(expr.MulE(tile, expr.I(t.batch[k])), v)
	}
	m := expr.I(t.m)
	tile = expr.AddE(expr.MulE(tile, expr.I(t.ty)), expr.Bin(expr.FloorDiv, t.c.y, m))
	tile = expr.AddE(expr.MulE(tile, expr.I(t.tx)), expr.Bin(expr.FloorDiv, t.c.x, m))
	return result.At(tile, expr.Bin(expr.FloorMod, t.c.y, m), expr.Bin(expr.FloorMod, t.c.x, m), t.c.oc)
}
