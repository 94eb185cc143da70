package features

import "slices"

// Set is a list of columns.
type Set struct {
	// Name changes whenever the meaning of any column does, so that a model is never asked about numbers that it was
	// not trained on.
	Name string
	// Columns are the names, in order.
	Columns []string
	// cost is the column that has the analytic cost.
	cost int
}

// NewSet is a set of columns, one of which has the analytic cost: the logarithm of its cycles to the base of two; not
// above 0 where it is not known. It panics when there is no such column, which is a programming error.
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

// Cost is the space's analytic cost of the candidate, as the logarithm of its cycles to the base of two; false when it
// is not known, or the row is not whole.
func (r Row) Cost() (log2Cycles float64, ok bool) {
	if !r.Whole() {
		return 0, false
	}
	v := r.Values[r.Set.cost]
	return float64(v), v > 0
}
