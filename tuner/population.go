package tuner

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tilth-dev/tilth/compiler/space"
)

const (
	// draws is how many points are drawn before the first trial, drafted how many the analytic cost leaves of them,
	// and blind how many are kept whatever they cost.
	draws   = 768
	drafted = 96
	blindly = 128
	// breeding is how many of the fastest trials have children.
	breeding = 8
	// brood is how many children they have for a batch, raised how many the draft leaves of them, and undrafted how
	// many there are beside in a mature search.
	brood     = 192
	raised    = 32
	undrafted = 96
)

// drafted are points drawn at random of which the analytic cost leaves the best, and some that it did not see. They
// depend on the seed alone.
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
	var own, points []space.Point
	for _, p := range draw(draws) {
		if g.space.Own(p) {
			own = append(own, p)
		} else {
			points = append(points, p)
		}
	}
	g.space.Sort(points)
	unseen = append(unseen, points[:min(drafted, len(points))]...)
	return append(unseen, own[:min(drafted, len(own))]...) // of which the analytic cost knows nothing
}

// population are the points to rank for a batch, none of which was proposed before.
func (g *learner) population() []*prospect {
	c := collection{learner: g, has: map[string]bool{}}
	if !g.options.NoTransfer {
		c.add(g.recalled)
		c.add(g.view.Near())
	}
	c.add(g.options.Imported)
	if !g.options.NoSeeds {
		c.add(g.space.Seeds())
	}
	c.add(g.draft)
	c.add(g.children())
	if g.mature() {
		for _, m := range g.breeders() {
			c.add(g.space.Neighbours(m.point))
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

// breeders are the trials that have children.
func (g *learner) breeders() []measured { return g.fastest[:min(breeding, len(g.fastest))] }

// children are those for a batch. The analytic cost drafts them; once the search is mature there are others beside,
// since what it is wrong about would never be tried.
func (g *learner) children() []space.Point {
	n := raised
	if !g.options.NoDraft {
		n = brood
	}
	born := g.bred(n)
	if !g.options.NoDraft {
		slices.SortStableFunc(born, func(a, b child) int { return cmp.Compare(a.score, b.score) })
	}
	born = born[:min(raised, len(born))]
	if g.mature() {
		born = append(born, g.bred(undrafted)...)
	}
	return points(born)
}

// child is a point with the latency that its mother has, times how the analytic cost changes.
type child struct {
	point space.Point
	score float64
}

// bred are children of n matings of the breeders, by mutation and crossover.
func (g *learner) bred(n int) (born []child) {
	parents := g.breeders()
	if len(parents) == 0 {
		return nil
	}
	for range n {
		mother := parents[min(g.rng.IntN(len(parents)), g.rng.IntN(len(parents)))]
		if p, ok := g.child(mother.point, parents); ok {
			born = append(born, child{p, mother.latency * g.space.Cost(p) / g.space.Cost(mother.point)})
		}
	}
	return born
}

func points(list []child) (points []space.Point) {
	for _, c := range list {
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
