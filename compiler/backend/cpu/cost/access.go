package cost

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/expr"
)

// Access describes how a statement reads a tensor or stores its result, as a function of its axes. Loads that differ
// only in constants share an Access.
type Access struct {
	// Tensor is an argument, a constant, or the result of another statement.
	Tensor *expr.Tensor
	// Producer is the number of the statement that computes the tensor, or -1 for arguments of the kernel.
	Producer int
	// ElementBytes is the size of an element as it is read.
	ElementBytes int64
	// rows holds the coefficient of each axis per dimension; low and high are the least and largest constants.
	rows      []float64
	low, high []float64
	// quotients holds the contributions of divided axes.
	quotients []quotient
	// parts is the number of loads that differ in constants.
	parts float64
	// Loads is the number of loads in the body, weighted by how often each is executed.
	Loads float64
	// Packed is set for a constant that is laid out in vector order, Store for a result.
	Packed, Store bool
	// Grouped is an axis whose neighbours read the same elements in groups, so that a tile within a group shares them;
	// -1 for none.
	Grouped int
}

// row returns the coefficients of dimension d.
func (x *Access) row(d int) []float64 {
	n := len(x.rows) / len(x.low)
	return x.rows[d*n : (d+1)*n]
}

// Reach returns how many elements of dimension d are read on average while each axis runs over the given number of
// values.
func (x *Access) Reach(d int, axes []float64) float64 {
	return x.extent(d, axes, (*quotient).span)
}

// region returns how many elements of dimension d are computed for that.
func (x *Access) region(d int, axes []float64) float64 {
	return x.extent(d, axes, (*quotient).region)
}

func (x *Access) extent(d int, axes []float64, far func(*quotient, []float64) float64) float64 {
	return min(x.one(d, axes, far)+x.high[d]-x.low[d], float64(x.Tensor.Shape[d]))
}

// one returns the extent of one load.
func (x *Access) one(d int, axes []float64, far func(*quotient, []float64) float64) float64 {
	extent := 1 + span(x.row(d), axes)
	if len(x.quotients) == 0 { // the common case: all coefficients are integers
		return min(extent, float64(x.Tensor.Shape[d]))
	}
	for k := range x.quotients {
		if q := &x.quotients[k]; q.dim == d {
			extent += far(q, axes)
		}
	}
	return min(math.Ceil(extent), float64(x.Tensor.Shape[d]))
}

// span returns the range of a sum of axes while each runs over the given number of values.
func span(row, axes []float64) float64 {
	far := 0.0
	for k, c := range row {
		if c != 0 {
			far += c * (axes[k] - 1)
		}
	}
	return far
}

// Elements returns how many elements are read while each axis runs over the given number of values.
func (x *Access) Elements(axes []float64) float64 {
	all, each := 1.0, x.parts
	for d := range x.low {
		all *= x.Reach(d, axes)
	}
	if !x.apart() {
		return all
	}
	for d := range x.low {
		each *= x.one(d, axes, (*quotient).span)
	}
	return min(all, each)
}

// apart reports whether loads that differ in constants may leave gaps.
func (x *Access) apart() bool {
	for d := range x.low {
		if x.high[d]-x.low[d] >= x.parts {
			return true
		}
	}
	return false
}

// Moves reports whether the access depends on an axis.
func (x *Access) Moves(axis int) bool {
	for d := range x.low {
		if x.Coefficient(d, axis) != 0 {
			return true
		}
	}
	return false
}

// MovesWith reports whether an access depends on an axis, other than through groups of neighbours. It depends on no
// missing axis, -1.
func (x *Access) MovesWith(axis int) bool { return axis >= 0 && axis != x.Grouped && x.Moves(axis) }

// MovesWithAny reports whether one of the axes from first up to end affects what is read.
func (x *Access) MovesWithAny(first, end int) bool {
	for axis := first; axis < end; axis++ {
		if x.MovesWith(axis) {
			return true
		}
	}
	return false
}

