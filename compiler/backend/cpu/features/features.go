// Package features describes a scheduled candidate by numbers that a learnt cost model reads. They come from the
// stages of the schedule, without lowering it: what part of each stage is computed where and how often follows from
// the accesses' coefficients; a simple model of a core and its caches turns that into instructions, lines and cycles.
// Numbers that range widely are logarithms, and what depends on the machine is a ratio to what the machine could do,
// so that one model serves machines of one kind.
//
// The choice of numbers follows Zheng et al., "Ansor: Generating High-Performance Tensor Programs for Deep Learning"
// (OSDI 2020), appendix B: arithmetic by kind, annotations, accesses of buffers with their reuse, and the curve of
// arithmetic intensity. What they take from lowered programs is computed here from the loops of each statement.
package features

import (
	"math"
	"slices"
	"sync"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/target"
)

// Set names the list of columns. It changes whenever the meaning of any of them does, so that a model is never asked
// about numbers that it was not trained on.
const Set = "tilth-features-3"

// Names are those of the columns, in order. docs/features.md says what each means.
func Names() []string {
	names := make([]string, len(columns))
	for k, c := range columns {
		names[k] = c.name
	}
	return names
}

// Append adds the features of a candidate on a target, one for each of Names, all finite. Cycles is the space's
// analytic cost; NaN when it is not known. The schedule is only read. It may be called by several goroutines at a
// time.
func Append(dst []float32, s *schedule.Schedule, t *target.Target, cycles float64) []float32 {
	a := analyses.Get().(*analysis)
	defer analyses.Put(a)
	a.run(s, t, cycles)
	dst = slices.Grow(dst, len(columns))
	for _, c := range columns {
		dst = append(dst, finite(c.value(a)))
	}
	a.s, a.t = nil, nil
	return dst
}

// analyses keeps the memory of analyses between candidates.
var analyses = sync.Pool{New: func() any { return new(analysis) }}

// finite is a number that a model can be trained on.
func finite(v float64) float32 {
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

// Cost is the space's analytic cost that a row of features has, as the logarithm of its cycles to the base of two;
// false when it is not known, or the row is not of this set's length.
func Cost(row []float32) (log2Cycles float64, ok bool) {
	if len(row) != len(columns) {
		return 0, false
	}
	k := slices.IndexFunc(columns, func(c column) bool { return c.name == "cost_cycles" })
	return float64(row[k]), row[k] > 0
}
