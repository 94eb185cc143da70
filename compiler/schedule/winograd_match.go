package schedule

import (
	"fmt"
	"slices"

	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// conv is a stage matched as a convolution by a constant kernel.
type conv struct {
	// dtype is the computation type: that of the stage, or float32 if integers is set, where the stage sums
	// products of small integers.
	dtype    array.DType
	integers bool
	// batch, y, x and oc are the stage's axes: images in axis order, rows, columns, output channels.
	batch    []*expr.Var
	y, x, oc *expr.Var
	// ry, rx and ic are its reduction axes: the kernel's rows and columns, input channels.
	ry, rx, ic *expr.Var
	// strideY and strideX are the distances of the outputs' rows and columns in the activation.
	strideY, strideX int64
	// data and weights are its two loads, constant the index of the weights in Workload.Constants.
	data, weights *expr.Load
	constant      int
}

// Conv identifies the iterators of a stage that Winograd applies to.
type Conv struct {
	// Batch, Y, X and OC are axis numbers: images, rows, columns and output channels.
	Batch    []int
	Y, X, OC int
	// IC is the number of input channels.
	IC int64
	// Constant is the index of the weights in Workload.Constants.
	Constant int
	c        *conv
}

// Conv matches a stage as a convolution that Winograd applies to; ok is false if it has another form.
func (s *Schedule) Conv(stageID int) (found Conv, ok bool) {
	g, err := s.stage(stageID)
	if err != nil {
		return found, false
	}
	c, err := s.matchConv(g)
	if err != nil {
		return found, false
	}
	axis := func(v *expr.Var) int { return slices.Index(g.Axes, v) }
	found = Conv{Y: axis(c.y), X: axis(c.x), OC: axis(c.oc), IC: c.ic.Extent, Constant: c.constant, c: c}
	for _, v := range c.batch {
		found.Batch = append(found.Batch, axis(v))
	}
	return found, true
}

// Filtering is the cost of F(my x mx, kernel) for one tile of my x mx outputs in one channel.
type Filtering struct {
	// Products is the number of multiplications, and of inputs; Fetched is the number of inputs that belong to the
	// tile alone, plus one row and column.
	Products, Fetched int64
	// InputOps and OutputOps are the operation counts of the transforms.
	InputOps, OutputOps int
	// Growth is the approximate ratio of rounding errors to those of direct sums.
	Growth float64
}

// Filtering returns the cost of the algorithm; ok is false if Winograd does not support it.
func (c Conv) Filtering(my, mx int64) (f Filtering, ok bool) {
	t, err := newTiling(c.c, my, mx)
	if err != nil {
		return f, false
	}
	ay, ax := t.rows.products(), t.columns.products()
	return Filtering{
		Products:  ay * ax,
		Fetched:   (t.rows.m*t.rows.stride + 1) * (t.columns.m*t.columns.stride + 1),
		InputOps:  int(ax)*t.rows.input.operations(ay) + int(ay)*t.columns.input.operations(ax),
		OutputOps: int(ax)*t.rows.output.operations(my) + int(my)*t.columns.output.operations(mx),
		Growth:    t.growth(),
	}, true
}

// matchConv matches a stage as a convolution that Winograd applies to; the error continues "stage N".
func (s *Schedule) matchConv(g *Stage) (*conv, error) {
	c := &conv{dtype: g.Tensor.DType}
	if c.integers = c.dtype == array.Int32; c.integers {
		c.dtype = array.Float32
	}
	if g.Combiner != expr.Sum || c.dtype != array.Float32 && c.dtype != array.Float64 {
		return nil, fmt.Errorf("is not a sum of floats or of products of small integers")
	}
	if err := s.matchLoads(g, c); err != nil {
		return nil, err
	}
	if err := c.matchReduction(g); err != nil {
		return nil, err
	}
	if err := c.matchAxes(g); err != nil {
		return nil, err
	}
	if anyLimited(c.ry, c.rx, c.ic) {
		return nil, fmt.Errorf("sums over an open axis")
	}
	return c, nil
}

// matchLoads matches the product. Small integers and 16-bit elements are cast to the type of the sum.
func (s *Schedule) matchLoads(g *Stage, c *conv) error {
	a, b, ok := Factors(g.Body)
	if ok && a.Tensor.Role == expr.Constant {
		a, b = b, a
	}
	if !ok || !c.multiplies(a.DType()) || !c.multiplies(b.DType()) && b.DType() != array.Int8 {
		return fmt.Errorf("is not a sum of products of two loads of floats or of integers")
	}
	if c.integers && (a.DType().Bytes() > 1 || b.DType().Bytes() > 2) {
		return fmt.Errorf("multiplies integers whose sums have more digits than floats")
	}
	c.data, c.weights = a, b
	c.constant = slices.Index(s.Workload.Constants, b.Tensor)
	switch {
	case c.constant < 0 || a.Tensor.Role == expr.Constant:
		return fmt.Errorf("does not multiply an activation by a constant")
	case s.Packs[c.constant] != nil || s.Transforms[c.constant] != nil:
		return fmt.Errorf("reads constant %d, which is already packed", c.constant)
	}
	for _, x := range s.Stages {
		reads := slices.ContainsFunc(expr.Loads(x.Body), func(l *expr.Load) bool { return l.Tensor == b.Tensor })
		if x != g && !x.Inlined && reads {
			return fmt.Errorf("shares constant %d with stage %d", c.constant, x.ID)
		}
	}
	return nil
}

// multiplies reports whether factors of a type convert exactly to that of the sum.
func (c *conv) multiplies(d array.DType) bool {
	if c.integers {
		return d.IsInt()
	}
	return d.IsFloat()
}

// matchReduction finds the kernel axes, each a whole index of the weights and a step of one in an index of the
// activation, and the input channels, a whole index of both.
func (c *conv) matchReduction(g *Stage) error {
	if len(g.Reduce) != 3 {
		return fmt.Errorf("does not reduce over two kernel axes and input channels")
	}
	var kernel []*expr.Var
	for _, r := range g.Reduce {
		if wholeIndex(c.weights, r) < 0 {
			return fmt.Errorf("does not index its weights by each reduction axis alone")
		}
		if wholeIndex(c.data, r) < 0 {
			kernel = append(kernel, r)
		} else {
			c.ic = r
		}
	}
	if len(kernel) != 2 || c.ic == nil {
		return fmt.Errorf("does not reduce over two kernel axes and all input channels")
	}
	c.ry, c.rx = kernel[0], kernel[1]
	return nil
}

// matchAxes identifies the spatial axes: each other index of the activation is one of them, either alone or, times
// a stride, plus a kernel axis; the remaining one numbers the output channels.
func (c *conv) matchAxes(g *Stage) error {
	for _, v := range g.Axes {
		inData, inWeights := expr.Uses(c.data, v), wholeIndex(c.weights, v) >= 0
		switch {
		case inWeights && !inData && c.oc == nil:
			c.oc = v
		case inWeights || !inData:
			return fmt.Errorf("has an axis of extent %d that is neither of the activation nor the output channels", v.Extent)
		}
	}
	if c.oc == nil || len(c.weights.Index) != 4 {
		return fmt.Errorf("has weights that are not indexed by kernel rows, kernel columns, input and output channels")
	}
	for _, index := range c.data.Index {
		if index == expr.Expr(c.ic) {
			continue
		}
		if err := c.matchIndex(index, g.Axes); err != nil {
			return err
		}
	}
	if c.y == nil || c.x == nil || len(c.batch)+3 != len(g.Axes) {
		return fmt.Errorf("does not move two indices of the activation by its kernel axes")
	}
	slices.SortFunc(c.batch, func(a, b *expr.Var) int { return slices.Index(g.Axes, a) - slices.Index(g.Axes, b) })
	return nil
}

func (c *conv) matchIndex(index expr.Expr, axes []*expr.Var) error {
	l := expr.Linearize(index)
	var axis, kernel *expr.Var
	stride := int64(1)
	for _, t := range l.Terms {
		v, ok := t.Atom.(*expr.Var)
		switch {
		case !ok || t.Coef < 1:
			return fmt.Errorf("has an index of the activation that is not a sum of axes")
		case v == c.ry || v == c.rx:
			if kernel = v; t.Coef != 1 {
				return fmt.Errorf("has a dilation")
			}
		case slices.Contains(axes, v) && axis == nil:
			axis, stride = v, t.Coef
		default:
			return fmt.Errorf("has an index of the activation that mixes axes")
		}
	}
	switch {
	case axis == nil && kernel == nil && len(l.Terms) == 0:
		return nil
	case axis == nil || len(l.Terms) > 2 || axis == c.y || axis == c.x || slices.Contains(c.batch, axis):
		return fmt.Errorf("has an index of the activation that mixes axes")
	case kernel == nil && stride > 1:
		return fmt.Errorf("has a stride along an axis without a kernel")
	case kernel == nil:
		c.batch = append(c.batch, axis)
	case kernel == c.ry && c.y == nil:
		c.y, c.strideY = axis, stride
	case kernel == c.rx && c.x == nil:
		c.x, c.strideX = axis, stride
	default:
		return fmt.Errorf("moves two indices of the activation by one kernel axis")
	}
	return nil
}

// wholeIndex returns the dimension that a load indexes by v alone; -1 if none exists, or if v occurs in others.
func wholeIndex(l *expr.Load, v *expr.Var) int {
	at := slices.Index(l.Index, expr.Expr(v))
	for k, x := range l.Index {
		if k != at && expr.Uses(x, v) {
			return -1
		}
	}
	return at
}

// activation returns the convolution's operand at row y and column x of the padded image, relative to the first
// output and a kernel of that size, in the computation type.
func (c *conv) activation(batch []expr.Expr, y, x, channel expr.Expr) expr.Expr {
	values := map[*expr.Var]expr.Expr{c.y: expr.I(0), c.x: expr.I(0), c.ry: y, c.rx: x, c.ic: channel}
	for k, v := range c.batch {
		values[v] = batch[k]
	}
	return expr.To(c.dtype, expr.Substitute(c.data, values))
}

// weight returns an element of the kernel, read from another tensor of the constant's shape.
func (c *conv) weight(source *expr.Tensor, row, column int64, in, out expr.Expr) expr.Expr {
	at := make([]expr.Expr, len(c.weights.Index))
	for v, x := range map[*expr.Var]expr.Expr{c.ry: expr.I(row), c.rx: expr.I(column), c.ic: in, c.oc: out} {
		at[wholeIndex(c.weights, v)] = x
	}
	return source.At(at...)
}
