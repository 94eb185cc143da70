package sketch

import "github.com/tilth-dev/tilth/compiler/expr"

// Turns returns how many turns of the shared memory banks deliver an operand's element to each thread of a warp.
// place returns a thread's row and column in the block; threads beyond the results have none.
func (p *Product) Turns(b Box, f Fetching, o Operand, place func(thread int64) (row, column int64)) int64 {
	rows, columns, groups := p.strides(b, f, o)
	var words [banks]int64
	var used [banks]int64
	n, largest := 0, int64(1)
	for thread := range int64(banks) {
		row, column := place(thread)
		if row >= p.Extents[p.Rows] || column >= p.Extents[p.Columns] {
			continue
		}
		word := (row*rows + column*columns + column/max(1, p.Group)*groups) * o.Load.DType().Bytes() / wordBytes
		known := false
		for _, w := range words[:n] {
			known = known || w == word
		}
		if known {
			continue
		}
		words[n], n = word, n+1
		used[word%banks]++
		largest = max(largest, used[word%banks])
	}
	return largest
}

// strides returns the distances in shared memory, in elements, between the data of neighbouring rows, columns, and
// groups of columns.
func (p *Product) strides(b Box, f Fetching, o Operand) (rows, columns, groups int64) {
	ranges := p.ranges(b)
	stride := int64(1)
	for d := len(o.Load.Index) - 1; d >= 0; d-- {
		extent := int64(1)
		for _, t := range expr.Linearize(o.Load.Index[d]).Terms {
			coef := max(t.Coef, -t.Coef)
			if axis, _, ok := divided(t.Atom); ok && axis == p.Axes[p.Columns] {
				groups += coef * stride
			}
			switch t.Atom {
			case p.Axes[p.Rows]:
				rows += coef * stride
			case p.Axes[p.Columns]:
				columns += coef * stride
			}
			extent += coef * (values(t.Atom, ranges) - 1)
		}
		extent = b.within(o.Load.Tensor.Shape[d], extent)
		if d == len(o.Load.Index)-1 {
			extent += p.gap(o, f, extent)
		}
		stride *= extent
	}
	return rows, columns, groups
}
