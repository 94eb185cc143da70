package replay

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// PartOptions bounds the size of a part of a space.
type PartOptions struct {
	// Fewest and Most bound the number of distinct legal schedules, as far as the space has them.
	Fewest, Most int
	// Measured lists the origins of points that were fast in a pilot search.
	Measured []string
}

// Part chooses the knob values of a part of a space. It takes all algorithms and the values of the default schedule.
// It then repeatedly adds the value with the best ratio of additional points covered to additional size. The points
// are those of least analytic cost, the seeds, the fast measured ones, and random ones to include bad schedules.
// Direct sums and other algorithms get half of the part each if both have enough schedules. The choice is
// deterministic.
func Part(s *searchspace.Space, o PartOptions) map[string][]int64 {
	c := newChooser(s, o)
	kinds := c.kinds()
	for k, kind := range kinds {
		share := float64(k+1) / float64(len(kinds))
		c.grow(kind, int(share*float64(o.Fewest)), int(share*float64(o.Most)))
	}
	c.grow(slices.Concat(kinds...), o.Fewest, o.Most)
	return c.values()
}

// grow adds values of the given knobs until the part has enough schedules.
func (c *chooser) grow(knobs []int, fewest, most int) {
	if len(Candidates(c.restricted(), fewest)) == fewest {
		return
	}
	for k := range c.refused {
		clear(c.refused[k]) // they had less room
	}
	for list := c.additions(knobs); len(list) > 0; list = c.additions(knobs) {
		next := list[0]
		c.chosen[next.knob][next.value] = true
		switch n := len(Candidates(c.restricted(), most+1)); {
		case n > most:
			c.chosen[next.knob][next.value] = false
			c.refused[next.knob][next.value] = true
		case n >= fewest:
			return
		}
	}
}

// chooser is the state of a choice. Its lists are indexed by knob and value.
type chooser struct {
	space *searchspace.Space
	// weight is the weight of the points with each value, total that of all points whose algorithm has the knob.
	weight          [][]float64
	total           []float64
	chosen, refused [][]bool
}

func newChooser(s *searchspace.Space, o PartOptions) *chooser {
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

// kinds returns the knobs of direct sums and those of other algorithms.
func (c *chooser) kinds() [][]int {
	kinds := make([][]int, 2)
	for k := range c.space.Knobs {
		other := 0
		if !c.space.Active(make(searchspace.Point, len(c.space.Knobs)), k) {
			other = 1
		}
		kinds[other] = append(kinds[other], k)
	}
	return slices.DeleteFunc(kinds, func(list []int) bool { return len(list) == 0 })
}

// begin chooses the common values of every part: those of the default, all algorithms, and the most frequent value of
// each knob that the default's algorithm lacks.
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

// addition is a candidate value.
type addition struct {
	knob, value int
	// gain is the growth of the logarithm of the points covered, divided by that of the size. Further values of a
	// knob count less.
	gain float64
}

// additions returns the values of some knobs that were neither chosen nor refused, best first.
func (c *chooser) additions(knobs []int) []addition {
	var list []addition
	for _, k := range knobs {
		covered, n := 0.0, 0.0
		for v, chosen := range c.chosen[k] {
			if chosen {
				covered, n = covered+c.weight[k][v], n+1
			}
		}
		floor := 1e-3 * max(c.total[k], 1e-9) // a knob that covers nothing yet has a large but finite gain
		for v, w := range c.weight[k] {
			if !c.chosen[k][v] && !c.refused[k][v] {
				list = append(list, addition{k, v, math.Log((covered+w+floor)/(covered+floor)) / math.Log((n+1)/n) / n})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b addition) int { return cmp.Compare(b.gain, a.gain) })
	return list
}

// values returns the chosen values of each knob.
func (c *chooser) values() map[string][]int64 {
	m := map[string][]int64{}
	for k, knob := range c.space.Knobs {
		for v, value := range knob.Values {
			if c.chosen[k][v] {
				m[knob.Name] = append(m[knob.Name], value)
			}
		}
	}
	return m
}

// restricted returns the space restricted to the chosen values.
func (c *chooser) restricted() *searchspace.Space {
	part, err := c.space.Restrict(c.values())
	if err != nil {
		return c.space // unreachable: the values come from the space
	}
	return part
}

const (
	// draws is the number of random points per algorithm. The good ones of least analytic cost count as good, and
	// spread of them count as random ones.
	draws, good, spread = 4000, 192, 192
	// goodShare, measuredShare and spreadShare are the weights of the good, measured and random points.
	goodShare, measuredShare, spreadShare = 0.35, 0.3, 0.35
)

// vote distributes the weights of the points, equally among algorithms.
func (c *chooser) vote(o PartOptions) {
	measured := c.byAlgorithm(read(c.space, o.Measured))
	seeds := c.byAlgorithm(c.space.Seeds())
	for _, alg := range c.space.Algorithms() {
		part := c.space.Of(alg)
		rng := rand.New(rand.NewPCG(1, 11))
		var points []searchspace.Point
		for range draws {
			if p, ok := part.Random(rng); ok {
				points = append(points, c.reread(part, p))
			}
		}
		c.count(points[:min(spread, len(points))], spreadShare)
		points = append(points, seeds[alg]...)
		c.space.Sort(points)
		c.count(points[:min(good, len(points))], goodShare)
		c.count(measured[alg], measuredShare)
	}
}

// byAlgorithm groups points by algorithm.
func (c *chooser) byAlgorithm(points []searchspace.Point) map[searchspace.Algorithm][]searchspace.Point {
	groups := map[searchspace.Algorithm][]searchspace.Point{}
	for _, p := range points {
		alg := c.space.Algorithm(p)
		groups[alg] = append(groups[alg], p)
	}
	return groups
}

// reread converts a point of a part of the space to a point of the space.
func (c *chooser) reread(part *searchspace.Space, p searchspace.Point) searchspace.Point {
	q, _ := c.space.Parse(part.Format(p))
	return q
}

func read(s *searchspace.Space, texts []string) (points []searchspace.Point) {
	for _, text := range texts {
		if p, ok := s.Parse(text); ok {
			points = append(points, p)
		}
	}
	return points
}

func (c *chooser) count(points []searchspace.Point, share float64) {
	for _, p := range points {
		for k, v := range p {
			if c.space.Active(p, k) {
				c.weight[k][v] += share / float64(len(points))
				c.total[k] += share / float64(len(points))
			}
		}
	}
}
