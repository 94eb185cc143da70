package tuner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

const (
	// draws is the number of points drawn before the first trial. The analytic cost drafts drafted of them,
	// and blind of them are kept regardless of their cost.
	draws   = 768
	drafted = 96
	blindly = 128
	// breeding is the number of fastest trials that have children.
	breeding = 8
	// brood is the number of children bred for a batch. The draft keeps raised of them, and a mature search
	// adds undrafted ones without a draft.
	brood     = 192
	raised    = 32
	undrafted = 96
)

// drafted returns random points: those with the lowest analytic cost, and some regardless of it. They depend
// on the seed alone.
func (g *learner) drafted() []searchspace.Point {
	rng := rand.New(rand.NewPCG(g.seed, math.MaxUint64))
	unseen := g.space.Draws(rng, blindly)
	if g.options.NoDraft {
		return append(unseen, g.space.Draws(rng, drafted)...)
	}
	var own, points []searchspace.Point
	for _, p := range g.space.Draws(rng, draws) {
		if g.space.Own(p) {
			own = append(own, p)
		} else {
			points = append(points, p)
		}
	}
	g.space.Sort(points)
	unseen = append(unseen, points[:min(drafted, len(points))]...)
	return append(unseen, own[:min(drafted, len(own))]...) // hand-written kernels have no analytic cost
}

// population returns the points to rank for a batch. None of them was proposed before.
func (g *learner) population() []*prospect {
	c := collection{learner: g, has: map[string]bool{}}
	if g.draft == nil {
		g.draft = g.drafted()
	}
	if !g.options.NoTransfer {
		c.add(g.recalled)
		c.add(g.view.Similar())
	}
	c.add(g.options.Imported)
	if !g.options.NoSeeds {
		c.add(g.space.Seeds())
	}
	c.add(g.draft)
	c.add(g.children())
	if g.mature() {
		for _, m := range g.fastest[:min(breeding, len(g.fastest))] {
			c.add(g.space.Neighbours(m.point))
		}
	}
	return c.list
}

// collection is a list of distinct prospects.
type collection struct {
	*learner
	has  map[string]bool
	list []*prospect
}

func (c *collection) add(points []searchspace.Point) {
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

// children returns the children for a batch, drafted by the analytic cost. A mature search adds undrafted
// ones, to cover points that the analytic cost misjudges.
func (g *learner) children() []searchspace.Point {
	n := raised
	if !g.options.NoDraft {
		n = brood
	}
	born := g.bred(g.fastest, n)
	if !g.options.NoDraft {
		sortChildren(born)
	}
	born = born[:min(raised, len(born))]
	if g.mature() {
		born = append(born, g.bred(g.fastest, undrafted)...)
	}
	return points(born)
}

// child is a point with an estimated latency: its mother's, scaled by the change of the analytic cost.
type child struct {
	point searchspace.Point
	score float64
}

func sortChildren(list []child) {
	slices.SortStableFunc(list, func(a, b child) int { return cmp.Compare(a.score, b.score) })
}

// bred returns the children of n matings of the first few trials, by mutation and crossover. Faster parents are
// preferred.
func (p *pool) bred(fastest []measured, n int) (born []child) {
	parents := fastest[:min(breeding, len(fastest))]
	if len(parents) == 0 {
		return nil
	}
	for range n {
		mother := parents[min(p.rng.IntN(len(parents)), p.rng.IntN(len(parents)))]
		if c, ok := p.child(mother.point, parents); ok {
			born = append(born, child{c, mother.latency * p.space.Cost(c) / p.space.Cost(mother.point)})
		}
	}
	return born
}

func points(list []child) (points []searchspace.Point) {
	for _, c := range list {
		points = append(points, c.point)
	}
	return points
}

func (p *pool) child(mother searchspace.Point, parents []measured) (searchspace.Point, bool) {
	if p.rng.IntN(4) == 0 {
		return p.space.Crossover(p.rng, mother, parents[p.rng.IntN(len(parents))].point)
	}
	return p.space.Mutate(p.rng, mother)
}
