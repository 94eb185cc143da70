package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// WinogradStages holds the numbers of the stages that replace a convolution, in the order of the data. T counts the
// tiles of MY x MX outputs over the batch and the image; such a tile needs AY x AX elements of the image and as
// many products.
type WinogradStages struct {
	// Image [batch.., rows, columns, IC] is the activation, with zeros where tiles overhang it.
	Image int
	// Columns [T, AY, AX, IC] holds tiles with transformed columns, Data [T, AY, AX, IC] with transformed rows as
	// well.
	Columns, Data int
	// Product [T, AY, AX, OC] = sum over IC of Data * Weights: a matrix product for each of the AY*AX positions.
	Product int
	// Rows [T, MY, AX, OC] and Result [T, MY, MX, OC] transform the product back.
	Rows, Result int
}

// maxWinogradElements limits the size of each stage that Winograd adds.
const maxWinogradElements = 1 << 31

// Winograd computes a convolution by the minimal filtering algorithm F(my x mx, kernel), my and mx from 2 to 4. For
// 3x3 kernels it needs (m+2)^2 multiplications for m x m outputs instead of 9 m^2, and (2m+1)^2 for a stride of 2.
// The stage must be the sum, over two kernel axes of extents from 2 to 7 and the input channels, of the product of
// an activation and a constant, with strides of 1 or 2, without dilation and groups; it becomes a map that reads
// Result. The transformed Weights [AY, AX, IC, OC] replace the constant, and Pack sets their layout. Winograd must
// precede other primitives on the stage and the constant.
//
// Small integers are computed in floating point, and their sums rounded.
//
// The sums differ from those of the direct convolution and have larger rounding errors; see ErrorGrowth.
func (s *Schedule) Winograd(stageID int, my, mx int64) (WinogradStages, error) {
	return s.WinogradAs(stageID, my, mx, array.Invalid)
}

// WinogradAs is like Winograd, with Data and Weights rounded to type as (bfloat16); Invalid keeps the type of the
// sums.
func (s *Schedule) WinogradAs(stageID int, my, mx int64, as array.DType) (ids WinogradStages, err error) {
	args := []int{int(my), int(mx), int(as)}
	switch {
	case as != array.Invalid:
	case my == mx:
		args = args[:1]
	default:
		args = args[:2]
	}
	err = s.replace("winograd", stageID, args, func(g *Stage) error {
		c, err := s.matchConv(g)
		if err != nil {
			return fmt.Errorf("stage %d %w", stageID, err)
		}
		if as != array.Invalid && (as != array.BFloat16 || c.dtype != array.Float32 || c.integers) {
			return fmt.Errorf("factors of stage %d cannot be rounded to %v", stageID, as)
		}
		t, err := newTiling(c, my, mx)
		if err != nil {
			return fmt.Errorf("stage %d %w", stageID, err)
		}
		t.factors = cmp.Or(as, c.dtype)
		s.algorithms = append(s.algorithms, t.algorithm())
		tensors := t.tensors(s.transform(c.constant, transformWeights(c, t.rows, t.columns, t.factors)))
		first := len(s.Stages)
		t.limitImage(tensors[0])
		for _, x := range tensors[1:] {
			x.Axes[0].Limit = t.limit()
		}
		for _, x := range tensors {
			s.added(x)
		}
		g.Reduce, g.Combiner, g.Body = nil, expr.None, t.output(tensors[len(tensors)-1])
		g.resetNest()
		ids = WinogradStages{Image: first, Columns: first + 1, Data: first + 2, Product: first + 3, Rows: first + 4, Result: first + 5}
		return nil
	})
	return ids, err
}

// maxProducts limits the products of a tile, each of which is unrolled.
const maxProducts = 100

// tiling describes how F(my x mx, kernel) divides a convolution's output into tiles.
type tiling struct {
	c *conv
	// rows and columns are the filters in each direction.
	rows, columns *filter
	// batch holds the extents of the image axes.
	batch []int64
	// ty and tx are the number of tiles of an image in each direction, tiles the total over all images.
	ty, tx, tiles int64
	// factors is the type of the product's factors.
	factors array.DType
}

// newTiling returns an error, which continues "stage N", if there is no such algorithm or its stages are too large.
func newTiling(c *conv, my, mx int64) (*tiling, error) {
	rows, okRows := newFilter(my, c.ry.Extent, c.strideY)
	columns, okColumns := newFilter(mx, c.rx.Extent, c.strideX)
	if !okRows || !okColumns || rows.products()*columns.products() > maxProducts {
		return nil, fmt.Errorf("has no F(%dx%d, %dx%d) with stride %dx%d", my, mx, c.ry.Extent, c.rx.Extent, c.strideY, c.strideX)
	}
	t := &tiling{c: c, rows: rows, columns: columns, ty: (c.y.Extent + my - 1) / my, tx: (c.x.Extent + mx - 1) / mx}
	t.tiles = t.ty * t.tx
	for _, v := range c.batch {
		t.batch = append(t.batch, v.Extent)
		if t.tiles <= maxWinogradElements {
			t.tiles *= v.Extent
		}
	}
	return t, t.check()
}

