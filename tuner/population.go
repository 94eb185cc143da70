package tuner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/space"
)

const (
	// draws is how many points are drawn before the first trial, drafted how many the analytic cost leaves of them, and blind how
	// many are kept whatever they cost.
	draws   = 768
	drafted = 96
	blindly = 128
	// brood is how many children the fastest trials have for a batch, and raised how many the draft leaves of them.
	brood  = 192
	raised = 32
	// breeders is how many of the fastest trials have children.
	breeders = 8
	// mature is the number of trials after which the neighbours of the fastest descended ones are looked at, as many as steps each.
	mature    = 16
	descended = 2
	steps     = 24
)

// drafted are points drawn at random of which the analytic cost leaves the best, and some that it did not see. They depend on the
// seed alone.
func (g *learner) drafted() []space.Point {
	rng := rand.New(rand.NewPCG(g.seed, math.MaxUint64))
	draw := func(n int) (points []space.Point) {
		for range n {
			if p, ok := g.space.Random(rng); ok {
				points = append(points, p)
			}
		}
		return points
	}
	unseen := draw(blindly)
	if g.options.NoDraft {
		return append(unseen, draw(drafted)...)
	}
	points := draw(draws)
	g.space.Sort(points)
	return append(unseen, points[:min(drafted, len(points))]...)
}

// population are the points to rank for a batch, none of which was proposed before.
func (g *learner) population() []*prospect {
	c := collection{learner: g, has: map[string]bool{}}
	if !g.options.NoTransfer {
		c.add(g.recalled)
		c.add(g.view.Near())
	}
	if !g.options.NoSeeds {
		c.add(g.space.Seeds())
	}
	c.add(g.draft)
	c.add(g.children())
	if len(g.trials) >= mature {
		for _, m := range g.fastest[:min(descended, len(g.fastest))] {
			near := g.space.Neighbours(m.point)
			g.space.Sort(near)
			c.add(near[:min(steps, len(near))])
		}
	}
	return c.list
}

// collection is a list of prospects without repetition.
type collection struct {
	*learner
	has  map[string]bool
	list []*prospect
}

func (c *collection) add(points []space.Point) {
	for _, p := range points {
		m := c.prospect(p)
		if m == nil {
			continue
		}
		if d := m.candidate.Digest; !c.has[d] && !c.seen[d] && !c.skipped[d] {
			c.has[d] = true
			c.list = append(c.list, m)
		}
	}
}

// children are bred from the fastest trials, by mutation and crossover. Each is judged by its mother and how the analytic cost
// changes; the draft leaves the best.
func (g *learner) children() []space.Point {
	if len(g.fastest) == 0 {
		return nil
	}
	type child struct {
		point space.Point
		score float64
	}
	n := brood
	if g.options.NoDraft {
		n = raised
	}
	parents := g.fastest[:min(breeders, len(g.fastest))]
	var born []child
	for range n {
		mother := parents[min(g.rng.IntN(len(parents)), g.rng.IntN(len(parents)))]
		if p, ok := g.child(mother.point, parents); ok {
			born = append(born, child{p, mother.latency * g.space.Cost(p) / g.space.Cost(mother.point)})
		}
	}
	if !g.options.NoDraft {
		slices.SortStableFunc(born, func(a, b child) int { return cmp.Compare(a.score, b.score) })
	}
	var points []space.Point
	for _, c := range born[:min(raised, len(born))] {
		points = append(points, c.point)
	}
	return points
}

func (g *learner) child(mother space.Point, parents []measured) (space.Point, bool) {
	if g.rng.IntN(4) == 0 {
		return g.space.Crossover(g.rng, mother, parents[g.rng.IntN(len(parents))].point)
	}
	return g.space.Mutate(g.rng, mother)
}
