package sketch

import (
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// Knob returns an open parameter.
func Knob[P any](name string, field func(*P) *int64, values ...int64) searchspace.Parameter[P] {
	return searchspace.Parameter[P]{Knob: searchspace.Knob{Name: name, Values: values}, Field: field}
}

// Unrolling marks a knob as an unroll factor.
func Unrolling[P any](p searchspace.Parameter[P]) searchspace.Parameter[P] {
	p.Unrolls = true
	return p
}

// CeilDiv returns a/b rounded up.
func CeilDiv(a, b int64) int64 { return (a + b - 1) / b }

// Product returns the product of xs.
func Product(xs []int64) int64 {
	n := int64(1)
	for _, x := range xs {
		n *= x
	}
	return n
}

// AtMost returns the values up to a limit, with the limit itself in place of the first one above it.
func AtMost(limit int64, values ...int64) []int64 {
	var list []int64
	for _, v := range values {
		if v >= limit {
			return append(list, limit)
		}
		list = append(list, v)
	}
	return list
}

// LastLong returns the last axis longer than one, or -1.
func LastLong(extents []int64) int {
	last := -1
	for k, n := range extents {
		if n > 1 {
			last = k
		}
	}
	return last
}

// Below returns the values under a limit.
func Below(limit int64, values ...int64) []int64 {
	return slices.DeleteFunc(values, func(v int64) bool { return v >= limit })
}

// DivisorAtMost returns the largest divisor of n that is at most limit.
func DivisorAtMost(n, limit int64) int64 {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

// Settle applies the candidate of a family without knobs that coordinate descent on the analytic cost finds.
func Settle(s *schedule.Schedule, f searchspace.Family) error {
	by, knobs := f.Algorithms()[0], f.Knobs()
	values := make([]int64, len(knobs))
	for k, knob := range knobs {
		values[k] = knob.Values[0]
	}
	cost := func() float64 {
		if f.Legal(by, values) != nil {
			return math.Inf(1)
		}
		return f.Cost(by, values)
	}
	for range 3 {
		for k, knob := range knobs {
			best, smallest := values[k], cost()
			for _, v := range knob.Values {
				values[k] = v
				if c := cost(); c < smallest {
					best, smallest = v, c
				}
			}
			values[k] = best
		}
	}
	return f.Apply(s, by, values)
}
