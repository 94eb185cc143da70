package tuner

import (
	"slices"

	"github.com/tilth-dev/tilth/compiler/searchspace"
)

// genetic evolves the best points measured so far. It starts with the default schedule and the hand-written
// tiles, then draws points with a low analytic cost, and then breeds: parents come from the fastest trials,
// children from mutation and crossover. The children with the lowest analytic cost are proposed, together
// with some random ones for diversity.
type genetic struct {
	*pool
	measured []measured
	seeds    []searchspace.Point
}

const (
	// elite is the number of fastest trials that breed.
	elite = 8
	// draftsPerProposal is the number of children drafted per proposal.
	draftsPerProposal = 6
	// seeded is the number of a task's first trials that begin with its hand-written points.
	seeded = 16
	// blind is the number of candidates, in a batch of sixteen, that are drawn regardless of the cost.
	blind = 2
)

func newGenetic(p *pool, o Options) *genetic {
	g := &genetic{pool: p}
	if !o.NoSeeds {
		g.seeds = p.space.Seeds()
	}
	return g
}

// Propose implements Search.
func (g *genetic) Propose(n int) []Candidate {
	g.reseed()
	early := len(g.seen) < seeded
	list := g.start(n)
	if early {
		list = g.fill(list, n*3/4, g.seeds)
	}
	blindly := (n*blind + 15) / 16
	if len(g.measured) >= 2 {
		list = g.fill(list, n-blindly, g.children((n-len(list))*draftsPerProposal))
	} else {
		list = g.fill(list, n-blindly, g.draft((n-len(list))*draftsPerProposal))
	}
	for len(list) < n && g.misses < maxMisses {
		p, ok := g.space.Random(g.rng)
		if !ok {
			break
		}
		list = g.fill(list, len(list)+1, []searchspace.Point{p})
	}
	return list
}

// draft draws points and orders them by the analytic cost.
func (g *genetic) draft(n int) []searchspace.Point {
	var points []searchspace.Point
	for range n {
		if p, ok := g.space.Random(g.rng); ok {
			points = append(points, p)
		}
	}
	g.space.Sort(points)
	return points
}

// children breeds the elite. Each child inherits its parents' rank, adjusted by the change of the analytic
// cost.
func (g *genetic) children(n int) []searchspace.Point {
	parents := g.measured[:min(elite, len(g.measured))]
	type child struct {
		point searchspace.Point
		score float64
	}
	var litter []child
	for range n {
		mother := parents[g.skewed(len(parents))]
		point, ok := g.child(mother, parents)
		if !ok {
			continue
		}
		change := g.space.Cost(point) / g.space.Cost(mother.point)
		litter = append(litter, child{point, mother.latency * change})
	}
	slices.SortStableFunc(litter, func(a, b child) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	points := make([]searchspace.Point, len(litter))
	for k, c := range litter {
		points[k] = c.point
	}
	return points
}

func (g *genetic) child(mother measured, parents []measured) (searchspace.Point, bool) {
	if g.rng.IntN(4) == 0 {
		father := parents[g.rng.IntN(len(parents))]
		return g.space.Crossover(g.rng, mother.point, father.point)
	}
	return g.space.Mutate(g.rng, mother.point)
}

// skewed draws an index below n, with a bias toward small ones.
func (g *genetic) skewed(n int) int { return min(g.rng.IntN(n), g.rng.IntN(n)) }

// Observe implements Search.
func (g *genetic) Observe(t Trial) {
	g.observe(t)
	if t.LatencySeconds <= 0 {
		return
	}
	point, ok := g.space.Parse(t.Origin)
	if !ok {
		return
	}
	g.measured = insert(g.measured, measured{point, t.LatencySeconds, t.Digest})
}
