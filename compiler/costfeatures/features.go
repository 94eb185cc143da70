package costfeatures

import (
	"math"
	"slices"
)

// Set is a list of columns.
type Set struct {
	// Name changes with the meaning of any column, so that a model is only applied to features that it was trained on.
	Name string
	// Columns holds the names in order.
	Columns []string
	// cost is the index of the column with the analytic cost.
	cost int
}

// NewSet returns a set of columns. One of them holds the analytic cost: the binary logarithm of its cycles, or a
// value of at most 0 if unknown. NewSet panics if that column does not exist, which is a programming error.
func NewSet(name string, columns []string, cost string) *Set {
	k := slices.Index(columns, cost)
	if k < 0 {
		panic("costfeatures: " + name + " has no column " + cost)
	}
	return &Set{Name: name, Columns: columns, cost: k}
}

// Row describes a candidate: a value for each column, all finite.
type Row struct {
	Set    *Set
	Values []float32
}

// Whole reports whether the row has a value for each column of its set.
func (r Row) Whole() bool { return r.Set != nil && len(r.Values) == len(r.Set.Columns) }

// Cost returns the candidate's analytic cost as the binary logarithm of its cycles; false if it is unknown, or the
// row is incomplete.
func (r Row) Cost() (log2Cycles float64, ok bool) {
	if !r.Whole() {
		return 0, false
	}
	v := r.Values[r.Set.cost]
	return float64(v), v > 0
}

// Log returns the binary logarithm of a count or size plus one.
func Log(v float64) float64 { return math.Log2(1 + max(0, v)) }

// Ratio returns the binary logarithm of a/b, clamped to ±40; 0 if one of them is 0.
func Ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) {
		return 0
	}
	return min(max(math.Log2(a/b), -40), 40)
}

// Share returns a/b; 0 if b is 0.
func Share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Finite returns a number suitable for training: 0 for NaN, with magnitudes limited to 1e30.
func Finite(v float64) float32 {
	switch {
	case math.IsNaN(v):
		return 0
	case v > 1e30:
		return 1e30
	case v < -1e30:
		return -1e30
	}
	return float32(v)
}
