package stat

import (
	"cmp"
	"math"
	"slices"
)

// Spearman returns the rank correlation of two lists of the same length, from -1 to 1, or 0 if all values of
// a list are equal.
func Spearman(a, b []float64) float64 {
	x, y := ranks(a), ranks(b)
	mean := float64(len(a)-1) / 2
	var xy, xx, yy float64
	for k := range x {
		dx, dy := x[k]-mean, y[k]-mean
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// ranks returns the ranks of the values. Equal values share their mean rank.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	list := make([]float64, len(values))
	for k := 0; k < len(order); {
		end := k + 1
		for end < len(order) && values[order[end]] == values[order[k]] {
			end++
		}
		for _, at := range order[k:end] {
			list[at] = float64(k+end-1) / 2
		}
		k = end
	}
	return list
}
