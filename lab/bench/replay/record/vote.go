package record

import (
	"math/rand/v2"

	"github.com/tilth-dev/tilth/compiler/space"
)

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
		var points []space.Point
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
func (c *chooser) byAlgorithm(points []space.Point) map[space.Algorithm][]space.Point {
	groups := map[space.Algorithm][]space.Point{}
	for _, p := range points {
		alg := c.space.Algorithm(p)
		groups[alg] = append(groups[alg], p)
	}
	return groups
}

// reread converts a point of a part of the space to a point of the space.
func (c *chooser) reread(part *space.Space, p space.Point) space.Point {
	q, _ := c.space.Parse(part.Format(p))
	return q
}

func read(s *space.Space, texts []string) (points []space.Point) {
	for _, text := range texts {
		if p, ok := s.Parse(text); ok {
			points = append(points, p)
		}
	}
	return points
}

func (c *chooser) count(points []space.Point, share float64) {
	for _, p := range points {
		for k, v := range p {
			if c.space.Active(p, k) {
				c.weight[k][v] += share / float64(len(points))
				c.total[k] += share / float64(len(points))
			}
		}
	}
}