// maxApart is the maximum distance in elements between neighbours' reads for which few vectors hold the data of a
// vector.
const maxApart = 4

// GroupOf returns the number of consecutive values of an axis for which the same elements are read, as the channels of
// a convolution's group do: the axis is only used in a quotient. It returns 1 if neighbours read elements that are a
// few apart, as groups of one channel with several inputs do, and 0 if the axis is used otherwise.
func (x *Access) GroupOf(axis int) (group int64) {
	for d := range x.low {
		if c := x.row(d)[axis]; c > 1 && c <= maxApart {
			group = 1
		} else if c != 0 {
			return 0
		}
	}
	for k := range x.quotients {
		q := &x.quotients[k]
		if q.row[axis] == 0 {
			continue
		}
		if q.rest || q.row[axis] != 1 || sum(q.row) != 1 || group != 0 && group != int64(q.by) {
			return 0
		}
		group = int64(q.by)
	}
	return group
}

func sum(list []float64) (all float64) {
	for _, v := range list {
		all += v
	}
	return all
}

// Average replaces the quotients of an axis by how far its values move them on average, rounded up.
func (x *Access) Average(axis int) {
	x.quotients = slices.DeleteFunc(slices.Clone(x.quotients), func(q quotient) bool {
		x.row(q.dim)[axis] += math.Ceil(q.coefficient(axis))
		return q.row[axis] != 0
	})
}

// Run returns how many contiguous bytes are read while each axis runs over the given number of values.
func (x *Access) Run(axes []float64) int64 {
	box := make([]int64, len(x.low))
	for d := range box {
		box[d] = int64(x.Reach(d, axes))
	}
	return contiguousRun(x.Tensor.Shape, box, x.ElementBytes, x.Packed)
}

// Coefficient returns how far dimension d moves on average between neighbouring values of an axis.
func (x *Access) Coefficient(d, axis int) float64 {
	c := x.row(d)[axis]
	for k := range x.quotients {
		if q := &x.quotients[k]; q.dim == d {
			c += q.coefficient(axis)
		}
	}
	return c
}

// Step returns the distance in memory, in elements, between accesses for neighbouring values of an axis. Packed
// tensors are laid out in vector order.
func (x *Access) Step(axis int) float64 {
	step := x.StepIn(x.Tensor.Shape, axis)
	if x.Packed && step > 0 {
		return 1
	}
	return step
}

// StepIn is Step in a buffer of the given shape.
func (x *Access) StepIn(shape []int64, axis int) (step float64) {
	stride := 1.0
	for d := len(shape) - 1; d >= 0; d-- {
		step += x.Coefficient(d, axis) * stride
		stride *= float64(shape[d])
	}
	return step
}

// touched returns the bytes, lines and pages that are touched while each axis runs over the given number of values.
// Nearby results lie in a buffer of the given shape; nil means that the whole tensor is in memory. Loads that differ
// in constants touch the range between them, or separate ranges if they are far apart.
func (x *Access) touched(axes, buffer []float64, lineBytes int64) Touch {
	all := x.touches(axes, buffer, lineBytes, (*Access).Reach)
	if !x.apart() {
		return all
	}
	one := x.touches(axes, buffer, lineBytes, func(x *Access, d int, axes []float64) float64 {
		return x.one(d, axes, (*quotient).span)
	})
	return Touch{min(all.Bytes, x.parts*one.Bytes), min(all.Lines, x.parts*one.Lines), min(all.Pages, x.parts*one.Pages)}
}

func (x *Access) touches(axes, buffer []float64, lineBytes int64, reach func(x *Access, d int, axes []float64) float64) (t Touch) {
	var few [2][8]int64
	box, shape := few[0][:0], few[1][:0]
	elements := 1.0
	for d := range x.low {
		e, s := reach(x, d, axes), float64(x.Tensor.Shape[d])
		if buffer != nil {
			s = buffer[d]
			e = min(e, s)
		}
		elements *= e
		box, shape = append(box, int64(e)), append(shape, int64(s))
	}
	t.Bytes = elements * float64(x.ElementBytes)
	t.Lines, t.Pages = touched(shape, box, x.ElementBytes, lineBytes, x.Packed)
	return t
}

