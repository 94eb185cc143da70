package gbdt

import (
	"slices"
	"sort"
)

// maxBins is the most bins of a feature, so that a bin's number is a byte.
const maxBins = 63

// binned is the data with each value replaced by the number of its bin, feature by feature.
type binned struct {
	rows int
	// columns[f][i] is the bin of row i's feature f.
	columns [][]uint8
	// bounds[f][b] is the largest value that belongs to bin b of feature f; the last bin has no bound.
	bounds [][]float64
}

// bin sorts each feature's values into bins of about as many rows each; every distinct value has its own where there are few.
func bin(d *Data, workers int) *binned {
	rows, n := d.NumRows(), len(d.Features)
	b := &binned{rows: rows, columns: make([][]uint8, n), bounds: make([][]float64, n)}
	parallel(workers, n, func(f int) {
		values := make([]float32, rows)
		for i := range values {
			values[i] = d.Rows[i*n+f]
		}
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		bounds := boundsOf(sorted)
		column := make([]uint8, rows)
		for i, v := range values {
			column[i] = uint8(sort.SearchFloat64s(bounds, float64(v)))
		}
		b.columns[f], b.bounds[f] = column, bounds
	})
	return b
}

// boundsOf cuts sorted values, halfway between neighbours.
func boundsOf(sorted []float32) []float64 {
	between := func(i int) float64 { return (float64(sorted[i-1]) + float64(sorted[i])) / 2 }
	var cuts []int // where a new distinct value begins
	for i := 1; i < len(sorted); i++ {
		if sorted[i] != sorted[i-1] {
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
	// A bin ends at the first change of value behind its share of the rows that are left.
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
