package gbdt

import "math"

// maxBins is the maximum number of bins of a feature. A bin number fits in a byte.
const maxBins = 63

// binned holds the data by feature, with each value replaced by its bin number.
type binned struct {
	rows int
	// columns[f][i] is the bin of feature f in row i.
	columns [][]uint8
	// bounds[f][b] is the largest value in bin b of feature f. The last bin has no bound.
	bounds [][]float64
}

// bin sorts the values of each feature into bins with about the same number of rows. Each distinct value gets
// its own bin if there are few.
func bin(d *Data, workers int) *binned {
	rows, n := d.NumRows(), len(d.Features)
	b := &binned{rows: rows, columns: make([][]uint8, n), bounds: make([][]float64, n)}
	parallel(workers, n, func(f int) {
		values := make([]placed, rows)
		for i := range values {
			values[i] = place(d.Rows[i*n+f], i)
		}
		sorted := sortPlaced(values)
		bounds := boundsOf(sorted)
		column := make([]uint8, rows)
		at := 0
		for _, v := range sorted {
			for at < len(bounds) && float64(v.value()) > bounds[at] {
				at++
			}
			column[v.row()] = uint8(at)
		}
		b.columns[f], b.bounds[f] = column, bounds
	})
	return b
}

// placed combines a value with its row in an integer that sorts like the value.
type placed uint64

func place(v float32, row int) placed {
	bits := math.Float32bits(v + 0) // -0 is 0
	if bits>>31 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 31
	}
	return placed(bits)<<32 | placed(uint32(row))
}

func (p placed) row() int { return int(uint32(p)) }

func (p placed) value() float32 {
	bits := uint32(p >> 32)
	if bits>>31 == 1 {
		bits &^= 1 << 31
	} else {
		bits = ^bits
	}
	return math.Float32frombits(bits)
}

// sortPlaced sorts by value with a radix sort, which is faster than comparisons for thousands of values. It
// uses the memory of list.
func sortPlaced(list []placed) []placed {
	const digit = 11
	other := make([]placed, len(list))
	for shift := 32; shift < 64; shift += digit {
		var starts [1 << digit]int32
		for _, p := range list {
			starts[p>>shift&(1<<digit-1)]++
		}
		sum := int32(0)
		for k, n := range starts {
			starts[k], sum = sum, sum+n
		}
		for _, p := range list {
			at := &starts[p>>shift&(1<<digit-1)]
			other[*at] = p
			*at++
		}
		list, other = other, list
	}
	return list
}

// boundsOf returns the bounds of bins over sorted values, halfway between neighbours.
func boundsOf(sorted []placed) []float64 {
	between := func(i int) float64 { return (float64(sorted[i-1].value()) + float64(sorted[i].value())) / 2 }
	var cuts []int // start indexes of distinct values
	for i := 1; i < len(sorted); i++ {
		if sorted[i]>>32 != sorted[i-1]>>32 {
			cuts = append(cuts, i)
		}
	}
	bounds := make([]float64, 0, min(len(cuts), maxBins-1))
	if len(cuts) < maxBins {
		for _, i := range cuts {
			bounds = append(bounds, between(i))
		}
		return bounds
	}
	// A bin ends at the first change of value after its share of the remaining rows.
	last := 0
	for _, i := range cuts {
		left := maxBins - len(bounds)
		if left == 1 {
			break
		}
		if (i-last)*left >= len(sorted)-last {
			bounds = append(bounds, between(i))
			last = i
		}
	}
	return bounds
}