// Touch is the memory that a loop touches of a tensor.
type Touch struct{ Bytes, Lines, Pages float64 }

func (t Touch) plus(o Touch) Touch {
	return Touch{t.Bytes + o.Bytes, t.Lines + o.Lines, t.Pages + o.Pages}
}

// pageBytes is the size of a page of memory.
const pageBytes = 4096

// touched returns how many cache lines and pages a box of a tensor touches, given its extent in each dimension.
// Packed tensors are stored in the order of reads, so every box of them is contiguous.
func touched(shape, box []int64, elementBytes, lineBytes int64, packed bool) (lines, pages float64) {
	run, runs, gap := contiguousRun(shape, box, elementBytes, packed), int64(1), elementBytes
	whole := true // true while the inner dimensions are touched whole and thus contiguous
	for d := len(shape) - 1; d >= 0; d-- {
		e := box[d]
		if !whole {
			runs *= e
		}
		whole = whole && (e == shape[d] || packed)
		if !whole && runs == 1 {
			gap *= shape[d]
		} else if whole {
			gap *= shape[d]
		}
	}
	lines = float64(runs) * float64((run+lineBytes-1)/lineBytes)
	if gap%lineBytes != 0 { // runs start anywhere in a line
		lines = float64(runs) * (float64(run)/float64(lineBytes) + 0.5)
	}
	pages = float64(runs) * (float64(run)/pageBytes + 1)
	if gap < pageBytes {
		pages = float64(runs*max(gap, run))/pageBytes + 1
	}
	return lines, pages
}

// contiguousRun returns how many contiguous bytes of memory a box of a tensor has.
func contiguousRun(shape, box []int64, elementBytes int64, packed bool) int64 {
	run := elementBytes
	for d := len(shape) - 1; d >= 0; d-- {
		run *= box[d]
		if box[d] != shape[d] && !packed {
			break
		}
	}
	return run
}

// quotient is a part of an index: a sum of axes divided by a number, or the remainder of that division.
type quotient struct {
	// dim is the dimension that it indexes, scale its factor.
	dim   int
	scale float64
	// row holds the coefficient of each axis in the sum.
	row []float64
	by  float64
	// rest is set for a remainder.
	rest bool
}

// span returns its average range while each axis runs over the given number of values.
func (q *quotient) span(axes []float64) float64 {
	far := span(q.row, axes)
	switch {
	case q.rest:
		far = min(far, q.by-1)
	case q.aligned(far + 1):
		far = max(1, (far+1)/q.by) - 1
	default:
		far /= q.by
	}
	return q.scale * far
}

// region returns its range according to lowering. Values that may straddle a multiple of the divisor are assumed to
// do so, so that all remainders are among them.
func (q *quotient) region(axes []float64) float64 {
	far := span(q.row, axes)
	switch {
	case far == 0 || q.aligned(far+1):
		return q.span(axes)
	case q.rest:
		return q.scale * (q.by - 1)
	}
	return q.scale * (math.Floor(far/q.by) + 1)
}

// aligned reports whether the given number of values forms parts between multiples of the divisor. Parts of an axis
// are assumed to start at multiples of their size, as those of a split do.
func (q *quotient) aligned(values float64) bool {
	return math.Mod(values, q.by) == 0 || math.Mod(q.by, values) == 0
}

// coefficient returns its average step between neighbouring values of an axis.
func (q *quotient) coefficient(axis int) float64 {
	if q.rest {
		return q.scale * q.row[axis]
	}
	return q.scale * q.row[axis] / q.by
}

// alike reports whether two accesses depend on the same quotients.
func alike(a, b []quotient) bool {
	return len(a) == len(b) && slices.EqualFunc(a, b, func(x, y quotient) bool {
		return x.dim == y.dim && x.scale == y.scale && x.by == y.by && x.rest == y.rest && slices.Equal(x.row, y.row)
	})
}
