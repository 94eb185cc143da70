package record

import (
	"cmp"
	"math"
	"slices"

	"github.com/tilth-dev/tilth/compiler/space"
	"github.com/tilth-dev/tilth/lab/bench/replay"
)

// PartOptions say how large a part of a space to choose.
type PartOptions struct {
	// Fewest and Most bound the distinct legal schedules of the part, as far as the space has as many.
	Fewest, Most int
	// Measured are origins of points that were fast when they were measured.
	Measured []string
}

// Part chooses the values that the knobs of a part of a space have: all algorithms, the values of the default
// schedule, and then, one by one, the value that adds most to the share of points that a knob covers, for what it adds
// to the size. The points are those of least analytic cost, the seeds, what was measured as fast, and random ones, so
// that bad ones occur too. Direct sums and other algorithms have half of the part each, where both have enough
// schedules. The choice is the same for the same space and options.
func Part(s *space.Space, o PartOptions) map[string][]int64 {
	c := newChooser(s, o)
	kinds := c.kinds()
	for k, kind := range kinds {
		share := float64(k+1) / float64(len(kinds))
		c.grow(kind, int(share*float64(o.Fewest)), int(share*float64(o.Most)))
	}
	c.grow(slices.Concat(kinds...), o.Fewest, o.Most)
	return values(c.restricted())
}

// grow chooses values of the given knobs until the part has enough schedules.
func (c *chooser) grow(knobs []int, fewest, most int) {
	if len(replay.Candidates(c.restricted(), fewest)) == fewest {
		return
	}
	for k := range c.refused {
		clear(c.refused[k]) // there was less room for them
	}
	for list := c.additions(knobs); len(list) > 0; list = c.additions(knobs) {
		next := list[0]
		c.chosen[next.knob][next.value] = true
		switch n := len(replay.Candidates(c.restricted(), most+1)); {
		case n > most:
			c.chosen[next.knob][next.value] = false
			c.refused[next.knob][next.value] = true
		case n >= fewest:
			return
		}
	}
}

func values(s *space.Space) map[string][]int64 {
	m := map[string][]int64{}
	for _, k := range s.Knobs {
		m[k.Name] = k.Values
	}
	return m
}

// chooser is the state of a choice; the lists are by knob and by index of its values.
type chooser struct {
	space *space.Space
	// weight is the say of the points that have a value, total that of all points whose algorithm has the knob.
	weight          [][]float64
	total           []float64
	chosen, refused [][]bool
}

func newChooser(s *space.Space, o PartOptions) *chooser {
	c := &chooser{space: s, total: make([]float64, len(s.Knobs))}
	for _, k := range s.Knobs {
		c.weight = append(c.weight, make([]float64, len(k.Values)))
		c.chosen = append(c.chosen, make([]bool, len(k.Values)))
		c.refused = append(c.refused, make([]bool, len(k.Values)))
	}
	c.vote(o)
	c.begin()
	return c
}

// kinds are the knobs of direct sums and those of other algorithms.
func (c *chooser) kinds() [][]int {
	kinds := make([][]int, 2)
	for k := range c.space.Knobs {
		other := 0
		if !c.space.Active(make(space.Point, len(c.space.Knobs)), k) {
			other = 1
		}
		kinds[other] = append(kinds[other], k)
	}
	return slices.DeleteFunc(kinds, func(list []int) bool { return len(list) == 0 })
}

// begin chooses what every part has: the default's values, all algorithms, and the likeliest value of the knobs that
// the default's algorithm does not have.
func (c *chooser) begin() {
	start := c.space.Default()
	for k := range c.space.Knobs {
		if c.space.Active(start, k) {
			c.chosen[k][start[k]] = true
		} else {
			c.chosen[k][slices.Index(c.weight[k], slices.Max(c.weight[k]))] = true
		}
		if c.space.IsAlgorithm(k) {
			for v := range c.chosen[k] {
				c.chosen[k][v] = true
			}
		}
	}
}

// addition is a value that may be chosen.
type addition struct {
	knob, value int
	// gain is how much the logarithm of the share of points covered grows, over that of the size; further values of a
	// knob count less.
	gain float64
}

// additions are the values of some knobs that were neither chosen nor refused, best first.
func (c *chooser) additions(knobs []int) []addition {
	var list []addition
	for _, k := range knobs {
		covered, n := 0.0, 0.0
		for v, chosen := range c.chosen[k] {
			if chosen {
				covered, n = covered+c.weight[k][v], n+1
			}
		}
		floor := 1e-3 * max(c.total[k], 1e-9) // a knob that covers nothing yet gains much, not infinitely much
		for v, w := range c.weight[k] {
			if !c.chosen[k][v] && !c.refused[k][v] {
				list = append(list, addition{k, v, math.Log((covered+w+floor)/(covered+floor)) / math.Log((n+1)/n) / n})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b addition) int { return cmp.Compare(b.gain, a.gain) })
	return list
}

// restricted is the space with the values chosen.
func (c *chooser) restricted() *space.Space {
	m := map[string][]int64{}
	for k, knob := range c.space.Knobs {
		for v, value := range knob.Values {
			if c.chosen[k][v] {
				m[knob.Name] = append(m[knob.Name], value)
			}
		}
	}
	part, err := c.space.Restrict(m)
	if err != nil {
		return c.space // its own knobs and values, so this does not happen
	}
	return part
}
