package schedule

import (
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/expr"
)

// filter is one dimension of a minimal filtering algorithm (Lavin and Gray, "Fast Algorithms for Convolutional
// Neural Networks", CVPR 2016, section 4): m neighbouring outputs of a correlation with some taps, as Aᵀ (G weights
// · Bᵀ inputs) with A products, one per input. Sums common to several elements are written identically, so that
// compilers compute them once.
type filter struct {
	m, taps, stride int64
	// weights is G, [A][taps].
	weights [][]float64
	// input returns row k of Bᵀ applied to the A inputs d, output row k of Aᵀ applied to the A products p.
	input, output transform
}

// transform returns row k of a matrix applied to the elements d.
type transform func(k int64, d func(i int64) expr.Expr) expr.Expr

func (f *filter) products() int64 { return int64(len(f.weights)) }

// multiplications returns the ratio of products to those of the direct sum.
func (f *filter) multiplications() float64 { return float64(f.products()) / float64(f.m*f.taps) }

// inputs returns the number of inputs of the given number of adjacent tiles of m outputs.
func (f *filter) inputs(tiles int64) int64 { return f.stride*(tiles*f.m-1) + f.taps }

// newFilter returns F(m, taps) for outputs that are stride inputs apart; ok is false if there is no such algorithm.
// With a stride, the inputs and taps that are congruent modulo the stride form a correlation of stride 1 each, and
// outputs are their sum: F(m, 3) with stride 2 has the m+1 products of F(m, 2) on the even inputs and m for the one
// tap on the odd ones, instead of 3 m.
func newFilter(m, taps, stride int64) (f *filter, ok bool) {
	if m < 2 || m > 4 || taps < 2 || stride < 1 || stride > 2 || taps > 7 {
		return nil, false
	}
	phases := make([]*filter, stride)
	for p := range phases {
		if phases[p], ok = newPhase(m, (taps-int64(p)+stride-1)/stride); !ok {
			return nil, false
		}
	}
	if stride == 1 {
		return phases[0], true
	}
	f = &filter{m: m, taps: taps, stride: stride}
	for p, phase := range phases {
		for _, row := range phase.weights {
			spread := make([]float64, taps)
			for j, g := range row {
				spread[int64(j)*stride+int64(p)] = g
			}
			f.weights = append(f.weights, spread)
		}
	}
	even, odd, first := phases[0], phases[1], phases[0].products()
	f.input = func(k int64, d func(i int64) expr.Expr) expr.Expr {
		if k < first {
			return even.input(k, func(i int64) expr.Expr { return d(2 * i) })
		}
		return odd.input(k-first, func(i int64) expr.Expr { return d(2*i + 1) })
	}
	f.output = func(k int64, p func(i int64) expr.Expr) expr.Expr {
		return expr.FusedBin(expr.Add, even.output(k, p), odd.output(k, func(i int64) expr.Expr { return p(first + i) }))
	}
	return f, true
}

// newPhase returns F(m, taps) with stride 1; a single tap has one product per output.
func newPhase(m, taps int64) (f *filter, ok bool) {
	if taps > 1 {
		return interpolated(m, taps)
	}
	f = &filter{m: m, taps: 1, stride: 1}
	for range m {
		f.weights = append(f.weights, []float64{1})
	}
	f.input = func(k int64, d func(i int64) expr.Expr) expr.Expr { return d(k) }
	f.output = f.input
	return f, true
}

// kernel returns row k of G applied to the weights w.
func (f *filter) kernel(k int64, w func(i int64) expr.Expr) expr.Expr {
	var sum expr.Expr
	for i, g := range f.weights[k] {
		if g == 0 {
			continue
		}
		term := scaled(g, w(int64(i)))
		if sum != nil {
			term = expr.AddE(sum, term)
		}
		sum = term
	}
	return sum
}

func scaled(c float64, e expr.Expr) expr.Expr {
	if c == 1 {
		return e
	}
	return expr.MulE(e, expr.F(e.DType(), c))
}

// transformWeights returns G weights Gᵀ for the filters of rows and columns, [A rows, A columns, IC, OC], computed
// in double precision and rounded once to a type.
func transformWeights(c *conv, rows, columns *filter, to array.DType) *Transform {
	source := expr.NewConstant("weights", c.weights.DType(), c.weights.Tensor.Shape...)
	ay, ax, ic, oc := rows.products(), columns.products(), c.ic.Extent, c.oc.Extent
	const wide = array.Float64
	half := expr.Compute("half", []int64{ay, columns.taps, ic, oc}, func(i []expr.Expr) expr.Expr {
		return choose(i[0], ay, func(k int64) expr.Expr {
			return choose(i[1], columns.taps, func(column int64) expr.Expr {
				return rows.kernel(k, func(row int64) expr.Expr { return expr.To(wide, c.weight(source, row, column, i[2], i[3])) })
			})
		})
	})
	whole := expr.Compute("whole", []int64{ay, ax, ic, oc}, func(i []expr.Expr) expr.Expr {
		return expr.To(to, choose(i[1], ax, func(k int64) expr.Expr {
			return columns.kernel(k, func(column int64) expr.Expr { return half.At(i[0], expr.I(column), i[2], i[3]) })
		}))
	})
	t := &Transform{Source: source, Result: whole, Tensor: expr.NewConstant("transformed", to, ay, ax, ic, oc), conv: c, rows: rows, columns: columns}
	t.compute = t.winogradWeights
	return t
}
