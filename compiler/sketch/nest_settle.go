package sketch

import (
	"math"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/compiler/searchspace"
)

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
