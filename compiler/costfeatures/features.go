package costfeatures

import "slices"

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
		panic("features: " + name + " has no column " + cost)
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