// name returns the algorithm's name: "F(4x4,3x3)", or "F(2x2,3x3)/2" for a stride of 2.
func (t *tiling) name() string {
	y, x := t.rows, t.columns
	name := fmt.Sprintf("F(%dx%d,%dx%d)", y.m, x.m, y.taps, x.taps)
	switch {
	case y.stride != x.stride:
		return fmt.Sprintf("%s/%dx%d", name, y.stride, x.stride)
	case y.stride > 1:
		return fmt.Sprintf("%s/%d", name, y.stride)
	}
	return name
}

// algorithm returns the properties of the algorithm for a schedule.
func (t *tiling) algorithm() algorithm {
	a := algorithm{t.name(), Default, t.growth(), t.rows.multiplications() * t.columns.multiplications()}
	if t.factors != t.c.dtype {
		how := roundedFormats[BF16]
		a.name, a.level, a.growth = a.name+" in "+how.name, how.level, a.growth*how.growth
	}
	return a
}

// growth returns the ratio of rounding errors to those of the direct sum.
func (t *tiling) growth() float64 { return t.rows.growth() * t.columns.growth() }

func (t *tiling) check() error {
	ay, ax := t.rows.products(), t.columns.products()
	for _, shape := range [][]int64{t.imageShape(), {t.tiles, ay, ax, t.c.ic.Extent}, {t.tiles, ay, ax, t.c.oc.Extent}, {ay, ax, t.c.ic.Extent, t.c.oc.Extent}} {
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

// limit returns the limit of tiles, or nil if all exist.
func (t *tiling) limit() expr.Expr {
	held := expr.I(1)
	for _, a := range t.axes() {
		held = expr.MulE(held, over(a.Held(), a.m))
	}
	if held = expr.Simplify(held); expr.Same(held, expr.I(t.tiles)) {
		return nil
	}
	return held
}

// tiledAxis is an axis that tiles divide into parts of m elements.
type tiledAxis struct {
	*expr.Var
	m int64
	// each is the distance in tiles between neighbours along the axis outside: the tiles that an execution has along
	// this one, at least 1.
	each expr.Expr
}

// axes returns the axes that tiles divide, outermost first. The tiles of an execution are numbered without gaps.
func (t *tiling) axes() (list []tiledAxis) {
	for k, v := range slices.Concat(t.c.batch, []*expr.Var{t.c.y, t.c.x}) {
		m := append(slices.Repeat([]int64{1}, len(t.batch)), t.rows.m, t.columns.m)[k]
		list = append(list, tiledAxis{v, m, expr.Simplify(expr.MaxE(over(v.Held(), m), expr.I(1)))})
	}
	return list
}

// over returns the number of tiles of m elements that cover a limit.
func over(limit expr.Expr, m int64) expr.Expr {
	return expr.Simplify(expr.Bin(expr.FloorDiv, expr.AddE(limit, expr.I(m-1)), expr.I(m)))
}

// limitImage limits an image to what the tiles of an execution need.
func (t *tiling) limitImage(image *expr.Tensor) {
	for k, v := range t.c.batch {
		image.Axes[k].Limit = v.Limit
	}
	for k, f := range []*filter{t.rows, t.columns} {
		if v := []*expr.Var{t.c.y, t.c.x}[k]; v.Limit != nil {
			rows := expr.MulE(over(v.Limit, f.m), expr.I(f.m*f.stride))
			image.Axes[len(t.batch)+k].Limit = expr.Simplify(expr.AddE(rows, expr.I(f.inputs(0))))
		}
	}
}

func (t *tiling) imageShape() []int64 {
	return append(append([]int64{}, t.batch...), t.rows.inputs(t.ty), t.columns.inputs(t.tx), t.c.ic.Extent)
}

// tensors returns the computations of the new stages, in the order of WinogradStages.
func (t *tiling) tensors(weights *expr.Tensor) []*expr.Tensor {
	my, mx, ay, ax, ic, oc := t.rows.m, t.columns.m, t.rows.products(), t.columns.products(), t.c.ic.Extent, t.c.oc.Extent
	image := t.image()
	columns := expr.Compute("columns", []int64{t.tiles, ay, ax, ic}, func(i []expr.Expr) expr.Expr {
		return choose(i[1], ay, func(k int64) expr.Expr {
			return t.rows.input(k, func(r int64) expr.Expr { return image.At(t.inImage(i[0], expr.I(r), i[2], i[3])...) })
		})
	})
	data := expr.Compute("data", columns.Shape, func(i []expr.Expr) expr.Expr {
		return expr.To(t.factors, choose(i[2], ax, func(k int64) expr.Expr {
			return t.columns.input(k, func(r int64) expr.Expr { return columns.At(i[0], i[1], expr.I(r), i[3]) })
		}))
	})
	product := expr.ReduceOver("product", expr.Sum, []int64{t.tiles, ay, ax, oc}, []int64{ic}, func(i, r []expr.Expr) expr.Expr {
		return expr.MulE(expr.To(t.c.dtype, data.At(i[0], i[1], i[2], r[0])), expr.To(t.c.dtype, weights.At(i[1], i[2], r[0], i[3])))
	})
	rows := expr.Compute("rows", []int64{t.tiles, my, ax, oc}, func(i []expr.Expr) expr.Expr {
		return choose(i[1], my, func(k int64) expr.Expr {
			return t.rows.output(k, func(r int64) expr.Expr { return product.At(i[0], expr.I(r), i[2], i[3]) })
		})
	})
	result := expr.Compute("result", []int64{t.tiles, my, mx, oc}, func(i []expr.Expr) expr.Expr {
		return choose(i[2], mx, func(k int64) expr.Expr {
			return t.columns.output(k, func(r int64) expr.Expr { return rows.At(i[0], i[1], expr.I(r), i[3]) })
		})
	})
	return []*expr.Tensor{image, columns, data, product, rows, result}
}

// choose returns f at the value of k, 0 <= k < n. Unrolling k leaves a single alternative.
func choose(k expr.Expr, n int64, f func(k int64) expr.Expr) expr.Expr {
	e := f(n - 1)
	for v := n - 2; v >= 0; v-- {
		e = expr.Sel(expr.Bin(expr.Eq, k, expr.I(v)), f(v), e)
	}
	return e
}

// image reads the activation at the positions of the convolution, and is zero beyond.
func (t *tiling) image() *expr.Tensor {
	rank := len(t.batch)
	return expr.Compute("image", t.imageShape(), func(i []expr.Expr) expr.Expr {
		value := t.c.activation(i[:rank], i[rank], i[rank+1], i[rank+2])
		for k, f := range []*filter{t.rows, t.columns} {
			held := []*expr.Var{t.c.y, t.c.x}[k].Held()
			if rest := expr.Simplify(expr.Bin(expr.FloorMod, held, expr.I(f.m))); !expr.Same(rest, expr.I(0)) {
				end := expr.Simplify(expr.AddE(expr.MulE(held, expr.I(f.stride)), expr.I(f.taps-f.stride)))
				value = expr.Sel(expr.Bin(expr.Lt, i[rank+k], end), value, expr.Zero(t.c.dtype))
			}
		}
		return value
	})
}

// inImage returns the image index of row r and column q of a tile.
func (t *tiling) inImage(tile, r, q, channel expr.Expr) []expr.Expr {
	axes := t.axes()
	at, rest := make([]expr.Expr, len(axes)), tile
	outermost := max(0, slices.IndexFunc(axes, func(a tiledAxis) bool { return a.Extent > 1 }))
	for k, a := range slices.Backward(axes) {
		if at[k] = rest; k > outermost || a.Limit == nil {
			at[k] = expr.Bin(expr.FloorMod, rest, a.each)
		}
		rest = expr.Bin(expr.FloorDiv, rest, a.each)
	}
	y, x := at[len(t.batch)], at[len(t.batch)+1]
	row := expr.AddE(expr.MulE(y, expr.I(t.rows.m*t.rows.stride)), r)
	column := expr.AddE(expr.MulE(x, expr.I(t.columns.m*t.columns.stride)), q)
	return slices.Concat(at[:len(t.batch)], []expr.Expr{row, column, channel})
}

// output returns an element of the convolution, read from its tile.
func (t *tiling) output(result *expr.Tensor) expr.Expr {
	tile := expr.I(0)
	for _, a := range t.axes() {
		tile = expr.AddE(expr.MulE(tile, a.each), expr.Simplify(expr.Bin(expr.FloorDiv, a.Var, expr.I(a.m))))
	}
	my, mx := expr.I(t.rows.m), expr.I(t.columns.m)
	value := result.At(tile, expr.Bin(expr.FloorMod, t.c.y, my), expr.Bin(expr.FloorMod, t.c.x, mx), t.c.oc)
	if t.c.integers {
		return expr.To(array.Int32, expr.Un(expr.Round, value))
	}
	return value
}
